"""The host calls hooks as documented, whatever the age of the engine."""

import json
import threading

import pytest
from fakes.summarizers import Recording

from watchkeeper.context import ContextCompressor, ContextEngine, EngineFailed, InvalidArgument, InvalidMessages
from watchkeeper.context.host import ContextCall, ContextHost, invoke
from watchkeeper.context.testing import conversation


class Logging(ContextEngine):
    """Remembers which hooks were called with what."""

    def __init__(self, result=None):
        self.calls = []
        self.result = result
        self.update_model("", 10_000)
        self.calls.clear()

    @property
    def name(self):
        return "logging"

    def update_from_response(self, usage):
        self.calls.append(("update_from_response", dict(usage)))
        self.last_prompt_tokens = usage["prompt_tokens"]

    def update_model(self, model, context_length, base_url="", api_key="", provider="", api_mode=""):
        self.calls.append(("update_model", model, context_length, provider))
        super().update_model(model, context_length)

    def should_compress(self, prompt_tokens=None):
        self.calls.append(("should_compress", prompt_tokens))
        return (prompt_tokens or 0) >= self.threshold_tokens

    def should_compress_preflight(self, messages):
        self.calls.append(("should_compress_preflight",))
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=""):
        self.calls.append(("compress", current_tokens, focus_topic, force, memory_context))
        return messages[:1] + messages[-1:] if self.result is None else self.result

    def on_session_start(self, session_id, **kwargs):
        self.calls.append(("on_session_start", session_id))

    def on_session_end(self, session_id, messages):
        self.calls.append(("on_session_end", session_id, len(messages)))

    def on_session_reset(self):
        self.calls.append(("on_session_reset",))
        super().on_session_reset()

    def on_turn_complete(self, messages, usage=None, **kwargs):
        self.calls.append(("on_turn_complete", usage))

    def prune_tool_results_only(self, messages, current_tokens=None):
        self.calls.append(("prune", current_tokens))
        return messages[:1] + messages[-1:], 3

    def select_context(self, request_messages, *, conversation_messages=None, incoming_message=None, budget_tokens=0):
        self.calls.append(("select", budget_tokens, incoming_message))
        return


class Older(ContextEngine):
    """Written for an interface that knew fewer arguments."""

    def __init__(self):
        self.threshold_tokens = self.context_length = 100
        self.seen = None

    @property
    def name(self):
        return "older"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def update_model(self, model, context_length):
        self.context_length = context_length

    def should_compress(self, prompt_tokens=None):
        return True

    def compress(self, messages, current_tokens=None):
        self.seen = current_tokens
        return messages[:1] + messages[-1:]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def host_of(engine, **options):
    return ContextHost(lambda: engine, **options)


MESSAGES = conversation(6)


def test_the_first_call_of_a_session_starts_it_and_usage_reaches_the_engine():
    engine = Logging()
    host = host_of(engine)
    host.handle(ContextCall(MESSAGES, session_id="s", usage={"input_tokens": 40, "output_tokens": 2}))
    host.handle(ContextCall(MESSAGES, session_id="s"))
    assert engine.calls == [
        ("on_session_start", "s"),
        (
            "update_from_response",
            {"input_tokens": 40, "output_tokens": 2, "prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
        ),
        ("should_compress", 40),
        ("should_compress_preflight",),
    ]


def test_a_model_is_announced_when_it_changes():
    engine = Logging()
    host = host_of(engine)
    for _ in range(2):
        host.handle(ContextCall(MESSAGES, model="gpt-4o", provider="openai"))
    host.handle(ContextCall(MESSAGES, model="gpt-4o", context_length=50_000, provider="openai"))
    announced = [c for c in engine.calls if c[0] == "update_model"]
    assert announced == [("update_model", "gpt-4o", 128_000, "openai"), ("update_model", "gpt-4o", 50_000, "openai")]


def test_auto_compacts_at_the_threshold_and_passes_what_was_given():
    engine = Logging()
    call = ContextCall(MESSAGES, current_tokens=9_000, focus_topic="orders", memory_context="note")
    answer = host_of(engine).handle(call)
    assert ("compress", 9_000, "orders", False, "note") in engine.calls
    assert answer.report.compressed
    assert answer.report.tokens_after < answer.report.tokens_before
    assert answer.status.startswith("Context compacted")


def test_force_compacts_below_the_threshold():
    engine = Logging()
    assert host_of(engine).handle(ContextCall(MESSAGES, mode="force")).report.compressed
    assert ("compress", None, None, True, "") in engine.calls


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("prune", ("prune", 7)), ("select", ("select", 500, MESSAGES[-1])), ("observe", ("on_turn_complete", None))],
)
def test_each_mode_calls_its_hook(mode, expected):
    engine = Logging()
    tokens = 7 if mode == "prune" else None
    answer = host_of(engine).handle(
        ContextCall(MESSAGES, mode=mode, current_tokens=tokens, budget_tokens=500, incoming_message=MESSAGES[-1])
    )
    assert expected in engine.calls
    assert "compress" not in [c[0] for c in engine.calls]
    assert answer.mode == mode


