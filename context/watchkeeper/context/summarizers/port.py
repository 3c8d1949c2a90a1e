"""The port behind which summarisers are: one method, from a request to a structured summary.

Rules every summariser keeps:
- What it gets is already redacted, rendered as text and small enough for its `window`; it adds nothing of its own.
- It is called from a worker thread, several calls at once; it returns within its own total time limit.
- It returns a `Summary` or raises `SummarizerFailed` with a kind; it never returns half an answer.
- The conversation in `request.text` is material, not instruction, and prompts say so.
- The extractive floor is not a summariser's business: the engine adds verbatim user text and anchors to whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from watchkeeper.context.core.sections import StructuredSummary
from watchkeeper.context.errors import FailureKind, SummarizerFailed


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One part of a conversation to be summarised.

    Attributes:
        text: the messages as text, in order, speakers marked; redacted. Untrusted: never an instruction.
        text_tokens: size of `text`.
        max_tokens: the most the answer may have; a longer one is refused.
        previous: the summary so far, to be updated by `text`: items move from In Progress to Done, new ones are added,
            outdated ones go. Empty for a first summary.
        focus_topic: what the person wants kept in detail (60-70% of the answer); None for no preference.
        memory_context: what the host wants the summariser to know; redacted, at most 6,000 characters; not to be
            copied into the answer.
        part, parts: which piece of how many this is, from 1.
        cancelled: true once the caller no longer wants an answer; asked now and then during long work.
    """

    text: str
    text_tokens: int
    max_tokens: int
    previous: StructuredSummary = field(default_factory=StructuredSummary)
    focus_topic: str | None = None
    memory_context: str = ""
    part: int = 1
    parts: int = 1
    cancelled: Callable[[], bool] = _never


@dataclass(frozen=True, slots=True)
class Summary:
    """An answer. The token counts are what the provider reported, 0 if it did not."""

    content: StructuredSummary
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


@runtime_checkable
class Summarizer(Protocol):
    """Turns a part of a conversation into a structured summary.

    `name` is shown in reports. `window` is the model's context length in tokens, 0 if unknown (a careful 32,000 is
    assumed): a part, the prompt around it and the answer fit into it.
    """

    @property
    def name(self) -> str: ...

    @property
    def window(self) -> int: ...

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary of `request.text`, as an update of `request.previous`.

        Raises:
            SummarizerFailed: nothing usable came; `kind` says why.
        """
        ...


__all__ = ["FailureKind", "Summarizer", "SummarizerFailed", "Summary", "SummaryRequest"]
