"""The archive in a PostgreSQL database: the optional extra `postgres`.

Rules:
- The driver (psycopg 3) is imported here and nowhere else.
- Tables live in a schema, made when first used: `watchkeeper`, or one for each owner. It is the search path of every
  transaction, not of the connection, which a pooler may hand to somebody else. Who else may read is the database's own
  business.
- A conversation is locked by its row while it is written, so that positions have no gaps.
- PostgreSQL ranks by other rules than SQLite, so only the choice of candidates is its work: the pieces with the
  largest sum of the rarity of the words that they share with the question. The final order is `index.rank`'s.
- JSON text goes in as text: `jsonb` would reorder keys, and the original must come back byte for byte.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, LiteralString

from ..store import ArchiveError, Candidate, Chunk, Node, Original, Query, Session, Stored
from .index import WORD

try:
    import psycopg
    from psycopg import sql
except ImportError as error:  # pragma: no cover - shown only without the extra
    raise ArchiveError(
        "archive_unusable",
        "a postgresql:// archive needs the driver psycopg, which is not installed",
        "pip install 'watchkeeper[postgres]', or keep the archive in a file",
    ) from error

_BATCH = 200
LONGEST_NAME = 63
"""Bytes of a name, as PostgreSQL is built."""
_COMMON = 0.25  # of all pieces
_FEW = 400

_SCHEMA: LiteralString = """
create table if not exists sessions (id bigserial primary key, name text not null unique);
create table if not exists messages (
    id bigserial primary key,
    session_id bigint not null references sessions (id) on delete cascade,
    position bigint not null, role text not null, body text not null, digest text not null,
    at double precision not null,
    unique (session_id, position)
);
create table if not exists nodes (
    id bigserial primary key,
    session_id bigint not null references sessions (id) on delete cascade,
    depth integer not null, text text not null, tokens bigint not null, source_tokens bigint not null,
    first bigint not null, last bigint not null,
    first_at double precision not null, last_at double precision not null, parent bigint not null default 0
);
create index if not exists nodes_by_session on nodes (session_id, parent);
create table if not exists chunks (
    id bigserial primary key,
    message_id bigint not null references messages (id) on delete cascade,
    session_id bigint not null, start bigint not null, head text not null, text text not null,
    words text[] not null, size integer not null
);
create index if not exists chunks_by_message on chunks (message_id);
create index if not exists chunks_by_word on chunks using gin (words);
"""

_MESSAGE: LiteralString = (
    "select m.id, s.name, m.position, m.role, m.body, m.digest, m.at "
    "from messages m join sessions s on s.id = m.session_id "
)
_NODE: LiteralString = (
    "select n.id, s.name, n.depth, n.text, n.tokens, n.source_tokens, n.first, n.last, n.first_at, n.last_at, n.parent "
    "from nodes n join sessions s on s.id = n.session_id "
)

_Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """An `ArchiveStore` in PostgreSQL.

    Args:
        url: a `postgresql://` connection URL; never shown.
        owner: whose archive it is; each has a schema of its own, and ids of its own.
        connect_timeout: seconds.

    Raises:
        ArchiveError: `archive_unusable`.
    """

    def __init__(self, url: str, *, owner: str = "", connect_timeout: int = 10) -> None:
        self._url = url
        self._schema = schema_of(owner)
        self._timeout = connect_timeout
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        with self._transaction() as db:
            db.execute("select pg_advisory_xact_lock(7203921)")  # two processes may come first
            db.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self._schema)))
            db.execute(_SCHEMA)

    # --- messages

    def append(self, session: str, originals: Sequence[Original], at: float) -> list[Stored]:
        """See `MessageStore.append`."""
        if not originals:
            return []
        out: list[Stored] = []
        with self._transaction() as db, db.cursor() as cursor:
            key = self._locked_session(db, session)
            position = _one(
                db.execute("select coalesce(max(position) + 1, 0) from messages where session_id = %s", (key,))
            )
            pieces: list[tuple[Any, ...]] = []
            for place, original in enumerate(originals, position):
                stored_id = _one(
                    db.execute(
                        "insert into messages (session_id, position, role, body, digest, at) "
                        "values (%s, %s, %s, %s, %s, %s) returning id",
                        (key, place, original.role, original.body, original.digest, at),
                    )
                )
                pieces += [
                    (stored_id, key, c.start, _clean(c.head), _clean(c.text), words, len(words))
                    for c in original.chunks
                    for words in [_words(c)]
                ]
                out.append(Stored(stored_id, session, place, original.role, original.body, original.digest, at))
            with cursor.copy("copy chunks (message_id, session_id, start, head, text, words, size) from stdin") as copy:
                for piece in pieces:
                    copy.write_row(piece)
        return out

    def messages(self, session: str, first: int = 0, last: int | None = None) -> Iterator[Stored]:
        """See `MessageStore.messages`."""
        at = first
        while True:
            with self._transaction() as db:
                rows = db.execute(
                    _MESSAGE + "where s.name = %s and m.position between %s and %s order by m.position limit %s",
                    (session, at, 2**62 if last is None else last, _BATCH),
                ).fetchall()
            yield from (Stored(*row) for row in rows)
            if len(rows) < _BATCH:
                return
            at = rows[-1][2] + 1

    def message(self, message_id: int) -> Stored | None:
        """See `MessageStore.message`."""
        with self._transaction() as db:
            row = db.execute(_MESSAGE + "where m.id = %s", (message_id,)).fetchone()
        return Stored(*row) if row else None

    def digests(self, session: str) -> list[str]:
        """See `MessageStore.digests`."""
        with self._transaction() as db:
            rows = db.execute(
                "select m.digest from messages m join sessions s on s.id = m.session_id "
                "where s.name = %s order by position",
                (session,),
            ).fetchall()
        return [digest for (digest,) in rows]

    # --- search

    def candidates(self, query: Query, session: str | None, limit: int) -> list[Candidate]:
        """See `SearchStore.candidates`."""
        words = [*query.words, *(stem + "*" for stem in query.stems)]
        with self._transaction() as db:
            key = None
            if session is not None:
                row = db.execute("select id from sessions where name = %s", (session,)).fetchone()
                if row is None:
                    return []
                key = row[0]
            total = _one(
                db.execute(
                    "select count(*) from chunks where %(key)s::bigint is null or session_id = %(key)s",
                    {"key": key},
                )
            )
            counted = db.execute(
                "select w, (select count(*) from chunks where words @> array[w] "
                "and (%(key)s::bigint is null or session_id = %(key)s)) from unnest(%(words)s::text[]) w",
                {"key": key, "words": words},
            ).fetchall()
            present = sorted((n, w) for w, n in counted if n)
            # Words that are nearly everywhere tell nothing and cost most of the time.
            telling = [(n, w) for n, w in present if n <= max(_FEW, total * _COMMON)] or present
            rarity = [(math.log(1 + total / n), w) for n, w in telling]
            if not rarity:
                return []
            rows = db.execute(
                "with found as ("
                "  select c.id, sum(r.weight) / (1 + ln(1 + max(c.size) / 100.0)) as score "
                "  from unnest(%(words)s::text[], %(weights)s::float8[]) r(word, weight) "
                "  join chunks c on c.words @> array[r.word] "
                "  where %(key)s::bigint is null or c.session_id = %(key)s "
                "  group by c.id order by score desc limit %(limit)s) "
                "select c.message_id, s.name, m.position, m.role, c.start, c.head, c.text, found.score "
                "from found join chunks c on c.id = found.id "
                "join messages m on m.id = c.message_id "
                "join sessions s on s.id = c.session_id order by found.score desc",
                {
                    "key": key,
                    "words": [w for _, w in rarity],
                    "weights": [weight for weight, _ in rarity],
                    "limit": limit,
                },
            ).fetchall()
        return [_with_phrases(query, Candidate(*row)) for row in rows]

    def sessions(self) -> list[Session]:
        """See `SessionStore.sessions`."""
        with self._transaction() as db:
            rows = db.execute(
                "select s.name, count(*), sum(length(m.body)), min(m.at), max(m.at) from messages m "
                "join sessions s on s.id = m.session_id group by s.id order by max(m.at) desc"
            ).fetchall()
        return [Session(row[0], row[1], int(row[2]), row[3], row[4]) for row in rows]

    def rename(self, session: str, to: str) -> bool:
        """See `SessionStore.rename`."""
        try:
            with self._transaction() as db:
                changed = db.execute("update sessions set name = %s where name = %s", (to, session))
                return changed.rowcount > 0
        except psycopg.errors.UniqueViolation:
            return False

    def forget(self, sessions: Sequence[str]) -> int:
        """See `SessionStore.forget`."""
        gone = 0
        for session in sessions:
            with self._transaction() as db:
                row = db.execute("select id from sessions where name = %s for update", (session,)).fetchone()
                if row is not None:
                    gone += db.execute("delete from messages where session_id = %s", row).rowcount
                    db.execute("delete from sessions where id = %s", row)
        return gone

    # --- nodes

    def add_node(self, node: Node, children: Sequence[int] = ()) -> Node:
        """See `NodeStore.add_node`."""
        with self._transaction() as db:
            key = self._locked_session(db, node.session)
            held = {
                row[0]
                for row in db.execute(
                    "select id from nodes where session_id = %s and parent = 0 and first <= %s and last >= %s",
                    (key, node.last, node.first),
                )
            }
            if held != set(children):
                raise ArchiveError(
                    "node_overlaps",
                    f"messages {node.first} to {node.last} of {node.session!r} have been condensed meanwhile",
                    "read the nodes again",
                )
            stored_id = _one(
                db.execute(
                    "insert into nodes "
                    "(session_id, depth, text, tokens, source_tokens, first, last, first_at, last_at) "
                    "values (%s, %s, %s, %s, %s, %s, %s, %s, %s) returning id",
                    (
                        key, node.depth, _clean(node.text), node.tokens, node.source_tokens, node.first, node.last,
                        node.first_at, node.last_at,
                    ),
                )
            )  # fmt: skip
            db.execute("update nodes set parent = %s where id = any(%s)", (stored_id, list(children)))
            row = db.execute(_NODE + "where n.id = %s", (stored_id,)).fetchone()
        assert row is not None
        return Node(*row)

    def node(self, node_id: int) -> Node | None:
        """See `NodeStore.node`."""
        found = self._nodes("where n.id = %s order by n.first", node_id)
        return found[0] if found else None

    def children(self, node_id: int) -> list[Node]:
        """See `NodeStore.children`."""
        return self._nodes("where n.parent = %s order by n.first", node_id)

    def roots(self, session: str) -> list[Node]:
        """See `NodeStore.roots`."""
        return self._nodes("where s.name = %s and n.parent = 0 order by n.first", session)

    def _nodes(self, where: LiteralString, value: object) -> list[Node]:
        with self._transaction() as db:
            return [Node(*row) for row in db.execute(_NODE + where, (value,))]

    # --- connections

    def close(self) -> None:
        """Close the idle connections; one in use is closed when it is given back. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[_Connection]:
        connection = self._take()
        try:
            with connection.transaction():
                connection.execute("select set_config('search_path', quote_ident(%s), true)", (self._schema,))
                yield connection
        except psycopg.OperationalError as error:
            raise ArchiveError(
                "archive_unusable",
                f"the archive's database does not answer: {type(error).__name__}",
                "check that the server runs and that the URL is right",
            ) from error
        finally:
            with self._lock:
                keep = not self._closed and not connection.closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def _take(self) -> _Connection:
        with self._lock:
            if self._closed:
                raise ArchiveError("archive_closed", "the archive has been closed", "open it again")
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        try:
            return psycopg.connect(self._url, autocommit=True, connect_timeout=self._timeout)
        except psycopg.OperationalError:
            # The driver's own message may repeat the URL with its password.
            raise ArchiveError(
                "archive_unusable",
                "the archive's database cannot be reached",
                "check that the server runs, and the host, user and password in the URL",
            ) from None

    @staticmethod
    def _locked_session(db: _Connection, session: str) -> int:
        db.execute("insert into sessions (name) values (%s) on conflict (name) do nothing", (session,))
        return _one(db.execute("select id from sessions where name = %s for update", (session,)))


