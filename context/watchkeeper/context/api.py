"""Compressing a conversation in one call, for those who embed this part without a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .core.messages import Message
from .engine import Progress
from .engines.compressor import ContextCompressor
from .engines.settings import CompressorSettings
from .report import Report
from .summarizers.port import Summarizer


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """`messages` is the very list that came in when nothing was done; `report` says what was done, or why not."""

    messages: list[Message]
    report: Report


def compress_messages(
    messages: Sequence[Message],
    target_tokens: int | None = None,
    *,
    focus_topic: str | None = None,
    memory_context: str = "",
    model: str = "",
    context_length: int | None = None,
    settings: CompressorSettings | dict[str, Any] | None = None,
    summarizer: Summarizer | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> CompressionResult:
    """Compress a conversation now, whatever its size; deterministic, and without network unless a summariser is given.

    Args:
        messages: OpenAI chat messages; never mutated.
        target_tokens: a cap on the whole result, at least 200. Without it the budgets follow from the window.
        focus_topic: what is to be kept in detail.
        memory_context: background for a model-based summariser.
        model: for token counts and the window.
        context_length: the window in tokens, if the model's name does not say.
        settings: `compression.*` by name.
        summarizer: a model-based summariser to add to the extractive floor.
        progress, cancelled: as for `ContextCompressor.compress`.

    Raises:
        InvalidMessages: names the index of the message that has the wrong shape.
        InvalidArgument: another argument cannot be used.
        Cancelled: `cancelled` returned true.
    """
    engine = ContextCompressor(context_length, settings, model=model, summarizer=summarizer)
    result = engine.compress(
        messages,  # type: ignore[arg-type]  # any sequence is checked, and returned as it is when nothing is done
        focus_topic=focus_topic,
        force=True,
        memory_context=memory_context,
        target_tokens=target_tokens,
        progress=progress,
        cancelled=cancelled,
    )
    assert engine.last_report is not None
    return CompressionResult(result, engine.last_report)


__all__ = ["CompressionResult", "compress_messages"]
