"""The first moments of a server over stdio: it answers while everything else is still being imported.

Rules: imports nothing but the standard library, and little of it. ``initialize``, ``server/discover``, ``ping`` and
``tools/list`` are answered from ``boot_snapshot.json``, which is generated from the live server and compared with it in
CI, in both eras of the protocol. Whatever else arrives, or is not exactly as expected, waits for the live server. When
that is there it gets what waits, and the handshake, whose answer it must not repeat. If it cannot be loaded, every call
says so.

Calls of tools do not wait for the SDK either, for the dispatcher that runs them knows nothing of MCP. Here they are
known by their form, and answered by whoever takes them (``early_calls.py``); ``loading.py`` says in which order things
come.

The front reads in a thread of its own; what is imported is imported in the main thread.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#stdio
"""

import gc
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..protocol.revisions import fitting
from .descriptors import take_over, write_all

SNAPSHOT = os.path.join(os.path.dirname(__file__), "boot_snapshot.json")  # noqa: PTH118, PTH120 - pathlib costs 7 ms
CHUNK = 1 << 16
SWITCH_S = 0.0005
"""How long an import may keep the one who answers waiting; Python's own 5 ms would double the time of an answer."""
MODERN_VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN_CLIENT = "io.modelcontextprotocol/clientInfo"
MODERN_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
NAVIGATE = "browser_navigate"
SHAPING = frozenset(
    {
        "browser.backend",
        "context.archive",
        "context.engine",
        "context.plugin_dirs",
        "server.results",
        "server.telemetry",
        "server.toolsets",
        "server.transport",
    }
)
"""Settings on which the list of tools depends, and telemetry, which has to see every message; where one of them is set,
the live server answers all."""
ASKING = "server.ask_person"
"""Where it is set, calls may need the person, who is asked through the SDK; so they wait for it."""
LONGEST = 1 << 20
"""Bytes; what is longer is left to the live server, which has a limit for it."""
ENOUGH = 4 << 20
"""Bytes that are read before the live server is there. The rest waits where it is, and so does its sender."""

Json = dict[str, Any]


class Handover:
    """What the live server takes over: lines to handle first, ids that are answered already, and unfinished input.
    ``ended``: the input is over."""

    def __init__(self, source: int, sink: int, lines: list[bytes] | None = None) -> None:
        self.source = source
        self.sink = sink
        self.lines = lines or []
        self.answered: set[str | int] = set()
        self.rest = b""
        self.ended = False

    def answers_again(self, message: Any) -> bool:
        """Whether this message of the live server answers what was answered before it came; true once each."""
        number = getattr(message, "id", None)
        if number not in self.answered or hasattr(message, "method"):
            return False
        self.answered.discard(number)
        return True


def may_answer(options: Mapping[str, str], environment: Mapping[str, str], config: str | None) -> bool:
    """Whether the snapshot fits: a POSIX system, and nothing set that shapes the list of tools."""
    if os.name == "nt" or config is not None:
        return False
    named = given(options, environment)
    return not SHAPING & set(named) and "config" not in named


