"""What stays of a conversation, as it will stand: huge messages cut inside, old tool output cleared.

Rules:
- A message is looked at when it is asked for: a long conversation costs what its head and tail cost.
- Whatever differs from the original is noted by index, with the reason.
- The newest tool results, user messages and running calls are cut only where they exceed their share of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchkeeper.context.core.budget import Budgets
from watchkeeper.context.core.cutting import cut_message
from watchkeeper.context.core.messages import INSTRUCTION_ROLES, Message, calls_of, content_text
from watchkeeper.context.core.pruning import CLEARED, STUB_FROM, Recover, stub
from watchkeeper.context.core.quotes import typed_text
from watchkeeper.context.core.regions import block_start, last_user
from watchkeeper.context.tokens import TokenCount, message_tokens

KEEP_RESULTS: Final = 6
"""Newest tool results that a lean or targeted tail shows verbatim."""
LEAST_CUT: Final = 48
"""Tokens below which no message is cut."""


class View:
    """The messages as they would stand in head and tail under given budgets; counted when asked.

    Args:
        messages: the list without records.
        budgets: of the head and the tail.
        lean: only the newest tool results are shown verbatim.
        count: tokens of a text.
        recover: how the original of a message is got back, for its stub.
    """

    def __init__(
        self, messages: list[Message], budgets: Budgets, *, lean: bool, count: TokenCount, recover: Recover
    ) -> None:
        self.messages = messages
        self.budgets = budgets
        self._count = count
        self._recover = recover
        self.changes: dict[int, str] = {}
        self._known: dict[int, tuple[Message, str, int]] = {}
        self._calls = {call["id"]: call for message in messages for call in calls_of(message)}
        results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
        self._stubbed = set(results[:-KEEP_RESULTS]) if lean else set()

    def _size(self, message: Message) -> int:
        return message_tokens(message, self._count)

    def size(self, index: int) -> int:
        return self._view(index)[2]

    def kept(self, indices: Sequence[int]) -> list[Message]:
        """The messages as they will stand; what differs from the original is noted."""
        out = []
        for index in indices:
            message, what, _ = self._view(index)
            if what:
                self.changes[index] = what
            out.append(message)
        return out

    def head(self, end: int) -> list[Message]:
        """The head within its budget: the largest of its messages are cut first, instructions last."""
        out = self.messages[:end]
        size = self._size
        asked = last_user(self.messages)
        if asked is not None and asked < end:  # the last request is cut by its own limit only
            (out[asked],) = self.kept((asked,))
        for _ in range(2 * len(out)):
            sizes = [0 if i == asked else size(m) for i, m in enumerate(out)]
            over = sum(sizes) - self.budgets.head
            if over <= 0:
                break
            # Instructions are the last to be cut.
            spoken = [i for i in range(end) if out[i]["role"] not in INSTRUCTION_ROLES and sizes[i] > 2 * LEAST_CUT]
            largest = max(spoken or range(end), key=lambda i: sizes[i])
            smaller = self._cut(out[largest], max(LEAST_CUT, sizes[largest] - over))
            if size(smaller) >= sizes[largest]:
                break
            out[largest] = smaller
            self.changes[largest] = "cut inside: the head was over its budget"
        return out

    def _view(self, index: int) -> tuple[Message, str, int]:
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._made(index)
        return known

    def _made(self, index: int) -> tuple[Message, str, int]:
        message = self.messages[index]
        size = self._size
        text = content_text(message.get("content")) if index in self._stubbed else ""
        if len(text) > STUB_FROM and not text.startswith(CLEARED):
            call = self._calls.get(message["tool_call_id"])
            cleared = stub(message, text, call, self._recover(index))
            return cleared, "old tool output cleared", size(cleared)
        limit = self.limit(index)
        cut = self._cut(message, limit)
        return cut, "" if cut is message else f"cut inside: over {limit:,} tokens", size(cut)

    def _cut(self, message: Message, limit: int) -> Message:
        """The message within a limit; of a user message, what the host put in goes before what a person typed."""
        content = message.get("content")
        if message["role"] == "user" and isinstance(content, str) and self._size(message) > limit:
            typed = typed_text(content)
            if typed and len(typed) < len(content):
                note = f"[… {len(content) - len(typed):,} characters that the host put in were cut …]"
                message = {**message, "content": f"{note}\n\n{typed}"}
        return cut_message(message, limit, self._count, size=self._size)

    def limit(self, index: int) -> int:
        """The most a message may have: the tail's cap, shared by the messages of a block."""
        message = self.messages[index]
        if message["role"] == "user":
            return max(self.budgets.last_user, 32)
        start = block_start(self.messages, index)
        end = start + 1
        while end < len(self.messages) and self.messages[end]["role"] == "tool":
            end += 1
        return max(LEAST_CUT, self.budgets.tail_cap // (end - start))


__all__ = ["KEEP_RESULTS", "LEAST_CUT", "View"]
