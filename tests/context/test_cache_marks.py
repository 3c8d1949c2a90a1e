"""Prompt cache marks: where they stand, where they do not, and when they are set at all."""

import copy

import pytest
from fakes.message_lists import agent_runs
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.context import InvalidArgument
from watchkeeper.context.core.cache import decide_caching, mark
from watchkeeper.context.core.validity import MAX_CACHE_MARKS, check

EPHEMERAL = {"type": "ephemeral"}
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def marked(messages):
    """The indices of messages that carry a mark, on themselves or on a part."""
    return [
        i
        for i, m in enumerate(messages)
        if "cache_control" in m or (isinstance(m["content"], list) and any("cache_control" in p for p in m["content"]))
    ]


def test_the_system_prompt_and_the_last_three_messages_are_marked():
    messages = [{"role": "system", "content": "s"}] + [
        {"role": ("user", "assistant")[n % 2], "content": f"m{n}"} for n in range(6)
    ]
    out = mark(messages)
    assert marked(out) == [0, 4, 5, 6]
    assert out[0]["content"] == [{"type": "text", "text": "s", "cache_control": EPHEMERAL}]


def test_the_longer_lifetime_is_written_on_each_mark():
    (out,) = mark([{"role": "user", "content": "hi"}], ttl="1h")
    assert out["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_a_list_is_marked_on_its_last_part_that_is_not_thinking():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, thinking]
    (out,) = mark([{"role": "assistant", "content": parts, "tool_calls": [CALL]}])
    assert [("cache_control" in p) for p in out["content"]] == [False, True, False]


@pytest.mark.parametrize(("native", "where"), [(True, [1, 2, 3]), (False, [0, 1, 3])])
def test_a_tool_message_carries_a_mark_natively_and_passes_it_on_elsewhere(native, where):
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "assistant", "content": "it is done"},
    ]
    out = mark(messages, native=native)
    assert marked(out) == where
    if native:
        assert out[2] == {**messages[2], "cache_control": EPHEMERAL}
    assert out[1]["cache_control"] == EPHEMERAL


def test_earlier_marks_are_taken_off_first():
    old = [{"type": "text", "text": "x", "cache_control": EPHEMERAL}]
    messages = [{"role": ("user", "assistant")[n % 2], "content": old} for n in range(8)]
    assert marked(mark(messages)) == [5, 6, 7]


@given(agent_runs(), st.booleans())
def test_marks_never_break_a_rule_and_never_change_the_input(messages, native):
    before = copy.deepcopy(messages)
    out = mark(messages, native=native)
    assert messages == before
    assert check(out) == []
    assert len(marked(out)) <= MAX_CACHE_MARKS


@pytest.mark.parametrize(
    ("model", "provider", "enabled"),
    [
        ("claude-sonnet-4-5", "anthropic", True),
        ("anthropic/claude-opus-4.1", "openrouter", True),
        ("gpt-5", "openrouter", False),
        ("claude-sonnet-4-5", "bedrock-proxy", False),
        ("claude-sonnet-4-5", "", False),
    ],
)
def test_marks_are_for_claude_at_providers_that_take_them(model, provider, enabled):
    decision = decide_caching(model, provider)
    assert decision.enabled is enabled
    assert decision.reason


def test_an_unknown_lifetime_is_refused():
    with pytest.raises(InvalidArgument, match="10m"):
        decide_caching("claude", "anthropic", "10m")
