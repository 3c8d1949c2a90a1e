"""How many tokens each part of a compacted conversation may have.

Rules:
- Budgets are derived from the context length when they are needed, and never stored: a model may change in between.
- All numbers are tokens unless they are called ratios (of 1).
- A target (or the window itself) is a cap on the whole result and overrides every floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

TailMode = Literal["legacy", "lean"]

HYGIENE_RATIO: Final = 0.85
"""Share of the window at which a conversation is compacted before a request, whatever the threshold is."""
HYGIENE_MESSAGES: Final = 4
"""Below this many messages hygiene does nothing."""
SUMMARY_RATIO: Final = 0.20
SUMMARY_LEAST: Final = 2_000
SUMMARY_MOST: Final = 12_000
SUMMARY_WINDOW_RATIO: Final = 0.05
LEAN_RATIO: Final = 0.025
LEAN_LEAST: Final = 10_000
LEAN_MOST: Final = 25_000
TAIL_CAP: Final = 1.5
"""The tail never has more than this times its budget; a message alone above it is cut inside."""

# With a target: what the head may have of it before it is cut, and how the rest is shared.
TARGET_HEAD: Final = 0.15
TARGET_TAIL: Final = 0.15
TARGET_LAST_USER: Final = 0.75


@dataclass(frozen=True, slots=True)
class Budgets:
    """What applies to one compaction.

    Attributes:
        cap: the most the whole result may have.
        head: the most the head may have; what is longer is cut inside.
        tail: what the tail should have.
        tail_messages: how many messages the tail has at least, while it is below `TAIL_CAP` times its budget.
        last_user: the most the last user message may have.
        targeted: the caller named a target: the summary takes all the room that is left.
    """

    cap: int
    head: int
    tail: int
    tail_messages: int
    last_user: int
    targeted: bool

    @property
    def tail_cap(self) -> int:
        return int(self.tail * TAIL_CAP)


def threshold_tokens(context_length: int, ratio: float) -> int:
    return int(context_length * ratio)


def hygiene_tokens(context_length: int) -> int:
    return int(context_length * HYGIENE_RATIO)


def tail_budget(mode: TailMode, context_length: int, threshold: int, target_ratio: float) -> int:
    """Legacy: a share of the threshold. Lean: 2.5% of the window within bounds, and never above a third of it."""
    if mode == "legacy":
        return int(threshold * target_ratio)
    return min(max(int(context_length * LEAN_RATIO), LEAN_LEAST), LEAN_MOST, context_length // 3)


def summary_budget(middle: int, context_length: int) -> int:
    """A fifth of what is summarised, within bounds; in small windows the upper bound wins."""
    most = min(int(context_length * SUMMARY_WINDOW_RATIO), SUMMARY_MOST)
    return min(max(int(middle * SUMMARY_RATIO), SUMMARY_LEAST), most)


def budgets(
    *,
    mode: TailMode,
    context_length: int,
    threshold: int,
    target_ratio: float,
    protect_last_n: int,
    target_tokens: int | None,
) -> Budgets:
    """The budgets of one compaction."""
    tail = tail_budget(mode, context_length, threshold, target_ratio)
    if target_tokens is None:
        return Budgets(
            cap=context_length,
            # Head, tail, last request and record together stay below the threshold: above it they would be due again.
            head=threshold // 4,
            tail=tail,
            tail_messages=protect_last_n if mode == "legacy" else 1,
            last_user=tail,
            targeted=False,
        )
    cap = min(target_tokens, context_length)
    return Budgets(
        cap=cap,
        head=int(cap * TARGET_HEAD),
        tail=min(tail, int(cap * TARGET_TAIL)),
        tail_messages=1,
        last_user=int(cap * TARGET_LAST_USER),
        targeted=True,
    )


__all__ = [
    "HYGIENE_MESSAGES",
    "HYGIENE_RATIO",
    "LEAN_LEAST",
    "LEAN_MOST",
    "LEAN_RATIO",
    "SUMMARY_LEAST",
    "SUMMARY_MOST",
    "SUMMARY_RATIO",
    "SUMMARY_WINDOW_RATIO",
    "TAIL_CAP",
    "Budgets",
    "TailMode",
    "budgets",
    "hygiene_tokens",
    "summary_budget",
    "tail_budget",
    "threshold_tokens",
]
