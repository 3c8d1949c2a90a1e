"""What providers take, and how a list that they would refuse is mended."""

import copy

from fakes.message_lists import agent_runs, anything
from hypothesis import given, settings

from watchkeeper.context.core.messages import check_messages
from watchkeeper.context.core.repair import repair
from watchkeeper.context.core.validity import check

FUZZ = settings(max_examples=400, deadline=None)


@FUZZ
@given(anything)
def test_any_well_formed_list_is_mended_into_one_that_all_providers_take(messages):
    before = copy.deepcopy(messages)
    checked = check_messages(messages)
    mended, repairs = repair(checked)
    assert messages == before, "the input was changed"
    assert check(mended) == [], repairs
    again, nothing = repair(mended)
    assert again is mended
    assert nothing == ()


@FUZZ
@given(anything)
def test_repair_is_silent_exactly_when_nothing_was_wrong(messages):
    mended, repairs = repair(messages)
    assert bool(repairs) == (mended is not messages)
    if check(messages):
        assert repairs


@FUZZ
@given(agent_runs())
def test_a_list_in_order_comes_back_as_the_same_object(messages):
    assert check(messages) == []
    mended, repairs = repair(messages)
    assert mended is messages
    assert repairs == ()