def test_reset_forgets_first_and_end_ends_afterwards():
    engine = Logging()
    host = host_of(engine)
    host.handle(ContextCall(MESSAGES, session_id="s", session="reset"))
    assert [c[0] for c in engine.calls][:2] == ["on_session_start", "on_session_reset"]
    host.handle(ContextCall(MESSAGES, session_id="s", session="end"))
    assert engine.calls[-1] == ("on_session_end", "s", len(MESSAGES))
    assert host.sessions() == []


def test_idle_sessions_end_and_closing_ends_the_others():
    clock = Clock()
    engines = []

    def make():
        engines.append(Logging())
        return engines[-1]

    host = ContextHost(make, idle_seconds=100, clock=clock)
    host.handle(ContextCall(MESSAGES, session_id="a"))
    clock.now = 60
    host.handle(ContextCall(MESSAGES, session_id="b"))
    clock.now = 120
    assert host.end_idle() == ["a"]
    host.close()
    assert [e.calls[-1][0] for e in engines] == ["on_session_end", "on_session_end"]


def test_beyond_the_limit_the_session_used_least_recently_ends():
    clock = Clock()
    host = ContextHost(Logging, max_sessions=2, clock=clock)
    for name in ("a", "b", "a", "c"):
        clock.now += 1
        host.handle(ContextCall(MESSAGES, session_id=name))
    assert sorted(host.sessions()) == ["a", "c"]


def test_an_engine_of_an_older_interface_keeps_working():
    engine = Older()
    call = ContextCall(MESSAGES, model="gpt-4", current_tokens=50, focus_topic="x", target_tokens=900)
    answer = host_of(engine).handle(call)
    assert answer.report.compressed
    assert engine.seen == 50
    assert engine.context_length == 8_192


def test_an_engine_that_raises_or_gives_nonsense_is_named_and_changes_nothing():
    class Broken(Logging):
        def should_compress_preflight(self, messages):
            raise RuntimeError("no such table")

    with pytest.raises(EngineFailed, match="no such table"):
        host_of(Broken()).handle(ContextCall(MESSAGES))
    with pytest.raises(EngineFailed, match="no message list"):
        host_of(Logging(result=[{"role": "nobody"}])).handle(ContextCall(MESSAGES, mode="force"))


def test_an_engine_whose_result_grew_or_would_be_refused_is_corrected():
    grown = host_of(Logging(result=[*MESSAGES, {"role": "user", "content": "more " * 500}]))
    answer = grown.handle(ContextCall(MESSAGES, mode="force"))
    assert not answer.report.compressed
    assert answer.messages is MESSAGES
    orphaned = host_of(Logging(result=MESSAGES[3:4] + MESSAGES[-1:]))
    answer = orphaned.handle(ContextCall(MESSAGES, mode="force"))
    assert answer.report.repairs
    assert answer.report.compressed


@pytest.mark.parametrize(
    "fields",
    [{"mode": "shrink"}, {"session": "stop"}, {"current_tokens": -1}, {"target_tokens": "many"}, {"session_id": ""}],
)
def test_a_call_that_cannot_be_is_refused_before_an_engine_is_made(fields):
    made = []
    host = ContextHost(lambda: made.append(1) or Logging())
    with pytest.raises(InvalidArgument):
        host.handle(ContextCall(MESSAGES, **fields))
    with pytest.raises(InvalidMessages):
        host.handle(ContextCall([{"role": "x"}]))
    assert made == []


def test_sessions_do_not_share_what_they_remember_and_run_side_by_side():
    host = ContextHost(lambda: ContextCompressor(8_000, {"protect_last_n": 2}))
    answers = {}

    def run(name):
        answers[name] = host.handle(ContextCall(conversation(30), session_id=name, mode="force"))

    threads = [threading.Thread(target=run, args=(f"s{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({json.dumps(a.messages) for a in answers.values()}) == 1
    assert all(host.status(f"s{n}")["compression_count"] == 1 for n in range(6))


def test_the_answer_carries_marks_when_model_and_provider_take_them():
    host = ContextHost(lambda: ContextCompressor(8_000))
    call = ContextCall(MESSAGES, model="claude-sonnet-4-5", provider="anthropic", cache_ttl="1h")
    answer = host.handle(call)
    assert answer.cache.as_dict() == {"state": "enabled", "reason": "Claude at anthropic", "ttl": "1h"}
    assert answer.messages[0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert isinstance(MESSAGES[0]["content"], str)
    plain = host.handle(ContextCall(MESSAGES, model="gpt-5", provider="openai", cache_ttl="5m"))
    assert plain.as_dict()["cache"]["state"] == "disabled"


def test_a_dry_run_is_told_with_its_numbers_and_sends_nothing():
    summarizer = Recording({"done": ["x"]})
    host = ContextHost(lambda: ContextCompressor(8_000, {"protect_last_n": 2}, summarizer=summarizer))
    messages = conversation(40)
    answer = host.handle(ContextCall(messages, mode="dry_run"))
    assert answer.messages is messages
    assert answer.report.dry_run
    assert answer.report.tokens_after < answer.report.tokens_before
    assert summarizer.requests == []


def test_arguments_are_passed_only_to_signatures_that_take_them():
    assert invoke(lambda a: a, 1, b=2) == 1
    assert invoke(lambda a, b=0: a + b, 1, b=2) == 3
    assert invoke(lambda **kw: kw, b=2) == {"b": 2}
    assert invoke(lambda a: a, 1, 2) == 1
