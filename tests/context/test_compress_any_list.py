"""Whatever well-formed list comes in, a valid list within its limits comes out, and the input is untouched."""

import copy

from fakes.message_lists import agent_runs, anything
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.context import ContextCompressor, compress_messages
from watchkeeper.context.core.regions import last_user, running_calls
from watchkeeper.context.core.validity import check, signed_thinking
from watchkeeper.context.tokens import tokenizer_for, total_tokens

COUNT = tokenizer_for().count
targets = st.one_of(st.none(), st.integers(200, 2_000))


def long(messages, times):
    """The same list with tool output and user text that fills a budget."""
    return [
        {**m, "content": m["content"] * times} if m["role"] == "tool" and isinstance(m.get("content"), str) else m
        for m in messages
    ]


@settings(max_examples=250)
@given(anything, targets, st.sampled_from([1, 200]))
def test_any_list_comes_out_valid_within_the_target_and_untouched(messages, target, times):
    messages = long(messages, times)
    before = copy.deepcopy(messages)
    result = compress_messages(messages, target)
    assert messages == before
    assert check(result.messages) == []
    assert result.report.valid
    after = total_tokens(result.messages, COUNT)
    assert after == result.report.tokens_after
    if result.report.compressed:
        assert after < result.report.tokens_before == total_tokens(messages, COUNT)
        assert target is None or after <= target or any("target was missed" in w for w in result.report.warnings)
    elif not result.report.repairs:
        assert result.messages is messages


@settings(max_examples=200)
@given(agent_runs(), targets, st.booleans())
def test_a_run_keeps_its_last_request_its_running_calls_and_its_thinking(messages, target, lean):
    engine = ContextCompressor(8_000, {"tail_mode": "lean" if lean else "legacy", "protect_last_n": 4})
    result = engine.compress(messages, force=True, target_tokens=target)
    assert check(result) == []
    if not engine.last_report.compressed:
        assert result is messages
        return
    running = running_calls(messages)
    if running is not None:
        assert running_calls(result) is not None
        assert [c["id"] for c in result[running_calls(result)]["tool_calls"]] == [
            c["id"] for c in messages[running]["tool_calls"]
        ]
    asked = messages[last_user(messages)]["content"]
    if target is None or COUNT(asked) < target * 0.7:
        assert any(m["role"] == "user" and asked in m["content"] for m in result)
    kept, had = signed_thinking(result), signed_thinking(messages)
    assert kept == had[len(had) - len(kept) :]
    # Compacting the result again with room to spare changes nothing.
    again = engine.compress(result, force=True, target_tokens=100_000)
    assert again is result
