"""Summarisers that ask a model: every way in which the answer can go wrong, against a local server."""

import json
import sys
import threading
import time

import pytest
from fakes.misbehaving_http import MisbehavingServer, Reply

from watchkeeper.context.core.sections import structured
from watchkeeper.context.errors import Cancelled, SummarizerFailed
from watchkeeper.context.summarizers.anthropic import AnthropicSummarizer
from watchkeeper.context.summarizers.calling import Limits
from watchkeeper.context.summarizers.openai import OpenAISummarizer
from watchkeeper.context.summarizers.port import Summarizer, SummaryRequest

PATIENT = Limits(attempt=30, total=60, pause=0.01)
QUICK = Limits(attempt=0.4, total=1.2, pause=0.01)
GOOD = {"goal": ["ship the parser"], "done": ["wrote src/parse.py"]}
TEXT = "user: ship the parser\nassistant: wrote src/parse.py\n" * 20
KEY = "sk-" + "test0123456789abcdefghij"


class OpenAI:
    @staticmethod
    def body(text, stop="stop", tokens=40):
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 300, "completion_tokens": tokens}
        return {"model": "m-1", "choices": [{"message": message, "finish_reason": stop}], "usage": usage}

    full, declined = "length", "content_filter"

    @staticmethod
    def build(url, **kw):
        return OpenAISummarizer("m", base_url=url + "/v1", **({"api_key": KEY, "limits": PATIENT} | kw))

    @staticmethod
    def said(request):
        return json.dumps(request["messages"], ensure_ascii=False)


class Anthropic:
    @staticmethod
    def body(text, stop="end_turn", tokens=40):
        usage = {"input_tokens": 300, "output_tokens": tokens}
        return {"model": "m-1", "content": [{"type": "text", "text": text}], "stop_reason": stop, "usage": usage}

    full, declined = "max_tokens", "refusal"

    @staticmethod
    def build(url, **kw):
        return AnthropicSummarizer("m", base_url=url, **({"api_key": KEY, "limits": PATIENT} | kw))

    @staticmethod
    def said(request):
        return json.dumps([request["system"], request["messages"]], ensure_ascii=False)


@pytest.fixture(params=[OpenAI, Anthropic], ids=["openai", "anthropic"])
def kind(request):
    return request.param


def request(**changes):
    return SummaryRequest(**({"text": TEXT, "text_tokens": 400, "max_tokens": 200} | changes))


ANSWER = json.dumps(GOOD)


def reply(kind, text=ANSWER, **changes):
    return Reply(json.dumps(kind.body(text, **changes)).encode())


def test_a_good_answer_becomes_a_structured_summary_with_the_providers_counts(kind):
    with MisbehavingServer(reply(kind)) as server:
        summarizer = kind.build(server.url)
        assert isinstance(summarizer, Summarizer)
        summary = summarizer.summarize(request())
        assert summary.content == structured(GOOD)
        assert (summary.model, summary.input_tokens, summary.output_tokens) == ("m-1", 300, 40)
        assert TEXT.split("\n")[0] in kind.said(server.requests[0])


ERROR = b'{"error": {"type": "x", "message": "no, not with %s"}}' % KEY.encode()
HUGE = json.dumps({"goal": ["x" * 40_000]})


@pytest.mark.parametrize(
    ("wrong", "failure", "attempts"),
    [
        (Reply(ERROR, 401), "authentication", 1),
        (Reply(ERROR, 403), "authentication", 1),
        (Reply(ERROR, 404), "unavailable", 1),
        (Reply(b'{"error": {"message": "maximum context length exceeded"}}', 400), "window", 1),
        (Reply(ERROR, 429), "quota", 2),
        (Reply(b'{"error": {"message": "pay", "code": "insufficient_quota"}}', 429), "quota", 1),
        (Reply(ERROR, 500), "network", 2),
        (Reply(b"<html>busy</html>", 503), "network", 2),
        (Reply(never=True), "timeout", 2),
        (Reply(drop=True), "network", 2),
        (Reply(b'{"choices": ' + b" " * 500, cut=200), "network", 2),
        (Reply(b" " * 2000, drip=True), "timeout", 2),
        (Reply(b'{"choices": [{"mess'), "malformed", 1),
        (Reply(b"<html>hello</html>"), "malformed", 1),
        (Reply(b"[]"), "malformed", 1),
        (Reply(b'{"choices": [], "content": 5}'), "malformed", 1),
        (Reply(b'"' + b"x" * 5_000_000 + b'"'), "oversized", 1),
    ],
    ids=lambda value: f"{value.status}-{value.body[:24]!r}" if isinstance(value, Reply) else str(value),
)
def test_a_failure_of_the_provider_is_told_by_its_kind_without_the_key(kind, wrong, failure, attempts):
    with MisbehavingServer(wrong) as server:
        slow = wrong.never or wrong.drip
        with pytest.raises(SummarizerFailed) as caught:
            kind.build(server.url, limits=QUICK if slow else PATIENT).summarize(request())
        assert caught.value.kind == failure
        assert len(server.requests) == attempts or (slow and len(server.requests) < attempts)
        assert KEY not in caught.value.message


