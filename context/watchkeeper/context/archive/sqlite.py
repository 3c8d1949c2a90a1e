"""The archive in one SQLite file.

Rules:
- The file and its folder are made for their owner alone, before anything is written.
- WAL with full synchronisation: what was acknowledged is on the disk. Writers take turns through SQLite's own lock and
  wait at most `BUSY_SECONDS`.
- A connection serves one call at a time and is handed on to the next; a call that fails rolls back whole.
- Each piece in the index carries its conversation as a word, so that a search inside one is one lookup.
- Deleted text is overwritten (`secure_delete`), taken out of the index, and the log is emptied.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..store import ArchiveError, Candidate, Node, Original, Query, Session, Stored

BUSY_SECONDS = 30.0
_VERSION = 1
_BATCH = 200
_COMMON = 0.25  # of all pieces
_FEW = 400

_SCHEMA = """
create table sessions (id integer primary key, name text not null unique);
create table messages (
    id integer primary key autoincrement,
    session_id integer not null references sessions (id),
    position integer not null,
    role text not null,
    body text not null,
    digest text not null,
    at real not null,
    unique (session_id, position)
);
create table nodes (
    id integer primary key autoincrement,
    session_id integer not null references sessions (id),
    depth integer not null,
    text text not null,
    tokens integer not null,
    source_tokens integer not null,
    first integer not null,
    last integer not null,
    first_at real not null,
    last_at real not null,
    parent integer not null default 0
);
create index nodes_by_session on nodes (session_id, parent);
create index nodes_by_parent on nodes (parent) where parent > 0;
create virtual table chunks using fts5 (
    text, head, pairs, session, message_id unindexed, start unindexed,
    tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
);
"""

_MESSAGE = (
    "select m.id, s.name, m.position, m.role, m.body, m.digest, m.at "
    "from messages m join sessions s on s.id = m.session_id"
)
_NODE = (
    "select n.id, s.name, n.depth, n.text, n.tokens, n.source_tokens, n.first, n.last, n.first_at, n.last_at, n.parent "
    "from nodes n join sessions s on s.id = n.session_id"
)


class SqliteStore:
    """An `ArchiveStore` in a file.

    Raises:
        ArchiveError: `archive_unusable`: the file cannot be opened, is not an archive, or is of a newer version.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser()
        self._idle: list[sqlite3.Connection] = []
        self._all: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise ArchiveError(
                "archive_unusable",
                f"cannot use the archive {self.path}: {error}",
                "choose another file (the engine's setting `path`), or move this one away",
            ) from error

    # --- messages

    def append(self, session: str, originals: Sequence[Original], at: float) -> list[Stored]:
        """See `MessageStore.append`."""
        if not originals:
            return []
        out: list[Stored] = []
        with self._writing() as db:
            key = self._session_key(db, session)
            (position,) = db.execute(
                "select coalesce(max(position) + 1, 0) from messages where session_id = ?", (key,)
            ).fetchone()
            for place, original in enumerate(originals, position):
                cursor = db.execute(
                    "insert into messages (session_id, position, role, body, digest, at) values (?, ?, ?, ?, ?, ?)",
                    (key, place, original.role, original.body, original.digest, at),
                )
                stored_id = int(cursor.lastrowid or 0)
                db.executemany(
                    "insert into chunks (text, head, pairs, session, message_id, start) values (?, ?, ?, ?, ?, ?)",
                    [(_clean(c.text), _clean(c.head), c.pairs, f"s{key}", stored_id, c.start) for c in original.chunks],
                )
                out.append(Stored(stored_id, session, place, original.role, original.body, original.digest, at))
        return out

    def messages(self, session: str, first: int = 0, last: int | None = None) -> Iterator[Stored]:
        """See `MessageStore.messages`."""
        at = first
        while True:
            with self._reading() as db:
                rows = db.execute(
                    f"{_MESSAGE} where s.name = ? and m.position >= ? and m.position <= ? order by m.position limit ?",
                    (session, at, 2**62 if last is None else last, _BATCH),
                ).fetchall()
            yield from (Stored(*row) for row in rows)
            if len(rows) < _BATCH:
                return
            at = rows[-1][2] + 1

    def message(self, message_id: int) -> Stored | None:
        """See `MessageStore.message`."""
        with self._reading() as db:
            row = db.execute(f"{_MESSAGE} where m.id = ?", (message_id,)).fetchone()
        return Stored(*row) if row else None

    def digests(self, session: str) -> list[str]:
        """See `MessageStore.digests`."""
        with self._reading() as db:
            rows = db.execute(
                "select m.digest from messages m join sessions s on s.id = m.session_id "
                "where s.name = ? order by position",
                (session,),
            ).fetchall()
        return [digest for (digest,) in rows]

    # --- search

    def candidates(self, query: Query, session: str | None, limit: int) -> list[Candidate]:
        """See `SearchStore.candidates`."""
        with self._reading() as db:
            words = _match(_telling(db, query))
            if not words:
                return []
            if session is not None:
                row = db.execute("select id from sessions where name = ?", (session,)).fetchone()
                if row is None:
                    return []
                words = f"session : s{row[0]} AND {words}"
            rows = db.execute(
                "select m.id, s.name, m.position, m.role, c.start, c.head, c.text, -c.rank from "
                "(select message_id, start, head, text, rank from chunks where chunks match ? "
                " and rank match 'bm25(1.0, 0.5, 1.0, 0.0)' order by rank limit ?) c "
                "join messages m on m.id = c.message_id join sessions s on s.id = m.session_id order by c.rank",
                (words, limit),
            ).fetchall()
        return [Candidate(*row) for row in rows]

    def sessions(self) -> list[Session]:
        """See `SessionStore.sessions`."""
        with self._reading() as db:
            rows = db.execute(
                "select s.name, count(*), sum(length(m.body)), min(m.at), max(m.at) "
                "from messages m join sessions s on s.id = m.session_id group by s.id order by max(m.at) desc"
            ).fetchall()
        return [Session(*row) for row in rows]

    def rename(self, session: str, to: str) -> bool:
        """See `SessionStore.rename`."""
        with self._writing() as db:
            return db.execute("update or ignore sessions set name = ? where name = ?", (to, session)).rowcount > 0

    def forget(self, sessions: Sequence[str]) -> int:
        """See `SessionStore.forget`."""
        gone = 0
        for session in sessions:
            with self._writing() as db:
                row = db.execute("select id from sessions where name = ?", (session,)).fetchone()
                if row is None:
                    continue
                db.execute(
                    "delete from chunks where rowid in (select rowid from chunks where chunks match ?)",
                    (f"session : s{row[0]}",),
                )
                gone += db.execute("delete from messages where session_id = ?", row).rowcount
                db.execute("delete from nodes where session_id = ?", row)
                db.execute("delete from sessions where id = ?", row)
        if gone:
            with self._reading() as db:
                db.execute("insert into chunks (chunks) values ('optimize')")  # rewrites the index without their words
                db.execute("pragma incremental_vacuum").fetchall()
                db.execute("pragma wal_checkpoint(truncate)").fetchall()
        return gone

    # --- nodes

    def add_node(self, node: Node, children: Sequence[int] = ()) -> Node:
        """See `NodeStore.add_node`."""
        with self._writing() as db:
            key = self._session_key(db, node.session)
            held = {
                row[0]
                for row in db.execute(
                    "select id from nodes where session_id = ? and parent = 0 and first <= ? and last >= ?",
                    (key, node.last, node.first),
                )
            }
            if held != set(children):
                raise ArchiveError(
                    "node_overlaps",
                    f"messages {node.first} to {node.last} of {node.session!r} have been condensed meanwhile",
                    "read the nodes again",
                )
            cursor = db.execute(
                "insert into nodes (session_id, depth, text, tokens, source_tokens, first, last, first_at, last_at) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key,
                    node.depth,
                    node.text,
                    node.tokens,
                    node.source_tokens,
                    node.first,
                    node.last,
                    node.first_at,
                    node.last_at,
                ),
            )
            stored_id = int(cursor.lastrowid or 0)
            db.executemany("update nodes set parent = ? where id = ?", [(stored_id, child) for child in children])
            row = db.execute(f"{_NODE} where n.id = ?", (stored_id,)).fetchone()
        return Node(*row)

    def node(self, node_id: int) -> Node | None:
        """See `NodeStore.node`."""
        found = self._nodes("n.id = ?", (node_id,))
        return found[0] if found else None

    def children(self, node_id: int) -> list[Node]:
        """See `NodeStore.children`."""
        return self._nodes("n.parent = ?", (node_id,))

    def roots(self, session: str) -> list[Node]:
        """See `NodeStore.roots`."""
        return self._nodes("s.name = ? and n.parent = 0", (session,))

    def _nodes(self, where: str, values: tuple[object, ...]) -> list[Node]:
        with self._reading() as db:
            return [Node(*row) for row in db.execute(f"{_NODE} where {where} order by n.first", values)]

    # --- connections

    def close(self) -> None:
        """Close every connection; calls still running in other threads fail. Idempotent."""
        with self._lock:
            self._closed = True
            connections, self._all, self._idle = self._all, set(), []
        for connection in connections:
            connection.close()

    def _prepare(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            folder.mkdir(parents=True, mode=0o700)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(handle).st_mode & 0o077:
                os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        with self._reading() as db:
            if db.execute("pragma user_version").fetchone() == (0,):
                db.execute("pragma auto_vacuum = incremental")  # only has an effect before the first table
        with self._writing() as db:
            (version,) = db.execute("pragma user_version").fetchone()
            if version > _VERSION:
                raise sqlite3.DatabaseError(
                    f"it was written by a newer version (format {version}, this one reads {_VERSION})"
                )
            if version == 0:
                if db.execute("select 1 from sqlite_schema limit 1").fetchone():
                    raise sqlite3.DatabaseError("it is a database of another program")
                for statement in _SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"pragma user_version = {_VERSION}")
        with self._reading() as db:
            db.execute("pragma journal_mode = wal")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise ArchiveError("archive_closed", f"the archive {self.path} has been closed", "open it again")
            if self._idle:
                return self._idle.pop()
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.execute("pragma synchronous = full")
        connection.execute("pragma secure_delete = on")
        with self._lock:
            self._all.add(connection)
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if connection in self._all:
                self._idle.append(connection)
                return
        connection.close()

    @staticmethod
    def _session_key(db: sqlite3.Connection, session: str) -> int:
        db.execute("insert into sessions (name) values (?) on conflict (name) do nothing", (session,))
        (key,) = db.execute("select id from sessions where name = ?", (session,)).fetchone()
        return int(key)


def _telling(db: sqlite3.Connection, query: Query) -> Query:
    """The question without the words that are nearly everywhere: they tell nothing and cost most of the time."""
    db.execute("create virtual table if not exists temp.words using fts5vocab (main, chunks, row)")
    (pieces,) = db.execute("select coalesce(max(rowid), 0) from chunks").fetchone()
    most = max(_FEW, pieces * _COMMON)
    marks = ", ".join("?" * len(query.words))
    rows = db.execute(f"select term from temp.words where term in ({marks}) and doc > ?", (*query.words, most))
    common = {term for (term,) in rows}
    words = tuple(w for w in query.words if w not in common)
    if not words:
        return query
    return Query(words, tuple(p for p in query.phrases if not common.issuperset(p)), query.stems)


def _match(query: Query) -> str:
    terms = [f'"{word}"' for word in query.words]
    terms += [f'"{" ".join(phrase)}"' for phrase in query.phrases]
    terms += [f'"{stem}"*' for stem in query.stems]
    return "{text head pairs} : (" + " OR ".join(terms) + ")" if terms else ""


def _clean(text: str) -> str:
    """SQLite takes UTF-8: lone surrogates are searched for as question marks; the original keeps them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
