"""Summarising the middle with a model: bounded parts in parallel, all of the middle covered and the coverage counted.

Rules:
- What leaves this module for a summariser is redacted. A part, its prompt and its answer fit the model's window.
- Whatever fails, a result comes back: with the parts that worked, and the failures by name. The extractive floor is
  added by the engine in any case.
- A cancelled run raises `Cancelled` within a fraction of a second; answers that come later are dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final

from watchkeeper.context.core.messages import Message, call_arguments, call_name, calls_of, content_text
from watchkeeper.context.core.sections import SECTION_KEYS, StructuredSummary, merge, structured
from watchkeeper.context.errors import Cancelled, SummarizerFailed
from watchkeeper.context.report import SummarizerUse
from watchkeeper.context.summarizers.port import Summarizer, Summary, SummaryRequest

MAX_PART: Final = 40_000
"""Tokens of one part; a larger one is read with less care."""
PARALLEL: Final = 4
UNKNOWN_WINDOW: Final = 32_000
PROMPT_ROOM: Final = 2_000
MEMORY_CONTEXT: Final = 6_000
"""Characters of the host's notes that a summariser is told."""
_POLL: Final = 0.1
_TRIMMED_FIRST: Final = ("done", "files", "critical", "errors", "decisions", "next_steps", "constraints", "in_progress")


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What the model made of the middle; empty content when nothing usable came."""

    content: StructuredSummary
    use: SummarizerUse


@dataclass(frozen=True, slots=True)
class Brief:
    """What every request of one compaction shares."""

    max_tokens: int
    earlier: StructuredSummary
    focus_topic: str | None
    memory_context: str
    count: Callable[[str], int]
    redact: Callable[[str], str]
    cancelled: Callable[[], bool]
    progress: Callable[[float, str], None]


def summarize_middle(summarizer: Summarizer, messages: Sequence[Message], brief: Brief) -> ModelSummary:
    """The middle, summarised as an update of the earlier summary."""
    window = summarizer.window or UNKNOWN_WINDOW
    room = min(MAX_PART, window - brief.max_tokens - PROMPT_ROOM - brief.count(brief.earlier.render()))
    if room < 500:
        failure = f"window: {summarizer.name} has {window:,} tokens, too few for any part of the conversation"
        return ModelSummary(brief.earlier, SummarizerUse(reason=failure, failures=(failure,)))
    texts = list(parts(messages, room, brief))
    first = brief.earlier if len(texts) == 1 else StructuredSummary()
    requests = [
        _request(text, brief, previous=first, part=number, parts=len(texts)) for number, text in enumerate(texts, 1)
    ]
    answers, failures = _ask_all(summarizer, requests, brief)
    done = [a for a in answers if a is not None]
    use = SummarizerUse(
        name=summarizer.name,
        reason="configured",
        parts=len(texts),
        parts_done=len(done),
        input_tokens=sum(a.input_tokens for a in done),
        output_tokens=sum(a.output_tokens for a in done),
        failures=tuple(failures),
    )
    if not done:
        reason = f"{summarizer.name} gave nothing usable ({failures[0]})"
        return ModelSummary(brief.earlier, replace(use, name="extractive", reason=reason))
    content = done[0].content
    for answer in done[1:]:
        content = merge(content, answer.content)
    if len(texts) > 1:
        content, use = _consolidated(summarizer, content, use, brief)
    return ModelSummary(fit(content, brief.max_tokens, brief.count), use)


def _consolidated(
    summarizer: Summarizer, digests: StructuredSummary, use: SummarizerUse, brief: Brief
) -> tuple[StructuredSummary, SummarizerUse]:
    """One summary of all parts and the earlier one; merged without a model if that fails or nothing needs it."""
    merged = merge(brief.earlier, digests)
    if brief.count(merged.render()) <= brief.max_tokens and not brief.earlier:
        return merged, use
    text = fit(digests, MAX_PART // 2, brief.count).render()
    (answer,), failures = _ask_all(summarizer, [_request(text, brief, previous=brief.earlier)], brief)
    use = replace(use, failures=(*use.failures, *failures))
    if answer is None:
        return merged, use
    return answer.content, replace(
        use,
        input_tokens=use.input_tokens + answer.input_tokens,
        output_tokens=use.output_tokens + answer.output_tokens,
    )


def _request(text: str, brief: Brief, *, previous: StructuredSummary, part: int = 1, parts: int = 1) -> SummaryRequest:
    return SummaryRequest(
        text=text,
        text_tokens=brief.count(text),
        max_tokens=brief.max_tokens,
        previous=previous,
        focus_topic=brief.redact(brief.focus_topic) if brief.focus_topic else None,
        memory_context=brief.redact(brief.memory_context)[:MEMORY_CONTEXT],
        part=part,
        parts=parts,
        cancelled=brief.cancelled,
    )


def _ask_all(
    summarizer: Summarizer, requests: Sequence[SummaryRequest], brief: Brief
) -> tuple[list[Summary | None], list[str]]:
    """The answers by request, None for one that failed, and why."""
    answers: list[Summary | None] = [None] * len(requests)
    failures: list[str] = []
    hopeless = threading.Event()
    pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="summarizer")
    try:
        waiting: dict[Future[Summary], int] = {
            pool.submit(_ask, summarizer, request, brief, hopeless): number for number, request in enumerate(requests)
        }
        while waiting:
            if brief.cancelled():
                raise Cancelled
            finished, _ = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
            for future in finished:
                number = waiting.pop(future)
                try:
                    answers[number] = future.result()
                except SummarizerFailed as failure:
                    if brief.cancelled():
                        raise Cancelled from None
                    reason = f"{failure.kind}: {failure.message}"
                    if reason not in failures:
                        failures.append(reason)
                brief.progress(
                    1 - len(waiting) / len(requests), f"part {len(requests) - len(waiting)} of {len(requests)}"
                )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return answers, failures


def _ask(summarizer: Summarizer, request: SummaryRequest, brief: Brief, hopeless: threading.Event) -> Summary:
    """One answer, checked. What failed for good (`hopeless`) is not asked again for the other parts."""
    if hopeless.is_set():
        raise SummarizerFailed("unavailable", "the other parts were not tried")
    try:
        answer = summarizer.summarize(request)
    except SummarizerFailed as failure:
        if failure.kind in ("authentication", "quota", "unavailable"):
            hopeless.set()
        raise
    except Cancelled:
        raise
    except Exception as error:
        raise SummarizerFailed(
            "malformed", f"{summarizer.name} raised {type(error).__name__}: {error!s:.200}"
        ) from error
    if not isinstance(answer, Summary) or not answer.content:
        raise SummarizerFailed("empty", f"{summarizer.name} gave no summary")
    size = brief.count(answer.content.render())
    if size > request.max_tokens * 1.25 or size >= request.text_tokens + brief.count(request.previous.render()):
        raise SummarizerFailed("oversized", f"a summary of {size:,} tokens for a part of {request.text_tokens:,}")
    return answer


# --- the conversation as text -------------------------------------------------------------------------


def parts(messages: Sequence[Message], room: int, brief: Brief) -> Iterator[str]:
    """The messages as redacted text in parts of at most `room` tokens; a long message goes on in the next part."""
    held: list[str] = []
    used = 0
    for text in spoken(messages):
        text = brief.redact(text)
        for piece in _pieces(text, room, brief.count):
            cost = brief.count(piece) + 2
            if held and used + cost > room:
                yield "\n\n".join(held)
                held, used = [], 0
            held.append(piece)
            used += cost
    if held:
        yield "\n\n".join(held)


def _pieces(text: str, room: int, count: Callable[[str], int]) -> Iterator[str]:
    if len(text) <= room or count(text) <= room - 2:
        yield text
        return
    size = max(200, int(len(text) * (room - 8) / count(text) * 0.9))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def spoken(messages: Sequence[Message]) -> Iterator[str]:
    """Each message as text with its speaker; system messages are the host's, and stay."""
    tools: dict[str, str] = {}
    for message in messages:
        text = content_text(message.get("content")).strip()
        if message["role"] == "tool":
            yield f"[result of {tools.get(message['tool_call_id'], 'a call')}]\n{text}"
            continue
        if message["role"] in ("user", "assistant") and text:
            yield f"[{message['role']}]\n{text}"
        for call in calls_of(message):
            tools[call["id"]] = call_name(call)
            yield f"[call of {call_name(call)}]\n{call_arguments(call)}"


def fit(summary: StructuredSummary, tokens: int, count: Callable[[str], int]) -> StructuredSummary:
    """The summary in at most `tokens` tokens: the oldest items of the longest-lived sections go first."""
    sections = {key: list(summary.sections.get(key, ())) for key in SECTION_KEYS}
    while count(structured(sections).render()) > tokens:
        longest = max(_TRIMMED_FIRST, key=lambda key: len(sections[key]))
        if not sections[longest]:
            break
        del sections[longest][: max(1, len(sections[longest]) // 5)]
    return structured(sections)


__all__ = ["MEMORY_CONTEXT", "Brief", "ModelSummary", "fit", "parts", "spoken", "summarize_middle"]
