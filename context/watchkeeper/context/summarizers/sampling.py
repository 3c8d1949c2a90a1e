"""Summaries by the model of the host, through a callable that the host hands in.

The protocol behind it (MCP sampling) is the host's business; this module knows none. The callable may be slow, hang or
raise anything: it runs in a thread of its own, and is left behind when the time is up.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from time import monotonic

from watchkeeper.context.errors import Cancelled, ContextError, SummarizerFailed
from watchkeeper.context.redact import redact
from watchkeeper.context.summarizers.calling import Answer, Limits, Prompt, check_window, checked, prompt_for
from watchkeeper.context.summarizers.port import Summary, SummaryRequest

Sample = Callable[[Prompt], Answer]
_POLL = 0.05


class SamplingSummarizer:
    """A summariser that asks the host.

    Args:
        sample: blocks until the host has answered; raises `SummarizerFailed` if it knows why it cannot.
        window: the model's context length in tokens, 0 if unknown.
        limits: only the total counts; a person may have to confirm, so there is no retry.
    """

    name = "sampling"

    def __init__(self, sample: Sample, *, window: int = 0, limits: Limits | None = None) -> None:
        self._sample = sample
        self._window = window
        self._limits = limits or Limits()

    @property
    def window(self) -> int:
        """Tokens; 0 if unknown."""
        return self._window

    def summarize(self, request: SummaryRequest) -> Summary:
        """See `Summarizer.summarize`."""
        check_window(request, self._window)
        prompt = prompt_for(request)
        answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(prompt, answers), daemon=True, name="sampling").start()
        deadline = monotonic() + self._limits.total
        while True:
            if request.cancelled():
                raise Cancelled
            try:
                answer = answers.get(timeout=_POLL)
                break
            except queue.Empty:
                if monotonic() >= deadline:
                    raise SummarizerFailed(
                        "timeout", f"the client did not answer within {self._limits.total:g} s", "raise the time limit"
                    ) from None
        if isinstance(answer, ContextError):
            raise answer
        if isinstance(answer, BaseException):
            detail = redact(f"{type(answer).__name__}: {answer}")[:200]
            raise SummarizerFailed("unavailable", f"the client could not sample ({detail})") from answer
        return checked(request, answer)

    def _run(self, prompt: Prompt, answers: queue.SimpleQueue[Answer | BaseException]) -> None:
        try:
            answers.put(self._sample(prompt))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread, which tells what happened
            answers.put(error)