@pytest.mark.parametrize(
    ("text", "changes", "failure"),
    [
        ("", {}, "empty"),
        ("  \n", {}, "empty"),
        ("{}", {}, "empty"),
        ('{"goal": []}', {}, "empty"),
        ("Sure! Here is the summary: goal ...", {}, "malformed"),
        ('{"goal": {"a": 1}}', {}, "malformed"),
        (json.dumps(GOOD), {"stop": "full"}, "truncated"),
        (json.dumps(GOOD), {"stop": "declined"}, "refused"),
        (HUGE, {}, "oversized"),
        (json.dumps(GOOD), {"tokens": 5000}, "oversized"),
    ],
)
def test_an_answer_that_is_no_summary_is_refused_and_not_asked_for_again(kind, text, changes, failure):
    if "stop" in changes:
        changes = {"stop": getattr(kind, changes["stop"])}
    with MisbehavingServer(reply(kind, text, **changes)) as server:
        with pytest.raises(SummarizerFailed) as caught:
            kind.build(server.url).summarize(request())
        assert caught.value.kind == failure
        assert len(server.requests) == 1


def test_what_passes_by_itself_is_asked_once_more(kind):
    with MisbehavingServer(Reply(b"{}", 500), reply(kind)) as server:
        assert kind.build(server.url).summarize(request()).content == structured(GOOD)
    with MisbehavingServer(Reply(drop=True), reply(kind)) as server:
        assert kind.build(server.url).summarize(request()).content == structured(GOOD)


def test_a_server_that_asks_for_a_long_pause_does_not_break_the_total_limit(kind):
    with MisbehavingServer(Reply(ERROR, 429, {"retry-after": "3600"})) as server:
        with pytest.raises(SummarizerFailed) as caught:
            kind.build(server.url, limits=Limits(attempt=30, total=2)).summarize(request())
        assert caught.value.kind in ("quota", "timeout")


def test_cancelling_ends_a_call_that_waits(kind):
    with MisbehavingServer(Reply(never=True)) as server:
        slow = kind.build(server.url, limits=Limits(attempt=60, total=60))
        started = time.monotonic()
        with pytest.raises(Cancelled):
            slow.summarize(request(cancelled=server.arrived.is_set))
        assert time.monotonic() - started < 30  # a hang guard: the limits are 60 s
        with pytest.raises(Cancelled):
            slow.summarize(request(cancelled=lambda: True))
        assert len(server.requests) == 1


def test_secrets_are_taken_out_of_everything_that_is_sent_and_notes_are_capped(kind):
    secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    with MisbehavingServer(reply(kind)) as server:
        kind.build(server.url).summarize(
            request(
                text=TEXT + f"user: use {secret}",
                memory_context=f"password = 'hunter2' {secret} " + "note " * 5000,
                focus_topic=f"the token {secret}",
                previous=structured({"critical": [f"token {secret}"]}),
            )
        )
        said = kind.said(server.requests[0])
        assert secret not in said
        assert "hunter2" not in said
        assert 1000 < said.count("note ") < 1250
        assert "characters cut" in said


def test_keys_come_from_the_environment_and_a_missing_one_is_told(kind, monkeypatch):
    name = "OPENAI_API_KEY" if kind is OpenAI else "ANTHROPIC_API_KEY"
    monkeypatch.setenv(name, "from-the-environment")
    with MisbehavingServer(reply(kind)) as server:
        kind.build(server.url, api_key=None).summarize(request())
        sent = server.headers[0]
        assert "from-the-environment" in sent.get("authorization", "") + sent.get("x-api-key", "")
    monkeypatch.delenv(name)
    with pytest.raises(SummarizerFailed) as caught:
        (OpenAISummarizer("m") if kind is OpenAI else AnthropicSummarizer("m")).summarize(request())
    assert (caught.value.kind, caught.value.hint) == ("authentication", f"set {name}")


def test_a_server_that_is_not_there_is_a_network_failure(kind):
    with MisbehavingServer(reply(kind)) as server:
        gone = server.url
    with pytest.raises(SummarizerFailed) as caught:
        kind.build(gone).summarize(request())
    assert caught.value.kind == "network"


def test_a_part_that_does_not_fit_the_window_is_never_sent(kind):
    with MisbehavingServer(reply(kind)) as server:
        with pytest.raises(SummarizerFailed) as caught:
            kind.build(server.url, window=500).summarize(request())
        assert (caught.value.kind, server.requests) == ("window", [])


def test_many_calls_run_at_once(kind):
    with MisbehavingServer(reply(kind)) as server:
        summarizer = kind.build(server.url, limits=Limits(attempt=20, total=30))
        results = []
        threads = [threading.Thread(target=lambda: results.append(summarizer.summarize(request()))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert [r.content for r in results] == [structured(GOOD)] * 8


def test_the_sdk_is_imported_only_when_asked_and_its_absence_names_the_extra(kind, monkeypatch):
    package = kind.__name__.lower()
    with MisbehavingServer(reply(kind)) as server:
        monkeypatch.setitem(sys.modules, package, None)
        summarizer = kind.build(server.url)
        with pytest.raises(SummarizerFailed) as caught:
            summarizer.summarize(request())
        assert (caught.value.kind, caught.value.hint) == ("unavailable", f"pip install 'watchkeeper[{package}]'")
