"""The summariser that asks the host through a callable."""

import json
import threading

import pytest

from watchkeeper.context.core.sections import structured
from watchkeeper.context.errors import Cancelled, SummarizerFailed
from watchkeeper.context.summarizers.calling import Answer, Limits
from watchkeeper.context.summarizers.port import Summarizer, SummaryRequest
from watchkeeper.context.summarizers.sampling import SamplingSummarizer

GOOD = {"goal": ["ship"]}
REQUEST = SummaryRequest(text="user: ship it, password = 'hunter2'\n" * 30, text_tokens=300, max_tokens=100)


def test_the_hosts_answer_becomes_a_summary_and_secrets_do_not_reach_it():
    seen = []

    def sample(prompt):
        seen.append(prompt)
        return Answer(json.dumps(GOOD), "endTurn", "host-model")

    summarizer = SamplingSummarizer(sample)
    assert isinstance(summarizer, Summarizer)
    summary = summarizer.summarize(REQUEST)
    assert (summary.content, summary.model) == (structured(GOOD), "host-model")
    assert "ship it" in seen[0].user
    assert "hunter2" not in seen[0].user


def test_a_host_that_refuses_hangs_or_cuts_short_is_told_by_kind():
    def declines(_):
        raise SummarizerFailed("refused", "the person declined")

    def breaks(_):
        raise RuntimeError("no sampling here, token = 'abcd1234efgh'")

    forever = threading.Event()

    def hangs(_):
        forever.wait(30)

    limits = Limits(total=0.2)
    cases = [
        (declines, "refused"),
        (breaks, "unavailable"),
        (hangs, "timeout"),
        (lambda _: Answer("x", "maxTokens"), "truncated"),
        (lambda _: Answer("", "endTurn"), "empty"),
    ]
    try:
        for sample, kind in cases:
            with pytest.raises(SummarizerFailed) as caught:
                SamplingSummarizer(sample, limits=limits).summarize(REQUEST)
            assert caught.value.kind == kind
            assert "abcd1234efgh" not in caught.value.message
    finally:
        forever.set()


def test_cancelling_does_not_wait_for_the_host():
    asked, forever = threading.Event(), threading.Event()

    def hangs(_):
        asked.set()
        forever.wait(30)

    request = SummaryRequest(REQUEST.text, 300, 100, cancelled=asked.is_set)
    try:
        with pytest.raises(Cancelled):
            SamplingSummarizer(hangs).summarize(request)
    finally:
        forever.set()
