"""What the calls of each server take, and what their results cost: one table, a column for each server.

Rules: servers take turns call by call, so that noise of the machine meets all of them. What a figure begins
and ends with is the same for all, and stands in ``ROWS``. A server that fails a row has none there; the reason is told.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from bench.client import Client, Reply
from bench.figures import Figure
from bench.pages import SNAPSHOTS, Pages
from bench.servers import Call, Installed, version

from watchkeeper.context import tokenizer_for

ROWS: dict[str, str] = {
    "start → handshake, ms": "from the spawn until the answer to initialize",
    "start → list of tools, ms": "from the spawn until the list has come, asked right after the handshake",
    "start → first page, ms": "from the spawn until the first navigation has its result; the browser starts meanwhile",
    "memory idle, MB": "after the handshake, before the first page: proportional set size, browsers not counted",
    "memory after use, MB": "after all calls of this table",
    "tools": "how many there are",
    "tokens of their schemas": "name, description and input schema as compact JSON, cl100k",
    "navigate, ms": "to another small page on loopback, until the result",
    "click, ms": "a button that changes its own title",
    "evaluate, ms": "1 + 1",
    "dialog opens → agent knows, ms": "from sending a click that opens confirm() until a result has its question",
    "answer → page goes on, ms": "from sending the answer until the page's next statement has reported to its server",
    "processes left": "after the input was closed and 10 s have passed",
}
Table = dict[str, dict[str, Figure]]
"""Row -> server -> figure."""
QUESTION = "QUESTION-6120"
PATIENCE_S = 30.0
Progress = Callable[[str], None]


class Failed(Exception):
    """A server did not do what a row measures."""


class Measuring:
    """The table while it grows, and why a server has no figure in a row."""

    def __init__(self, servers: Sequence[Installed], pages: Pages, progress: Progress) -> None:
        self.servers = servers
        self.pages = pages
        self.progress = progress
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.failures: dict[str, dict[str, str]] = defaultdict(dict)
        self.versions: dict[str, str] = {}
        self.count = tokenizer_for("gpt-4").count

    def table(self) -> Table:
        return {
            row: {name: Figure(tuple(values)) for name, values in columns.items() if name not in self.failures[row]}
            for row, columns in self.values.items()
        }

    def turns(self, row: str, rounds: int, clients: dict[str, Client]) -> Iterator[tuple[Installed, Client, int]]:
        """Each server once a round, in an order that moves on; those that failed the row are left out."""
        self.progress(row)
        for turn in range(rounds):
            for place in range(len(self.servers)):
                server = self.servers[(turn + place) % len(self.servers)]
                if server.name in clients and server.name not in self.failures[row]:
                    yield server, clients[server.name], turn

    def put(self, row: str, server: Installed, value: float) -> None:
        self.values[row][server.name].append(value)

    @contextlib.contextmanager
    def attempt(self, row: str, server: Installed) -> Iterator[None]:
        try:
            yield
        except (Failed, TimeoutError) as error:
            self.failures[row][server.name] = str(error)


def measure(
    servers: Sequence[Installed], pages: Pages, *, starts: int, runs: int, progress: Progress
) -> tuple[Table, dict[str, dict[str, str]], dict[str, str]]:
    """The table, row -> server -> why there is no figure, and the servers' versions."""
    m = Measuring(servers, pages, progress)
    _starts(m, starts)
    clients: dict[str, Client] = {}
    try:
        for server in servers:
            with m.attempt("navigate, ms", server):
                client = clients[server.name] = Client(server.command, server.environment)
                client.initialize()
                _done(client, server.kind.navigate(pages.url("/")))
        _navigations(m, clients, runs)
        _snapshots(m, clients, runs)
        _acts(m, clients, runs)
        _dialogs(m, clients, runs)
        for server, client, _ in m.turns("memory after use, MB", 1, clients):
            m.put("memory after use, MB", server, client.memory_mb())
    finally:
        for name, client in clients.items():
            left = client.end()
            m.values["processes left"][name].append(left)
    return m.table(), {row: told for row, told in m.failures.items() if told}, m.versions


def _done(client: Client, call: Call) -> Reply:
    """Call.

    Raises:
        Failed: it ended with an error, or did not end in time.
    """
    reply = client.call(*call, within=PATIENCE_S)
    if reply.silent or reply.error:
        raise Failed(f"{call[0]}: {reply.text[:200] or f'no answer within {PATIENCE_S:g} s'}")
    return reply


