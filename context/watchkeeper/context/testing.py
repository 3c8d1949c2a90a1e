"""A contract that any context engine can be held to.

In a test module of your own:

    from watchkeeper.context.testing import EngineContract

    class TestMyEngine(EngineContract):
        def make_engine(self):
            return MyEngine(context_length=8_000)

Every check is a method with a sentence for a name; pytest collects them, and nothing here imports pytest.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from .core.messages import Message, check_messages
from .core.validity import check
from .engine import ContextEngine
from .host import ContextCall, ContextHost
from .tokens import estimate, total_tokens


def conversation(turns: int = 12, *, output: int = 1_200) -> list[Message]:
    """A valid conversation: a system prompt, a request, `turns` calls with results of `output` characters, an answer.

    Deterministic; the identifiers in it (`src/part_3.py`, `E4003`, ...) are unique to their turn.
    """
    messages: list[Message] = [
        {"role": "system", "content": "You are an agent that mends programs."},
        {
            "role": "user",
            "content": "The import of orders fails since release 4.2.1. Find out why; do not touch the schema.",
        },
    ]
    for turn in range(turns):
        call_id = f"call_{turn}"
        arguments = json.dumps({"path": f"src/part_{turn}.py", "limit": 40 + turn})
        function = {"name": "read_file", "arguments": arguments}
        messages.append(
            {
                "role": "assistant",
                "content": f"Reading part {turn}.",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            }
        )
        line = f"def step_{turn}(order): raise ImportError_{turn}('E4{turn:03d}')  # row {turn * 17}\n"
        messages.append({"role": "tool", "tool_call_id": call_id, "content": line * (output // len(line) + 1)})
    messages.append({"role": "assistant", "content": "The cause is in src/part_3.py: E4003."})
    messages.append({"role": "user", "content": "Good. Mend it, and add a test named test_import_4_2_1."})
    return messages


class EngineContract:
    """Subclass it and say how your engine is made, with a window of about 8,000 tokens."""

    def make_engine(self) -> ContextEngine:
        raise NotImplementedError("return a new engine")

    def large(self) -> list[Message]:
        """A conversation that the engine should find too large."""
        return conversation(40)

    # --- identity and state

    def test_it_has_a_name_and_counters_that_begin_at_zero(self) -> None:
        engine = self.make_engine()
        assert engine.name
        assert engine.name == engine.name.strip()
        assert engine.last_prompt_tokens == engine.last_completion_tokens == engine.last_total_tokens == 0
        assert engine.compression_count == 0

    def test_usage_with_the_legacy_keys_alone_is_taken(self) -> None:
        engine = self.make_engine()
        engine.update_from_response({"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720})
        assert engine.last_prompt_tokens == 700
        assert engine.last_completion_tokens == 20
        assert engine.last_total_tokens == 720

    def test_unknown_usage_keys_do_no_harm(self) -> None:
        usage = {
            "prompt_tokens": 700,
            "completion_tokens": 20,
            "total_tokens": 720,
            "cache_read_tokens": 5,
            "new": None,
        }
        self.make_engine().update_from_response(usage)

    def test_a_reset_zeroes_the_counters(self) -> None:
        engine = self.make_engine()
        engine.update_from_response({"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720})
        engine.on_session_reset()
        assert engine.last_prompt_tokens == engine.last_total_tokens == engine.compression_count == 0

    def test_another_model_changes_length_and_threshold(self) -> None:
        engine = self.make_engine()
        engine.update_model("some-model", 64_000)
        assert engine.context_length == 64_000
        assert 0 < engine.threshold_tokens <= 64_000

    def test_its_status_is_json_with_the_standard_keys(self) -> None:
        status = json.loads(json.dumps(self.make_engine().get_status()))
        assert {"name", "context_length", "threshold_tokens", "last_prompt_tokens", "compression_count"} <= set(status)
        assert status["usage_percent"] >= 0

    # --- when

    def test_it_is_not_due_far_below_its_threshold_and_due_at_the_window(self) -> None:
        engine = self.make_engine()
        engine.on_session_start("contract")
        assert not engine.should_compress(1)
        assert engine.should_compress(engine.context_length)
        assert engine.should_compress_info(1)[0] is False

    # --- compressing

    def test_a_large_conversation_gets_smaller_and_stays_valid(self) -> None:
        engine = self.make_engine()
        messages = self.large()
        engine.on_session_start("contract")
        result = engine.compress(messages, force=True)
        assert check(check_messages(result)) == []
        assert total_tokens(result, estimate) < total_tokens(messages, estimate)
        assert engine.compression_count == 1

    def test_the_input_is_never_changed(self) -> None:
        engine = self.make_engine()
        messages = self.large()
        before = copy.deepcopy(messages)
        engine.on_session_start("contract")
        engine.compress(messages, force=True)
        engine.prune_tool_results_only(messages)
        engine.select_context(messages, budget_tokens=1_000)
        engine.on_turn_complete(messages)
        assert messages == before

    def test_the_last_request_survives(self) -> None:
        engine = self.make_engine()
        messages = self.large()
        engine.on_session_start("contract")
        result = engine.compress(messages, force=True)
        asked = messages[-1]["content"]
        assert any(m["role"] == "user" and asked in str(m["content"]) for m in result)

    def test_with_nothing_to_do_the_same_list_comes_back(self) -> None:
        engine = self.make_engine()
        messages = conversation(1, output=100)
        engine.on_session_start("contract")
        assert engine.compress(messages) is messages

    def test_a_conversation_can_be_compressed_again(self) -> None:
        engine = self.make_engine()
        engine.on_session_start("contract")
        messages = self.large()
        for number in range(3):
            messages = engine.compress(messages, force=True)
            assert check(messages) == []
            more = [m for m in self.large() if m["role"] in ("assistant", "tool")][:-1]
            messages = [*messages, *_renamed(more, number)]
        assert check(messages) == []

    # --- tools and hosts

    def test_its_tools_have_names_descriptions_and_parameters(self) -> None:
        for tool in self.make_engine().get_tool_schemas():
            assert set(tool) >= {"name", "description", "parameters"}
            assert tool["parameters"].get("type") == "object"

    def test_an_unknown_tool_is_an_error_in_json(self) -> None:
        answer = json.loads(self.make_engine().handle_tool_call("no_such_tool", {}))
        assert "no_such_tool" in answer["error"]

    def test_a_host_can_run_it_through_every_mode(self) -> None:
        host = ContextHost(self.make_engine)
        messages = self.large()
        modes: tuple[Any, ...] = ("dry_run", "auto", "prune", "select", "observe", "force")
        for mode in modes:
            answer = host.handle(ContextCall(messages, session_id="contract", mode=mode, budget_tokens=2_000))
            assert check(check_messages(answer.messages)) == []
            json.dumps(answer.as_dict())
        host.close()


def _renamed(messages: list[Message], number: int) -> list[Message]:
    """The messages with call ids of their own."""
    out = copy.deepcopy(messages)
    for message in out:
        for call in message.get("tool_calls") or ():
            call["id"] += f"_{number}"
        if "tool_call_id" in message:
            message["tool_call_id"] += f"_{number}"
    return out


__all__ = ["EngineContract", "conversation"]