def schema_of(owner: str) -> str:
    """The schema of an owner's archive. PostgreSQL would cut a longer name, and two could become one."""
    name = f"watchkeeper_{owner}" if owner else "watchkeeper"
    if len(name.encode()) <= LONGEST_NAME:
        return name
    return f"watchkeeper_{hashlib.sha256(owner.encode()).hexdigest()[:32]}"


def _one(cursor: psycopg.Cursor[tuple[Any, ...]]) -> int:
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _words(chunk: Chunk) -> list[str]:
    words = dict.fromkeys(w.lower() for w in WORD.findall(f"{chunk.head}\n{chunk.text}"))
    stems = [w[: len(w) - 2] + "*" for w in words if not w.isascii() and len(w) > 5]
    return [_clean(w) for w in (*words, *dict.fromkeys(stems), *dict.fromkeys(chunk.pairs.split()))]


def _with_phrases(query: Query, found: Candidate) -> Candidate:
    """Neighbouring words of the question that are neighbours in the piece weigh more, as they do in the other store."""
    words = WORD.findall(found.text.lower())
    pairs = set(pairwise(words))
    together = sum(phrase[:2] in pairs for phrase in query.phrases)
    return Candidate(
        found.message_id, found.session, found.position, found.role, found.start, found.head, found.text,
        float(found.score) * (1 + together / max(4, len(query.phrases))),
    )  # fmt: skip


def _clean(text: str) -> str:
    """PostgreSQL takes no NUL and no lone surrogate in text; the original is JSON, where both are escapes."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()
