"""Settings of the compressor, with their ranges: refused by name before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from watchkeeper.context.core.budget import TailMode
from watchkeeper.context.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class CompressorSettings:
    """`compression.*`.

    Attributes:
        enabled: whether automatic compaction happens at all.
        threshold: share of the context length at which a conversation is compacted after a response.
        target_ratio: legacy tail budget as a share of the threshold.
        protect_last_n: messages that a legacy tail has at least.
        tail_mode: `legacy` keeps a large tail verbatim; `lean` a small one and more in the record.
        prune_threshold: tokens at which old tool results are cleared on their own; None for never.
    """

    enabled: bool = True
    threshold: float = 0.50
    target_ratio: float = 0.20
    protect_last_n: int = 20
    tail_mode: TailMode = "legacy"
    prune_threshold: int | None = None

    def __post_init__(self) -> None:
        _range("threshold", self.threshold, 0.0, 1.0, open_low=True)
        _range("target_ratio", self.target_ratio, 0.10, 0.80)
        if not _is_int(self.protect_last_n) or self.protect_last_n < 1:
            raise _bad("protect_last_n", self.protect_last_n, "a number of messages, at least 1")
        if self.tail_mode not in ("legacy", "lean"):
            raise _bad("tail_mode", self.tail_mode, "legacy or lean")
        if not isinstance(self.enabled, bool):
            raise _bad("enabled", self.enabled, "true or false")
        if self.prune_threshold is not None and (not _is_int(self.prune_threshold) or self.prune_threshold < 1):
            raise _bad("prune_threshold", self.prune_threshold, "a number of tokens, or null")


def settings_from(values: Mapping[str, Any]) -> CompressorSettings:
    """Settings from a free-form mapping.

    Raises:
        InvalidArgument: an unknown name (the hint has the nearest) or a value out of range.
    """
    known = [f.name for f in fields(CompressorSettings)]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            raise InvalidArgument(
                f"the compressor has no setting {str(name)!r}",
                f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
            )
    return CompressorSettings(**values)


def _range(name: str, value: object, low: float, high: float, *, open_low: bool = False) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high or (open_low and value == low):  # type: ignore[operator]
        raise _bad(name, value, f"a number from {low:g} to {high:g}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _bad(name: str, value: object, wanted: str) -> InvalidArgument:
    return InvalidArgument(f"compression.{name} is {value!r:.60}", f"it must be {wanted}")


__all__ = ["CompressorSettings", "settings_from"]