def given(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that are given, by name, as texts; those of the command line win."""
    prefix = "WATCHKEEPER_"
    found = {
        name[len(prefix) :].lower().replace("__", "."): value
        for name, value in environment.items()
        if name.upper().startswith(prefix)
    }
    return {**found, **options}


def end_on_signals() -> None:
    """While there is nothing that a signal could leave behind; a server that runs ends by itself (lifetime.py)."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))


def start(serve: Callable[["Front"], int], settings: Mapping[str, str]) -> int:
    """Answer what can be answered while ``serve`` loads the server, which then takes over. Gives the exit status.
    ``settings``: those that are ``given``."""
    end_on_signals()
    with open(SNAPSHOT, encoding="utf-8") as file:  # noqa: PTH123
        snapshot = json.load(file)
    front = Front(snapshot, Handover(take_over(0, None), take_over(1, 2)), settings)
    hurry()
    front.start()
    front.prepare()
    return serve(front)


def hurry() -> None:
    """While modules are imported: who answers need not wait long for who imports, and nobody looks for garbage; imports
    make none, and the search would take a tenth of their time."""
    sys.setswitchinterval(SWITCH_S)
    gc.disable()


def settle() -> None:
    """Once they are: back to what is usual. What is there now stays, so it is never searched for garbage."""
    sys.setswitchinterval(0.005)
    gc.freeze()
    gc.enable()


class EarlyCall:
    """A call of a tool that came before the live server. ``around``: what its result has beside what every result has.
    ``client``: what the client calls itself. ``revision``: of the protocol, which it speaks."""

    def __init__(self, number: str | int, tool: str, arguments: Json, around: Json, client: str, revision: str) -> None:
        self.number = number
        self.tool = tool
        self.arguments = arguments
        self.around = around
        self.client = client
        self.revision = revision


class Front:
    """Reads lines and answers what the snapshot holds. The methods with a docstring may be called from any thread."""

    def __init__(self, snapshot: Json, handover: Handover, settings: Mapping[str, str]) -> None:
        self._handover = handover
        self._snapshot = snapshot
        self._client: str | None = None
        self._revision: str = snapshot["newest_legacy"]
        named = {"browser.executable", "browser.cdp_url"} & set(settings)
        self._finds_browser: bool | None = True if named else None
        self._asks_person = ASKING in settings
        self._waiting: list[tuple[bytes, EarlyCall | None]] = []
        self._read_so_far = 0
        self._lock = threading.Lock()
        self._finding = threading.Lock()
        self._given = threading.Condition(self._lock)
        self._taken = 0
        self._writing = threading.Lock()
        self._unread = False
        """Nobody reads our output any more."""
        self._changed: Callable[[], None] = lambda: None
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="watchkeeper-front", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def prepare(self) -> None:
        """Know beforehand what the list of tools depends on."""
        with self._finding:
            from ..protocol.clients import form  # noqa: F401

            if self._finds_browser is None:
                from watchkeeper.supervisor.backends.find import find_browser

                self._finds_browser = find_browser() is not None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called, in the thread that reads, when calls come or are cancelled, and at the end of the
        input."""
        self._changed = changed

    @property
    def calls(self) -> list[EarlyCall]:
        """Calls that wait for an answer, in order."""
        with self._lock:
            return [call for _, call in self._waiting if call is not None]

    @property
    def over(self) -> bool:
        """Whether the client is gone: it does not read, or the input has ended and nothing waits but calls, which end
        with it."""
        with self._lock:
            if self._unread or not self._handover.ended:
                return self._unread
            owed = [line for line, call in self._waiting if call is None and _asks(line, self._handover)]
            return not owed

    def take(self, call: EarlyCall) -> bool:
        """Have this call, to ``give`` its answer; False where it was cancelled meanwhile, or the live server has it."""
        with self._lock:
            entry = next((entry for entry in self._waiting if entry[1] is call), None)
            if entry is None:
                return False
            self._waiting.remove(entry)
            self._taken += 1
            return True

    def give(self, call: EarlyCall, result: Json) -> None:
        """Answer a call that was taken. Blocks while the client does not read."""
        try:
            self._reply(call.number, result={**result, **call.around})
        finally:
            with self._lock:
                self._taken -= 1
                self._given.notify_all()

    def stop(self) -> Handover:
        """Read no more. Gives what the live server takes over."""
        os.write(self._wake, b"x")
        self._thread.join()
        self._changed = lambda: None
        with self._lock:
            self._handover.lines = [line for line, _ in self._waiting]
            self._waiting.clear()
            self._given.wait_for(lambda: not self._taken)  # then nobody writes any more
        return self._handover

    def refuse_for_ever(self, error: BaseException) -> int:
        """The server cannot be loaded: say so in answer to every call, until the input ends."""
        handover = self.stop()
        said = f"{type(error).__name__}: {error}"
        os.write(2, f"watchkeeper: the server could not be loaded: {said}\n".encode())
        while True:
            waiting = handover.lines + [line for line, _ in self._waiting]
            handover.lines, self._waiting = [], []
            for line in waiting:
                if _asks(line, handover):
                    told = {"code": -32603, "message": f"Watchkeeper could not be loaded ({said})."}
                    self._reply(_message(line)["id"], error=told)
            handover.rest = handover.rest[:LONGEST]  # of a line that is longer the end is not needed to refuse it
            if handover.ended or self._unread or not self._read():
                return 1

    # --- in the thread that reads -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            source = [self._handover.source] if self._read_so_far < ENOUGH else []
            ready, _, _ = select.select([*source, self._woken], [], [])
            if self._woken in ready:
                return
            if not self._read():
                self._changed()
                return

    def _read(self) -> bool:
        """Handle what has arrived; False at the end of input."""
        try:
            chunk = os.read(self._handover.source, CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self._handover.ended = True
            return False
        self._read_so_far += len(chunk)
        *lines, self._handover.rest = (self._handover.rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                self._handle(line)
        return True

    def _handle(self, line: bytes) -> None:
        message = _message(line)
        number, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if not isinstance(params, dict):
            params, method = {}, None
        if method == "notifications/cancelled" and self._cancelled(params.get("requestId")):
            return
        call = None
        if message.get("jsonrpc") == "2.0" and isinstance(number, str | int) and not isinstance(number, bool):
            answer = self._answer(method, params)
            if answer is not None:
                self._reply(number, result=answer)
                if method != "initialize":
                    return
                # The live server has to know of the handshake; its own answer to it is left out.
                self._handover.answered.add(number)
            elif method == "tools/call":
                call = self._call(number, params) if len(line) <= LONGEST else None
        with self._lock:
            self._waiting.append((line, call))
        if call is not None:
            self._changed()

    def _answer(self, method: Any, params: Json) -> Json | None:
        meta = _meta(params)
        modern = MODERN_VERSION in meta
        if modern and meta[MODERN_VERSION] not in self._snapshot["modern_versions"]:
            return None
        match method:
            case "initialize" if not modern:
                version, client = params.get("protocolVersion"), params.get("clientInfo")
                if not isinstance(version, str) or not isinstance(client, dict) or set(params) - _INITIALIZE_KEYS:
                    return None
                if not isinstance(params.get("capabilities"), dict):
                    return None
                self._client = str(client.get("name", ""))
                spoken = version if version in self._snapshot["legacy_versions"] else self._snapshot["newest_legacy"]
                self._revision = spoken
                return fitting("initialize", {**self._snapshot["initialize"], "protocolVersion": spoken}, spoken)
            case "ping" if not modern and not params:
                return {}
            case "server/discover" if modern and set(params) == {"_meta"}:
                found: Json = self._snapshot["discover"]
                return found
            case "tools/list" if set(params) <= {"_meta"} and (modern or self._client is not None):
                about = meta.get(MODERN_CLIENT) if modern else {"name": self._client}
                revision = meta[MODERN_VERSION] if modern else self._revision
                return self._tools(modern, revision, str(about.get("name") or "") if isinstance(about, dict) else "")
        return None

    def _call(self, number: Any, params: Json) -> EarlyCall | None:
        """The call that this is, where it is in a form that the live server would accept."""
        meta, tool, arguments = _meta(params), params.get("name"), params.get("arguments", {})
        if self._asks_person or not isinstance(tool, str) or not isinstance(arguments, dict):
            return None
        if set(params) - {"name", "arguments", "_meta"} or "progressToken" in meta:
            return None
        if MODERN_VERSION not in meta:
            if self._client is None:
                return None  # without the handshake the live server refuses it
            return EarlyCall(number, tool, arguments, self._snapshot["call_legacy"], self._client, self._revision)
        about = meta.get(MODERN_CLIENT)
        if meta[MODERN_VERSION] not in self._snapshot["modern_versions"] or not isinstance(about, dict):
            return None
        if not isinstance(meta.get(MODERN_CAPABILITIES), dict) or not isinstance(about.get("name"), str):
            return None
        return EarlyCall(number, tool, arguments, self._snapshot["call_modern"], about["name"], meta[MODERN_VERSION])

    def _cancelled(self, number: Any) -> bool:
        """Forget a call that the client no longer wants; it gets no answer."""
        with self._lock:
            entry = next((entry for entry in self._waiting if entry[1] is not None and entry[1].number == number), None)
            if entry is None:
                return False
            self._waiting.remove(entry)
        self._changed()
        return True

    def _tools(self, modern: bool, revision: str, client: str) -> Json | None:
        self.prepare()
        from ..protocol.clients import form

        hidden = () if self._finds_browser else self._snapshot["needs_browser"]
        dropped = {"outputSchema"} if form("auto", client, revision) == "text" else set()
        tools = [
            {key: value for key, value in tool.items() if key not in dropped}
            for tool in self._snapshot["tools"]
            if tool["name"] not in hidden
        ]
        around: Json = self._snapshot["tools_modern" if modern else "tools_legacy"]
        return fitting("tools/list", {**around, "tools": tools}, revision)

    def _reply(self, number: Any, **outcome: Json) -> None:
        with self._writing:
            self._write(number, **outcome)

    def _write(self, number: Any, **outcome: Json) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": number, **outcome}, ensure_ascii=False, separators=(",", ":"))
        try:
            write_all(self._handover.sink, text.encode("utf-8", "replace") + b"\n")
        except BrokenPipeError:
            self._unread = True
            self._changed()


_INITIALIZE_KEYS = {"protocolVersion", "capabilities", "clientInfo"}


def _meta(params: Json) -> Json:
    found = params.get("_meta")
    return found if isinstance(found, dict) else {}


def _asks(line: bytes, handover: Handover) -> bool:
    """Whether a line has an id, so that an answer is waited for, and none was given."""
    number = _message(line).get("id")
    return isinstance(number, str | int) and number not in handover.answered


def _message(line: bytes) -> Json:
    """The message of a line; empty for what is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
