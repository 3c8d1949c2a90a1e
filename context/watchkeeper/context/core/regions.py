"""Head, middle and tail of a conversation: where a compaction may cut.

Rules:
- The head is the system prompt and the first exchange. One that would split a call from its results ends before it.
- The tail is walked back from the end in blocks (an assistant message with its results, or one other message), which
  are never split. It takes blocks within its budget, more until it has its least number of messages, none above its
  cap.
- The newest block is in the tail, unless it is finished and no cut would make it fit; calls that still run always are.
  The last user message always stays, in the tail or pinned before it.
- A tail that begins inside the newest turn begins, if the turn thinks, with a message that begins with thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from watchkeeper.context.core.budget import Budgets
from watchkeeper.context.core.messages import INSTRUCTION_ROLES, calls_of, content_text
from watchkeeper.context.core.validity import THINKING, has_thinking, newest_turn

_Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Regions:
    """Index ranges: the head ends before `head`, the tail begins at `tail`, `pinned` is a user message between them."""

    head: int
    tail: int
    pinned: int | None = None

    @property
    def middle(self) -> range:
        return range(self.head, self.tail)

    @property
    def summarised(self) -> list[int]:
        """The indices of the middle without the pinned message."""
        return [i for i in self.middle if i != self.pinned]


def head_end(messages: _Messages, protect_first_n: int) -> int:
    """Where the head ends: all leading system messages and `protect_first_n - 1` more."""
    lead = 0
    while lead < len(messages) and messages[lead]["role"] in INSTRUCTION_ROLES:
        lead += 1
    end = min(len(messages), lead + max(0, protect_first_n - 1))
    start = block_start(messages, end)
    if start < end:
        return start
    if end > lead and calls_of(messages[end - 1]):
        return end - 1
    return end


def block_start(messages: _Messages, index: int) -> int:
    """The start of the block that `index` would cut; `index` itself if it stands between blocks."""
    while 0 < index < len(messages) and messages[index]["role"] == "tool":
        index -= 1
    return index


def blocks_back(messages: _Messages, stop: int) -> list[tuple[int, int]]:
    """Blocks as (start, end), from the last one back to `stop`."""
    out = []
    end = len(messages)
    while end > stop:
        start = max(stop, block_start(messages, end - 1))
        out.append((start, end))
        end = start
    return out


def last_user(messages: _Messages) -> int | None:
    """The index of the last user message with text."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and content_text(messages[index].get("content")).strip():
            return index
    return None


def running_calls(messages: _Messages) -> int | None:
    """The index of the assistant message whose calls still wait for results, if the list ends with one."""
    index = len(messages) - 1
    answered = set()
    while index >= 0 and messages[index]["role"] == "tool":
        answered.add(messages[index]["tool_call_id"])
        index -= 1
    if index >= 0 and any(call["id"] not in answered for call in calls_of(messages[index])):
        return index
    return None


def regions(messages: _Messages, *, protect_first_n: int, budgets: Budgets, size: Callable[[int], int]) -> Regions:
    """Where to cut. `size(index)` is the tokens that a message would have in the tail; asked for the tail only."""
    head = head_end(messages, protect_first_n)
    tail = len(messages)
    used = 0
    for start, end in blocks_back(messages, head):
        cost = sum(size(i) for i in range(start, end))
        newest = end == len(messages)
        full = used + cost > budgets.tail and len(messages) - end >= budgets.tail_messages
        over = used + cost > budgets.tail_cap
        if (over or full) and not newest:
            break
        finished = messages[start]["role"] == "assistant" and running_calls(messages) is None
        if newest and finished and cost > 2 * budgets.tail_cap:
            break  # so many calls at once that even cut they are too large: they are told in the record
        tail, used = start, used + cost
    tail = _thinking_start(messages, tail)
    if tail <= head:
        return Regions(head, head)
    pinned = last_user(messages)
    return Regions(head, tail, pinned if pinned is not None and head <= pinned < tail else None)


def _thinking_start(messages: _Messages, tail: int) -> int:
    """`tail`, moved on to a message that begins with thinking if it cuts a newest turn that thinks."""
    turn = newest_turn(messages)
    if tail <= turn or not any(has_thinking(m) for m in messages[tail:]):
        return tail
    for index in range(tail, len(messages)):
        content = messages[index].get("content")
        first = content[0] if isinstance(content, list | tuple) and content else None
        if isinstance(first, Mapping) and first.get("type") in THINKING:
            return index
    return tail


__all__ = ["Regions", "block_start", "blocks_back", "head_end", "last_user", "regions", "running_calls"]
