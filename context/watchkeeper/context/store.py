"""The port behind which the archive's storage is: original messages, a search index, and summary nodes.

Rules every store keeps:
- Originals are append-only. What `append` returned has been acknowledged: it survives the death of the process.
- Position is a message's place in its conversation, from 0, without gaps; ids are unique in the whole store and grow.
- Several processes may write at once; each call is one transaction.
- A node covers the messages `first` to `last` (positions, inclusive). Putting a node above others is one atomic step.
- Deletion is the only way anything goes, and what is deleted is gone from the index too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from watchkeeper.context.errors import ContextError


class ArchiveError(ContextError):
    """The archive cannot do what was asked; `code` says what happened."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint, code=code)


@dataclass(frozen=True)
class Chunk:
    """A piece of a message: its place in the searchable text, the call it belongs to, its text, its character pairs."""

    start: int
    head: str
    text: str
    pairs: str


@dataclass(frozen=True)
class Query:
    """Words in order of appearance, neighbouring words as phrases, stems (words to be matched by their beginning)."""

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    stems: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.words)


@dataclass(frozen=True)
class Original:
    """A message on its way in. `body` is its JSON, `digest` identifies its content, `chunks` are what search sees."""

    role: str
    body: str
    digest: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Stored:
    """A message that the archive holds. `at` is when it was archived, in seconds since the epoch."""

    id: int
    session: str
    position: int
    role: str
    body: str
    digest: str
    at: float

    def message(self) -> dict[str, Any]:
        """The original, equal to what was appended."""
        value: dict[str, Any] = json.loads(self.body)
        return value


@dataclass(frozen=True)
class Candidate:
    """A piece of a message that a search found. A higher `score` is better, within one search."""

    message_id: int
    session: str
    position: int
    role: str
    start: int
    head: str
    text: str
    score: float


@dataclass(frozen=True)
class Node:
    """A summary of consecutive messages (depth 0), or of consecutive nodes (depth above 0).

    `tokens` counts its text, `source_tokens` the messages it covers; `first_at` and `last_at` are when the first and
    last of them were archived; `parent` is the node above it, 0 if none.
    """

    id: int
    session: str
    depth: int
    text: str
    tokens: int
    source_tokens: int
    first: int
    last: int
    first_at: float
    last_at: float
    parent: int = 0


@dataclass(frozen=True)
class Session:
    """A conversation: how many messages, how many characters of JSON, when the first and last were archived."""

    name: str
    messages: int
    characters: int
    first_at: float
    last_at: float


class MessageStore(Protocol):
    """Original messages."""

    def append(self, session: str, originals: Sequence[Original], at: float) -> list[Stored]:
        """Put messages at the end of a conversation; returns when they are safe."""
        ...

    def messages(self, session: str, first: int = 0, last: int | None = None) -> Iterator[Stored]:
        """Messages by position, inclusive, in order; streamed."""
        ...

    def message(self, message_id: int) -> Stored | None: ...

    def digests(self, session: str) -> list[str]:
        """The digests of all messages of a conversation, by position."""
        ...


class SearchStore(Protocol):
    """The index over them."""

    def candidates(self, query: Query, session: str | None, limit: int) -> list[Candidate]:
        """The best pieces for a query, best first; over all conversations if `session` is None."""
        ...


class SessionStore(Protocol):
    """Conversations as a whole."""

    def sessions(self) -> list[Session]:
        """All, the one added to last first."""
        ...

    def rename(self, session: str, to: str) -> bool:
        """Give a conversation another name; False, and nothing changed, if it is not there or the name is taken."""
        ...

    def forget(self, sessions: Sequence[str]) -> int:
        """Delete conversations, their nodes and their part of the index; returns how many messages went."""
        ...


class NodeStore(Protocol):
    """Summaries over them."""

    def add_node(self, node: Node, children: Sequence[int] = ()) -> Node:
        """Store a node with a new id above `children`, in one step.

        Raises:
            ArchiveError: `node_overlaps`: a child already has a parent, or another root covers part of the range:
                somebody else condensed the same messages first. Nothing was changed.
        """
        ...

    def node(self, node_id: int) -> Node | None: ...

    def children(self, node_id: int) -> list[Node]: ...

    def roots(self, session: str) -> list[Node]:
        """The nodes without a parent, in order of the messages they cover."""
        ...


class ArchiveStore(MessageStore, SearchStore, SessionStore, NodeStore, Protocol):
    """All of them, in one place."""

    def close(self) -> None:
        """Let go of the storage. Idempotent."""
        ...
