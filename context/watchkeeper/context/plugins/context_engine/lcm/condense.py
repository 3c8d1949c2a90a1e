"""Making a summary that is smaller than what it stands for.

Rules:
- Three levels: detailed; half of that; a deterministic cut at 512 tokens. The first that is smaller than its source is
  taken, so that a summary always is.
- The extractive floor is part of every level: it is drawn from the originals, also for a summary of summaries, so that
  nothing is copied from a copy. Only where the originals are too many does it read the summaries below.
- A model, if there is one, adds sections; what it says goes through redaction on its way there, and its failure costs
  its part only and is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from watchkeeper.context.core.evidence import harvest
from watchkeeper.context.core.sections import StructuredSummary, merge
from watchkeeper.context.core.source_lines import parts_of
from watchkeeper.context.errors import SummarizerFailed
from watchkeeper.context.redact import redact
from watchkeeper.context.summarizers.port import Summarizer, SummaryRequest

LAST_RESORT = 512
_WINDOW = 32_000
_PROMPT = 1_500
_PARALLEL = 4


@dataclass(frozen=True)
class Condensed:
    """A summary's text, its size, who wrote it, and what went wrong with the model if anything did."""

    text: str
    tokens: int
    level: int
    writer: str
    failure: str = ""


@dataclass(frozen=True)
class Brief:
    """What the summaries are made for.

    Attributes:
        count: tokens of a text.
        summarizer: None for the extractive floor alone.
        focus_topic, memory_context: see `SummaryRequest`.
        cancelled: asked between steps.
    """

    count: Callable[[str], int]
    summarizer: Summarizer | None = None
    focus_topic: str | None = None
    memory_context: str = ""
    cancelled: Callable[[], bool] = lambda: False


def condense(messages: Sequence[dict[str, Any]], source_tokens: int, budget: int, brief: Brief) -> Condensed:
    """A summary of `messages` in about `budget` tokens, in any case fewer than `source_tokens`.

    Raises:
        Cancelled: from the summariser.
    """
    written, failure = StructuredSummary(), ""
    for level, room in ((1, budget), (2, budget // 2)):
        if brief.summarizer is not None and not failure:
            try:
                written = _ask(messages, room // 2, brief, brief.summarizer)
            except SummarizerFailed as error:
                failure = f"{brief.summarizer.name}: {error.message}"
        text = _with_floor(written, messages, room, brief)
        tokens = brief.count(text)
        if 0 < tokens < source_tokens and tokens <= 2 * room:
            writer = brief.summarizer.name if brief.summarizer is not None and written else "extractive"
            return Condensed(text, tokens, level, writer, failure)
    text = cut_to(
        _with_floor(StructuredSummary(), messages, LAST_RESORT, brief) or _plain(messages),
        _least(source_tokens),
        brief.count,
    )
    return Condensed(text, brief.count(text), 3, "extractive", failure)


def cut_to(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """The beginning of `text`, in at most `tokens` tokens, ending with a mark if something was cut."""
    if count(text) <= tokens:
        return text
    mark = " […]"
    length = len(text)
    while length > 0:
        length = min(length - 1, length * tokens // max(1, count(text[:length] + mark)))
        if count(text[:length] + mark) <= tokens:
            break
    return text[:length] + mark


def _least(source_tokens: int) -> int:
    return max(1, min(LAST_RESORT, source_tokens // 2))


def _with_floor(written: StructuredSummary, messages: Sequence[dict[str, Any]], room: int, brief: Brief) -> str:
    model = written.render() if written else ""
    left = room - brief.count(model) if model else room
    floor = harvest(messages, budget=max(100, left), count=brief.count, focus_topic=brief.focus_topic).render()
    return "\n\n".join(filter(None, (model, floor)))


def _ask(messages: Sequence[dict[str, Any]], most: int, brief: Brief, summarizer: Summarizer) -> StructuredSummary:
    window = (summarizer.window or _WINDOW) - _PROMPT - most - brief.count(brief.memory_context)
    texts = _split(_plain(messages), max(1_000, int(window * 0.8)), brief.count)
    each = max(200, most // len(texts))

    def part(number: int) -> StructuredSummary:
        text = redact(texts[number])
        request = SummaryRequest(
            text=text,
            text_tokens=brief.count(text),
            max_tokens=each,
            focus_topic=brief.focus_topic,
            memory_context=brief.memory_context,
            part=number + 1,
            parts=len(texts),
            cancelled=brief.cancelled,
        )
        return summarizer.summarize(request).content

    with ThreadPoolExecutor(min(_PARALLEL, len(texts)), thread_name_prefix="lcm-part") as pool:
        answers = list(pool.map(part, range(len(texts))))
    whole = answers[0]
    for answer in answers[1:]:
        whole = merge(whole, answer)
    return whole


def _plain(messages: Sequence[dict[str, Any]]) -> str:
    """Messages as text, speakers marked."""
    return "\n\n".join(f"[{part.tool or part.speaker}] {part.text}" for part in parts_of(messages))


def _split(text: str, tokens: int, count: Callable[[str], int]) -> list[str]:
    """Pieces of at most about `tokens`, cut at line ends; together they are the text."""
    total = count(text)
    if total <= tokens:
        return [text]
    size = max(1, len(text) * tokens // total)
    out: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            cut = text.rfind("\n", start + size // 2, end)
            end = cut + 1 if cut > start else end
        out.append(text[start:end])
        start = end
    return out
