"""Prompt cache marks, strategy `system_and_3`: the system prompt and the last three other messages.

Rules:
- At most four marks; earlier ones are taken off first. None stands on a thinking block.
- A message that cannot carry a mark passes it to the one before: a blank one has nothing to mark, and a tool message
  can carry one natively (at Anthropic) only.
- The input is deep-copied, never changed.

Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from watchkeeper.context.core.messages import INSTRUCTION_ROLES, Message, calls_of
from watchkeeper.context.core.validity import THINKING
from watchkeeper.context.errors import InvalidArgument

CacheTtl = Literal["5m", "1h"]
CACHE_TTLS: Final[tuple[CacheTtl, ...]] = get_args(CacheTtl)
RECENT: Final = 3
_TAKES_MARKS: Final = frozenset({"anthropic", "openrouter"})


@dataclass(frozen=True, slots=True)
class CacheDecision:
    """Whether marks are set, why, with which lifetime, and whether tool messages can carry them."""

    enabled: bool
    reason: str
    ttl: CacheTtl = "5m"
    native: bool = False

    def as_dict(self) -> dict[str, Any]:
        state = "enabled" if self.enabled else "disabled"
        return {"state": state, "reason": self.reason, "ttl": self.ttl if self.enabled else None}


def decide_caching(model: str, provider: str, ttl: str = "5m") -> CacheDecision:
    """Marks are for Claude models at providers that take `cache_control`.

    Raises:
        InvalidArgument: a lifetime that does not exist.
    """
    lifetime = next((t for t in CACHE_TTLS if t == ttl), None)
    if lifetime is None:
        raise InvalidArgument(f"cache_ttl is {ttl!r:.40}", f"it is one of {', '.join(CACHE_TTLS)}")
    name = provider.strip().lower()
    if not name:
        return CacheDecision(False, "no provider was named; pass provider to have marks set")
    if name not in _TAKES_MARKS:
        return CacheDecision(False, f"{name} does not take cache_control marks")
    if "claude" not in model.lower():
        return CacheDecision(False, f"{model or 'an unnamed model'} is not a Claude model")
    return CacheDecision(True, f"Claude at {name}", lifetime, native=name == "anthropic")


def mark(messages: Sequence[Message], *, ttl: CacheTtl = "5m", native: bool = False) -> list[Message]:
    """A deep copy with marks on the last system message and the last three others that can carry one."""
    # Copied one by one: a part object that two messages share must not be marked in both.
    out = [_unmarked(copy.deepcopy(m)) for m in messages]
    marker: dict[str, Any] = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    lead = 0
    while lead < len(out) and out[lead]["role"] in INSTRUCTION_ROLES:
        lead += 1
    for indices, wanted in ((range(lead - 1, -1, -1), 1), (range(len(out) - 1, lead - 1, -1), RECENT)):
        left = wanted
        for index in indices:
            if left and (carrying := _marked(out[index], marker, native)) is not None:
                out[index] = carrying
                left -= 1
    return out


def _unmarked(message: Message) -> Message:
    message.pop("cache_control", None)
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            part.pop("cache_control", None)
    return message


def _marked(message: Message, marker: dict[str, Any], native: bool) -> Message | None:
    """The message with a mark; None if it cannot carry one."""
    content = message.get("content")
    if message["role"] == "tool":
        return {**message, "cache_control": dict(marker)} if native else None
    if isinstance(content, str) and content.strip():
        return {**message, "content": [{"type": "text", "text": content, "cache_control": dict(marker)}]}
    if isinstance(content, list):
        for at in range(len(content) - 1, -1, -1):
            part = content[at]
            blank = part.get("type") == "text" and not (part.get("text") or "").strip()
            if part.get("type") not in THINKING and not blank:
                parts = [*content[:at], {**part, "cache_control": dict(marker)}, *content[at + 1 :]]
                return {**message, "content": parts}
        return None
    if calls_of(message):  # nothing but calls: the mark stands on the message
        return {**message, "cache_control": dict(marker)}
    return None


__all__ = ["CACHE_TTLS", "CacheDecision", "CacheTtl", "decide_caching", "mark"]
