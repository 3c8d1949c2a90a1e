"""The archive as the rest of the project uses it: record, search, describe, expand, forget.

Rules:
- A handle is `m<number>` for a message and `n<number>` for a summary node. It is given out by the store, never by a
  model, and stays good until its conversation is deleted.
- Recording is idempotent: messages of a list that the conversation already holds are recognised, the rest is appended.
  A list may begin anywhere in the conversation and leave out what was condensed.
- Every answer is bounded; what did not fit is counted, and how to get it is said.
- A regular expression runs under a time limit; what was not searched is said.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from ..store import ArchiveError, ArchiveStore, Node, Original, Session, Stored
from .align import align
from .index import call_heads, chunks_of, excerpt, parse_query, rank, searchable_text

EXCERPT = 1600
MAX_HITS = 50
_POOL = 60
_PRIVATE = "_origin"
_CONTEXT = 160
_LEAST = 200


@dataclass(frozen=True)
class Hit:
    """One find: the message, a piece of its text, the call it belongs to, and the summary node that covers it."""

    handle: str
    session: str
    position: int
    role: str
    head: str
    text: str
    node: str | None

    def as_dict(self) -> dict[str, Any]:
        """For a tool result: without what is empty."""
        out = {"id": self.handle, "position": self.position, "role": self.role, "call": self.head, "text": self.text}
        out |= {"node": self.node, "session": self.session}
        return {k: v for k, v in out.items() if v not in ("", None)}


@dataclass(frozen=True)
class Found:
    """A page of finds. `more` says that there are others; `note` tells what was not searched, if anything."""

    hits: tuple[Hit, ...]
    more: bool = False
    note: str = ""


@dataclass(frozen=True)
class Page:
    """Originals from `first` on. `messages` are whole; `part` is a slice of the JSON of one that is larger than a page.

    `next` continues after the page: give it as `cursor`; empty at the end.
    """

    messages: tuple[tuple[str, dict[str, Any]], ...]
    part: tuple[str, str] | None
    next: str
    total: int


class Archive:
    """Originals of conversations, in a store.

    Args:
        store: where they are.
        clock: seconds since the epoch.
    """

    def __init__(self, store: ArchiveStore, *, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # --- recording

    def record(
        self,
        session: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        gap: tuple[int, int] | None = None,
        known: Mapping[int, int] | None = None,
    ) -> list[int]:
        """Archive what is new of a conversation; returns the position of each message in it.

        Args:
            gap: (index, position): what stood before `messages[index]` was condensed up to that position, so that this
                message and those after it come later. Without it an "ok" said again may be taken for an earlier one.
            known: positions, by index, of messages that the caller recognised.

        Raises:
            ArchiveError: `not_json`: a message holds what JSON cannot say; `bad_session`. Nothing was archived.
        """
        _check_name(session)
        heads: dict[str, str] = {}
        originals = []
        for at, message in enumerate(messages):
            heads.update(call_heads(message))
            originals.append(_original(message, heads, at))
        with self._lock:
            held = self.store.digests(session)
            places = align([o.digest for o in originals], held, gap, known or {})
            fresh = [o for o, place in zip(originals, places, strict=True) if place is None]
            stored = iter(self.store.append(session, fresh, self._clock()))
            return [next(stored).position if place is None else place for place in places]

    def record_text(self, session: str, text: str, *, call: str = "") -> str:
        """Archive one text, such as a result that was cut before it was shown; returns its handle.

        `call` is what produced it, in one line; it is searchable.
        """
        _check_name(session)
        message: dict[str, Any] = {"role": "tool", "tool_call_id": "", "content": text}
        if call:
            message["call"] = call
        (stored,) = self.store.append(session, [_original(message, {"": call}, 0)], self._clock())
        return f"m{stored.id}"

    def handles(self, session: str, first: int = 0, last: int | None = None) -> dict[int, str]:
        """Handles by position."""
        return {stored.position: f"m{stored.id}" for stored in self.store.messages(session, first, last)}

    # --- searching

    def search(self, text: str, *, session: str | None = None, limit: int = 5, offset: int = 0) -> Found:
        """The pieces that best match the words of `text`, best first; "quoted words" are kept together."""
        limit = _bounded(limit)
        query = parse_query(text)
        if not query:
            return Found((), note="the question holds no word to search for")
        wanted = offset + limit + 1
        ranked = rank(query, self.store.candidates(query, session, max(_POOL, wanted * 4)), wanted)
        covering = _Covering(self.store)
        hits = []
        for found in ranked[offset : offset + limit]:
            stored = self.store.message(found.message_id)
            around = excerpt(searchable_text(stored.message()), found.start, EXCERPT) if stored else found.text
            node = covering.of(found.session, found.position)
            hits.append(
                Hit(f"m{found.message_id}", found.session, found.position, found.role, found.head, around, node)
            )
        return Found(tuple(hits), more=len(ranked) > offset + limit)

    def search_regex(
        self,
        pattern: str,
        *,
        session: str,
        limit: int = 10,
        offset: int = 0,
        seconds: float = 5.0,
        ignore_case: bool = False,
    ) -> Found:
        """The matches of a regular expression in a conversation, oldest first, one for each place.

        Raises:
            ArchiveError: `bad_pattern`.
        """
        limit = _bounded(limit)
        try:
            compiled = regex.compile(pattern, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))
        except (regex.error, OverflowError, RecursionError) as error:
            raise ArchiveError(
                "bad_pattern", f"not a regular expression: {error}", "or search for plain words"
            ) from error
        deadline = time.monotonic() + seconds
        covering = _Covering(self.store)
        heads: dict[str, str] = {}
        hits: list[Hit] = []
        passed = 0
        for stored in self.store.messages(session):
            message = stored.message()
            heads.update(call_heads(message))
            text = searchable_text(message)
            head = heads.get(str(message.get("tool_call_id")), "") if stored.role == "tool" else ""
            try:
                for match in compiled.finditer(text, timeout=max(0.001, deadline - time.monotonic()), concurrent=True):
                    passed += 1
                    if passed <= offset:
                        continue
                    if len(hits) == limit:
                        return Found(tuple(hits), more=True)
                    start, end = max(0, match.start() - _CONTEXT), min(match.end(), match.start() + EXCERPT) + _CONTEXT
                    node = covering.of(session, stored.position)
                    hits.append(
                        Hit(f"m{stored.id}", session, stored.position, stored.role, head, text[start:end], node)
                    )
            except TimeoutError:
                note = f"stopped at position {stored.position} after {seconds:g} s; what comes later was not searched"
                return Found(tuple(hits), more=True, note=note)
        return Found(tuple(hits))

    # --- reading

    def describe(self, handle: str) -> dict[str, Any]:
        """What a handle stands for, without its content.

        Raises:
            ArchiveError: `unknown_handle`.
        """
        kind, number = _parse(handle)
        if kind == "m":
            stored = self._message(handle, number)
            return {
                "id": handle,
                "kind": "message",
                "session": stored.session,
                "position": stored.position,
                "role": stored.role,
                "characters": len(stored.body),
                "archived_at": stored.at,
                "node": _Covering(self.store).of(stored.session, stored.position),
            }
        node = self._node(handle, number)
        return {
            "id": handle,
            "kind": "summary of messages" if node.depth == 0 else "summary of summaries",
            "session": node.session,
            "depth": node.depth,
            "positions": [node.first, node.last],
            "archived_between": [node.first_at, node.last_at],
            "tokens": node.tokens,
            "source_tokens": node.source_tokens,
            "children": [f"n{child.id}" for child in self.store.children(node.id)],
            "parent": f"n{node.parent}" if node.parent else None,
            "text": node.text,
        }

    def expand(self, handle: str, *, max_tokens: int, count: Callable[[str], int], cursor: str = "") -> Page:
        """The originals behind a handle, as many as fit.

        Args:
            handle: a message, or a node for all the messages it covers.
            max_tokens: of the page, as `count` counts.
            cursor: `next` of the page before.

        Raises:
            ArchiveError: `unknown_handle`, `bad_cursor`.
        """
        kind, number = _parse(handle)
        if kind == "m":
            stored = self._message(handle, number)
            session, first, last = stored.session, stored.position, stored.position
        else:
            node = self._node(handle, number)
            session, first, last = node.session, node.first, node.last
        position, skip = _cursor(cursor, first, last)
        messages: list[tuple[str, dict[str, Any]]] = []
        left = max(_LEAST, max_tokens)
        total = last - first + 1
        for stored in self.store.messages(session, position, last):
            body = stored.body[skip:]
            cost = count(body)
            if skip or (cost > left and not messages):
                length = len(body) if cost <= left else max(_LEAST, len(body) * left // cost)
                following = f"{stored.position}:{skip + length}" if length < len(body) else f"{stored.position + 1}:0"
                at_end = length >= len(body) and stored.position == last
                return Page((), (f"m{stored.id}", body[:length]), "" if at_end else following, total)
            if cost > left:
                return Page(tuple(messages), None, f"{stored.position}:0", total)
            messages.append((f"m{stored.id}", stored.message()))
            left -= cost
        return Page(tuple(messages), None, "", total)

    def _message(self, handle: str, number: int) -> Stored:
        stored = self.store.message(number)
        if stored is None:
            raise _unknown(handle)
        return stored

    def _node(self, handle: str, number: int) -> Node:
        node = self.store.node(number)
        if node is None:
            raise _unknown(handle)
        return node

    # --- keeping and deleting

    def sessions(self) -> list[Session]:
        """The conversations, the newest first."""
        return self.store.sessions()

    def forget(self, session: str) -> int:
        """Delete a conversation; returns how many messages went."""
        return self.store.forget([session])

    def retain(
        self, *, days: float | None = None, megabytes: float | None = None, but: Collection[str] = ()
    ) -> list[str]:
        """Delete conversations that were last added to more than `days` ago, and then the oldest until all fit.

        Those named in `but` stay, whatever their age and size.

        Returns:
            The names of those deleted.
        """
        gone: list[str] = []
        sessions = [s for s in self.store.sessions() if s.name not in but]
        if days is not None:
            limit = self._clock() - days * 86_400
            gone += [s.name for s in sessions if s.last_at < limit]
        if megabytes is not None:
            used = 0
            for session in sessions:
                used += session.characters
                if used > megabytes * 1_000_000 and session.name not in gone:
                    gone.append(session.name)
        self.store.forget(gone)
        return gone


def open_archive(location: str | Path, *, owner: str = "", clock: Callable[[], float] = time.time) -> Archive:
    """Open the archive at a path, or in the PostgreSQL database of a `postgresql://` URL (the extra `postgres`).

    Args:
        owner: whose archive, in a database that several share: none reaches those of others. A file is one owner's.

    Raises:
        ArchiveError: `archive_unusable`.
    """
    if str(location).startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresStore

        return Archive(PostgresStore(str(location), owner=owner), clock=clock)
    from .sqlite import SqliteStore

    return Archive(SqliteStore(location), clock=clock)


class _Covering:
    """Which root node covers a position; the roots of each conversation are read once."""

    def __init__(self, store: ArchiveStore) -> None:
        self._store = store
        self._roots: dict[str, list[Node]] = {}

    def of(self, session: str, position: int) -> str | None:
        if session not in self._roots:
            self._roots[session] = self._store.roots(session)
        for node in self._roots[session]:
            if node.first <= position <= node.last:
                return f"n{node.id}"
        return None


def digest_of(message: Mapping[str, Any]) -> str:
    """Identifies what a message says, whatever the order of its keys."""
    plain = {k: v for k, v in message.items() if k != _PRIVATE} if _PRIVATE in message else message
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _check_name(session: str) -> None:
    if not 0 < len(session) <= 200 or not session.isprintable():
        raise ArchiveError(
            "bad_session", f"{session[:40]!r} cannot name a conversation", "use 1 to 200 printable characters"
        )


def _original(message: Mapping[str, Any], heads: Mapping[str, str], at: int) -> Original:
    plain = {k: v for k, v in message.items() if k != _PRIVATE} if _PRIVATE in message else message
    try:
        body = json.dumps(plain, ensure_ascii=False)
        body.encode()
    except UnicodeEncodeError:
        body = json.dumps(plain)  # a lone surrogate: kept as an escape
    except (TypeError, ValueError, RecursionError) as error:
        raise ArchiveError(
            "not_json", f"message {at} cannot be written as JSON: {error}", "messages are JSON objects"
        ) from error
    role = str(plain.get("role", ""))[:40].encode("ascii", "replace").decode().replace("\x00", "?")
    return Original(role, body, digest_of(plain), chunks_of(plain, heads))


def _parse(handle: str) -> tuple[str, int]:
    kind, number = handle[:1], handle[1:]
    if kind not in ("m", "n") or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise _unknown(handle)
    return kind, int(number)


def _cursor(cursor: str, first: int, last: int) -> tuple[int, int]:
    if not cursor:
        return first, 0
    position, _, skip = cursor.partition(":")
    if not (position.isascii() and position.isdigit() and skip.isascii() and skip.isdigit()) or not (
        first <= int(position) <= last
    ):
        raise ArchiveError(
            "bad_cursor", f"{cursor!r} continues nothing here", "give `next` of the page before, unchanged"
        )
    return int(position), int(skip)


def _unknown(handle: str) -> ArchiveError:
    return ArchiveError(
        "unknown_handle",
        f"nothing in the archive has the id {handle[:40]!r}",
        "ids look like m12 (a message) or n3 (a summary) and come from a search; deleting takes them away",
    )


def _bounded(limit: int) -> int:
    return max(1, min(limit, MAX_HITS))


__all__ = ["EXCERPT", "Archive", "Found", "Hit", "Page", "open_archive"]
