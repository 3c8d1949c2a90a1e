"""Following a conversation: which messages of the host's list the archive knows, and where they stand.

Rules:
- What the host gives is recorded before anything else is done with it.
- The host's list holds originals, messages as we last showed them (a summary, a set-aside text, a repaired turn), and
  new ones at the end. Shown ones are recognised and stand for their originals; they are not recorded again.
- A list that leaves the recorded history (the person went back and edited) starts another branch: a conversation of its
  own, so that what was abandoned is still found and is in no summary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.context.archive import Archive
from watchkeeper.context.archive.recall import digest_of
from watchkeeper.context.store import Node

from .show import aside_id, aside_message, latest_in, looks_like_summary, node_ids, summary_message

Message = dict[str, Any]
_TOKENS = re.compile(r", [\d,]+ tokens\. lcm_expand")


@dataclass(frozen=True)
class Placed:
    """A message of the host's list and the position of its original; None for a summary of ours."""

    message: Message
    position: int | None


@dataclass
class Follower:
    """Knows one conversation. `name` is the archive's name for it."""

    archive: Archive
    session: str
    name: str = ""
    _shown: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            taken = [s.name for s in self.archive.sessions()]
            self.name = self.session
            while self._branch(1) in taken:
                self.name = self._branch(1)

    def follow(self, messages: Sequence[Message]) -> list[Placed]:
        """Record what is new and place every message."""
        known: list[Message | None] = [self._original(m) for m in messages]
        plain = [m for m in known if m is not None]
        gap: tuple[int, int] | None = None
        for at, (message, original) in enumerate(zip(messages, known, strict=True)):
            if original is None and (nodes := self._nodes(message)):
                gap = at, max(node.last for node in nodes)  # what came before is plain: its index there is the same
        if gap is None and self._has_left(plain):
            self.name = self._branch(1)
            self._shown.clear()
        places = iter(self.archive.record(self.name, plain, gap=gap, known=self._known(messages, known)))
        placed = []
        for message, original in zip(messages, known, strict=True):
            # A summary of ours that a repair joined with what came after it: only the latter goes on.
            shown = original if original is not None and looks_like_summary(message) else message
            placed.append(Placed(shown, None if original is None else next(places)))
        return placed

    def remember(self, shown: Message, position: int | None) -> None:
        """The host will give this message back; it stands for the original at `position`, or for the summary (None)."""
        self._shown[digest_of(shown)] = position

    def restart(self) -> None:
        """The next list is another conversation of the same session."""
        if self.archive.store.digests(self.name):
            self.name = self._branch(1)
        self._shown.clear()

    def _known(self, messages: Sequence[Message], originals: Sequence[Message | None]) -> dict[int, int]:
        """Positions of what we changed before we showed it, by index among the originals."""
        out: dict[int, int] = {}
        index = 0
        for message, original in zip(messages, originals, strict=True):
            if original is None:
                continue
            position = self._shown.get(digest_of(message))
            if position is not None:
                out[index] = position
            index += 1
        return out

    def _original(self, message: Message) -> Message | None:
        """The original that a message stands for; itself if it is one; None for a summary of ours."""
        digest = digest_of(message)
        if digest in self._shown:
            position = self._shown[digest]
            return None if position is None else self._at(position) or message
        if self._is_summary(message):
            return None
        if number := aside_id(message):  # shown before a restart
            stored = self.archive.store.message(number)
            if stored is not None and stored.session == self.name and _same_stub(message, aside_message(stored, 0)):
                return stored.message()
        return message

    def _nodes(self, message: Message) -> list[Node]:
        """The nodes that a message shows, if they are all of this conversation."""
        ids = node_ids(message)
        nodes = [self.archive.store.node(number) for number in ids]
        found = [node for node in nodes if node is not None and node.session == self.name]
        return found if len(found) == len(ids) else []

    def _is_summary(self, message: Message) -> bool:
        nodes = self._nodes(message)
        return bool(nodes) and summary_message(nodes, latest_in(message)) == message

    def _at(self, position: int) -> Message | None:
        for stored in self.archive.store.messages(self.name, position, position):
            return stored.message()
        return None

    def _has_left(self, messages: Sequence[Message]) -> bool:
        """Whether a list without summaries lacks the end of what is recorded, and goes on otherwise."""
        held = self.archive.store.digests(self.name)
        if not held:
            return False
        given = {digest_of(m) for m in messages}
        return held[-1] not in given and digest_of(messages[-1]) not in held if messages else False

    def _branch(self, step: int) -> str:
        base, _, number = self.name.rpartition(" #")
        if base == self.session and number.isdigit():
            return f"{base} #{int(number) + step}"
        return f"{self.session} #{1 + step}"


def _same_stub(message: Message, stub: Message) -> bool:
    """Equal but for the number of tokens, which depends on the tokenizer of the day."""
    ours, theirs = (_TOKENS.sub("", json.dumps(m, sort_keys=True), count=1) for m in (stub, message))
    return ours == theirs
