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
    out = [_unmarked(m) for m in copy.deepcopy(list(messages))]
    marker: dict[str, Any] = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    lead = 0
    while lead < len(out) and out[lead]["role"] in INSTRUCTION_ROLES:
        lead += 1
    for index in range(lead - 1, -1, -1):
        if _set_mark(out[index], marker, native):
            break
    left = RECENT
    for index in range(len(out) - 1, lead - 1, -1):
        if not left:
            break
        left -= _set_mark(out[index], marker, native)
    return out


def _unmarked(message: Message) -> Message:
    message.pop("cache_control", None)
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            part.pop("cache_control", None)
    return message


def _set_mark(message: Message, marker: dict[str, Any], native: bool) -> bool:
    """Mark the message in place; false if it cannot carry a mark."""
    content = message.get("content")
    if message["role"] == "tool":
        if native:
            message["cache_control"] = dict(marker)
        return native
    if isinstance(content, str) and content.strip():
        message["content"] = [{"type": "text", "text": content, "cache_control": dict(marker)}]
        return True
    if isinstance(content, list):
        for part in reversed(content):
            blank = part.get("type") == "text" and not (part.get("text") or "").strip()
            if part.get("type") not in THINKING and not blank:
                part["cache_control"] = dict(marker)
                return True
        return False
    if calls_of(message):  # nothing but calls: the mark stands on the message
        message["cache_control"] = dict(marker)
        return True
    return False


__all__ = ["CACHE_TTLS", "CacheDecision", "CacheTtl", "decide_caching", "mark"]