def _starts(m: Measuring, starts: int) -> None:
    nobody: dict[str, Client] = {server.name: None for server in m.servers}  # type: ignore[misc]
    for server, _, turn in m.turns("start → first page, ms", starts, nobody):
        with m.attempt("start → first page, ms", server), Client(server.command, server.environment) as client:
            about = client.initialize().get("serverInfo", {})
            m.put("start → handshake, ms", server, client.seconds * 1000)
            tools = client.tools()
            m.put("start → list of tools, ms", server, client.seconds * 1000)
            if turn == 0:
                m.versions[server.name] = version(server) or str(about.get("version", "?"))
                schema = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools]
                m.put("tools", server, len(tools))
                text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
                m.put("tokens of their schemas", server, m.count(text))
            before = client.seconds
            m.put("memory idle, MB", server, client.memory_mb())
            looked = client.seconds - before  # reading memory is not the server's time
            _done(client, server.kind.navigate(m.pages.url("/")))
            m.put("start → first page, ms", server, (client.seconds - looked) * 1000)


def _navigations(m: Measuring, clients: dict[str, Client], runs: int) -> None:
    row = "navigate, ms"
    for server, client, turn in m.turns(row, runs, clients):
        with m.attempt(row, server):
            path = ("/second", "/")[turn % 2]
            m.put(row, server, _done(client, server.kind.navigate(m.pages.url(path))).seconds * 1000)


def _snapshots(m: Measuring, clients: dict[str, Client], runs: int) -> None:
    for number, name in enumerate(SNAPSHOTS):
        row, size = f"snapshot: {name}, ms", f"snapshot: {name}, tokens"
        for server, client, turn in m.turns(row, runs + 1, clients):
            if server.kind.snapshot is None:
                continue
            with m.attempt(row, server):
                if turn == 0:  # not measured: it may wait for the page
                    _done(client, server.kind.navigate(m.pages.url(f"/s/{number}")))
                    _done(client, server.kind.snapshot)
                    continue
                reply = _done(client, server.kind.snapshot)
                m.put(row, server, reply.seconds * 1000)
                if turn == runs:
                    m.put(size, server, m.count(reply.text))


def _ref(server: Installed, client: Client, label: str) -> str:
    text = "" if server.kind.snapshot is None else _done(client, server.kind.snapshot).text
    ref = server.kind.ref(text, label)
    if ref is None:
        raise Failed(f"the snapshot has no button {label!r}")
    return ref


def _acts(m: Measuring, clients: dict[str, Client], runs: int) -> None:
    refs: dict[str, str] = {}
    for server, client, _ in m.turns("click, ms", 1, clients):
        with m.attempt("click, ms", server):
            _done(client, server.kind.navigate(m.pages.url("/")))
            refs[server.name] = _ref(server, client, "Count")
    for server, client, _ in m.turns("click, ms", runs, clients):
        with m.attempt("click, ms", server):
            m.put("click, ms", server, _done(client, server.kind.click(refs[server.name])).seconds * 1000)
    for server, client, _ in m.turns("evaluate, ms", runs, clients):
        if server.kind.evaluate is not None:
            with m.attempt("evaluate, ms", server):
                m.put("evaluate, ms", server, _done(client, server.kind.evaluate("1 + 1")).seconds * 1000)


def _dialogs(m: Measuring, clients: dict[str, Client], runs: int) -> None:
    opens, goes_on = "dialog opens → agent knows, ms", "answer → page goes on, ms"
    for server, client, _ in m.turns(opens, runs, clients):
        kind = server.kind
        if kind.answer is None:
            continue
        with m.attempt(opens, server):
            _done(client, kind.navigate(m.pages.url("/ask")))
            ref = _ref(server, client, "Ask")
            m.pages.forget()
            reply = client.call(*kind.click(ref), within=PATIENCE_S)
            took = reply.seconds
            if QUESTION not in reply.text:
                look = client.call(*kind.look(), within=PATIENCE_S)
                took += look.seconds
                if QUESTION not in look.text:
                    raise Failed(f"neither the click nor the next look has the question: {look.text[:200]}")
            m.put(opens, server, took * 1000)
            began = client.seconds
            client.call(*kind.answer(True, None), within=PATIENCE_S)
            went = m.pages.reported(lambda what: what == "went true", PATIENCE_S)
            if went is None:
                raise Failed("the page did not go on with the answer")
            m.put(goes_on, server, (went[0] - client.began - began) * 1000)
