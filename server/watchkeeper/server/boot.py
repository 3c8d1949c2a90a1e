"""The first moments of a server over stdio: it answers while the SDK is still being imported.

Rules: imports nothing but the standard library. ``initialize``, ``server/discover``, ``ping`` and ``tools/list`` are
answered from ``boot_snapshot.json``, which is generated from the live server and compared with it in CI, in both eras
of the protocol. Whatever else arrives, or is not exactly as expected, waits for the live server. When that is there it
gets what waits, and the handshake, whose answer it must not repeat. If it cannot be loaded, every call says so.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#stdio
"""

import contextlib
import json
import os
import select
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .descriptors import take_over, write_all

SNAPSHOT = Path(__file__).with_name("boot_snapshot.json")
CHUNK = 1 << 16
MODERN_VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN_CLIENT = "io.modelcontextprotocol/clientInfo"
SHAPING = frozenset(
    {
        "browser.backend",
        "browser.cdp_url",
        "context.archive",
        "context.engine",
        "context.plugin_dirs",
        "server.results",
        "server.toolsets",
        "server.transport",
    }
)
"""Settings on which the list of tools depends; where one of them is set, the live list answers."""

Json = dict[str, Any]


@dataclass
class Handover:
    """What the live server takes over: lines to handle first, ids that are answered already, and unfinished input."""

    source: int
    sink: int
    lines: list[bytes] = field(default_factory=list)
    answered: set[str | int] = field(default_factory=set)
    rest: bytes = b""
    ended: bool = False
    """The input is over."""

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
    given = _given(options, environment)
    return not SHAPING & given and "config" not in given


def names_browser(options: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether a browser is named, so that none has to be looked for."""
    return "browser.executable" in _given(options, environment)


def _given(options: Mapping[str, str], environment: Mapping[str, str]) -> set[str]:
    """Names of the settings that are given."""
    named = {name.lower() for name in environment if name.upper().startswith("WATCHKEEPER_")}
    return set(options) | {name.removeprefix("watchkeeper_").replace("__", ".") for name in named}


def start(load: Callable[[], Callable[[Handover], int]], *, has_browser: bool = False) -> int:
    """Answer what can be answered while ``load`` runs in a thread; then call what it gave. Gives the exit status.
    ``has_browser``: one is known; else it is looked for.

    Whatever ``load`` raises as SystemExit ends the process with that status.
    """
    front = Front(json.loads(SNAPSHOT.read_text("utf-8")), Handover(take_over(0, None), take_over(1, 2)), has_browser)
    loaded: list[Callable[[Handover], int] | BaseException] = []
    waker, wake = os.pipe()

    def run() -> None:
        try:
            loaded.append(load())
        except BaseException as error:  # noqa: BLE001 - told to the client below
            loaded.append(error)
        os.write(wake, b"x")

    threading.Thread(target=run, name="watchkeeper-load", daemon=True).start()
    front.answer_until(waker)
    while not loaded:  # the input is over already; what was asked is answered all the same
        os.read(waker, 1)
    outcome = loaded[0]
    if isinstance(outcome, SystemExit):
        return outcome.code if isinstance(outcome.code, int) else 1
    if isinstance(outcome, BaseException):
        return front.refuse_for_ever(outcome)
    return outcome(front.handover)


class Front:
    """Reads lines and answers what the snapshot holds."""

    def __init__(self, snapshot: Json, handover: Handover, has_browser: bool = False) -> None:
        self.handover = handover
        self._snapshot = snapshot
        self._client = ""
        self._finds_browser: bool | None = has_browser or None

    def answer_until(self, waker: int) -> None:
        """Until ``waker`` can be read, or the input ends."""
        while True:
            ready, _, _ = select.select([self.handover.source, waker], [], [])
            if waker in ready:
                return
            if not self._read():
                return

    def refuse_for_ever(self, error: BaseException) -> int:
        """The server cannot be loaded: say so in answer to every call, until the input ends."""
        said = f"{type(error).__name__}: {error}"
        os.write(2, f"watchkeeper: the server could not be loaded: {said}\n".encode())
        waiting, self.handover.lines = self.handover.lines, []
        while True:
            for line in waiting:
                number = _message(line).get("id")
                if number is not None and number not in self.handover.answered:
                    self._reply(number, error={"code": -32603, "message": f"Watchkeeper could not be loaded ({said})."})
            if self.handover.ended or not self._read():
                return 1
            waiting, self.handover.lines = self.handover.lines, []

    def _read(self) -> bool:
        """Handle what has arrived; False at the end of input."""
        try:
            chunk = os.read(self.handover.source, CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self.handover.ended = True
            return False
        *lines, self.handover.rest = (self.handover.rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                self._handle(line)
        return True

    def _handle(self, line: bytes) -> None:
        message = _message(line)
        number, method = message.get("id"), message.get("method")
        params = message.get("params", {})
        answer = None
        if isinstance(number, str | int) and not isinstance(number, bool) and isinstance(params, dict):
            answer = self._answer(method, params)
        if answer is None or not isinstance(number, str | int):
            self.handover.lines.append(line)
            return
        self._reply(number, result=answer)
        if method == "initialize":
            # The live server has to know of the handshake; its own answer to it is left out.
            self.handover.lines.append(line)
            self.handover.answered.add(number)

    def _answer(self, method: Any, params: Json) -> Json | None:
        given = params.get("_meta")
        meta: Json = given if isinstance(given, dict) else {}
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
                return {**self._snapshot["initialize"], "protocolVersion": spoken}
            case "ping" if not modern and not params:
                return {}
            case "server/discover" if modern and set(params) == {"_meta"}:
                found: Json = self._snapshot["discover"]
                return found
            case "tools/list" if set(params) <= {"_meta"}:
                about = meta.get(MODERN_CLIENT) if modern else {"name": self._client}
                return self._tools(modern, str(about.get("name", "")) if isinstance(about, dict) else "")
        return None

    def _tools(self, modern: bool, client: str) -> Json | None:
        from .clients import form

        if self._finds_browser is None:
            from watchkeeper.supervisor.backends.find import find_browser

            self._finds_browser = find_browser() is not None
        hidden = () if self._finds_browser else self._snapshot["needs_browser"]
        dropped = {"outputSchema"} if form("auto", client) == "text" else set()
        tools = [
            {key: value for key, value in tool.items() if key not in dropped}
            for tool in self._snapshot["tools"]
            if tool["name"] not in hidden
        ]
        around: Json = self._snapshot["tools_modern" if modern else "tools_legacy"]
        return {**around, "tools": tools}

    def _reply(self, number: Any, **outcome: Json) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": number, **outcome}, ensure_ascii=False, separators=(",", ":"))
        with contextlib.suppress(BrokenPipeError):  # the client has gone; the end of its input follows
            write_all(self.handover.sink, text.encode("utf-8", "replace") + b"\n")


_INITIALIZE_KEYS = {"protocolVersion", "capabilities", "clientInfo"}


def _message(line: bytes) -> Json:
    """The message of a line; empty for what is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
