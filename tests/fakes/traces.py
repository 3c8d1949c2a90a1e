"""Traces: what a real browser sent, as JSON lines; recorded by ``tests/traces/record.py``, replayed through ``step``.

The first line says what was recorded (``browser``, ``bridge``, ``policy``). Each further line is one input, with the
seconds since the first: ``event`` (with ``session`` and ``params``), ``reply`` to a command of the core (``method``,
``session``, and ``result`` or ``error`` with its code), or what a caller did (``answer``, ``adopt``, ``select``).
Ids, ports and times are replaced by short names, the same for the same thing.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from watchkeeper.supervisor.core.commands import Command, Send
from watchkeeper.supervisor.core.inputs import Adopt, AnswerDialog, Event, Failed, Input, Replied, SelectTab
from watchkeeper.supervisor.core.reducer import _SESSION_EVENTS, _TARGET_EVENTS, step
from watchkeeper.supervisor.core.state import BrowserState, Options

FOLDER = Path(__file__).parent.parent / "traces"
START = 1_700_000_000.0
_DROPPED = {
    "timestamp",
    "wallTime",
    "monotonicTime",
    "stackTrace",
    "scopeChain",
    "this",
    "functionLocation",
    "secureContextType",
    "crossOriginIsolatedContextType",
    "gatedAPIFeatures",
    "adFrameStatus",
    "securityOriginDetails",
    "domainAndRegistry",
    "mimeType",
    "browserContextId",
}
_ID = re.compile(r"[0-9A-F]{32}|-?\d{12,}\.-?\d+(?:\.\d+)*")


class Recorder:
    """Hears the inputs of one supervisor's core and writes those that matter."""

    def __init__(self, about: Mapping[str, Any], port: int) -> None:
        self.lines: list[dict[str, Any]] = []
        self._about = dict(about)
        self._port = port
        self._names: dict[str, str] = {}

    def heard(self, happened: Input, now: float) -> None:
        match happened:
            case Event(session, method, params):
                ours = method != "Debugger.scriptParsed" or params.get("url") == "watchkeeper-bridge.js"
                if ours and method in {*_TARGET_EVENTS, *_SESSION_EVENTS}:
                    if method == "Debugger.paused":
                        params = {**params, "callFrames": params.get("callFrames", [])[:1]}
                    self._add(now, {"event": method, "session": session, "params": params})
            case AnswerDialog(dialog_id, accept, text, by):
                self._add(now, {"answer": [dialog_id, accept, text, by]})
            case Adopt(target_id):
                self._add(now, {"adopt": target_id})
            case SelectTab(target_id):
                self._add(now, {"select": target_id})

    def replied(self, command: Send, outcome: Replied | Failed, now: float) -> None:
        line: dict[str, Any] = {"reply": command.method, "session": command.session_id}
        if isinstance(outcome, Failed):
            line["error"] = [outcome.code, outcome.message]
        else:
            line["result"] = outcome.result
        self._add(now, line)

    def text(self) -> str:
        first = self.lines[0]["t"]
        body = [{**line, "t": round(line["t"] - first, 3)} for line in self.lines]
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in [self._about, *body])

    def _add(self, now: float, line: dict[str, Any]) -> None:
        self.lines.append({"t": now, **self._neutral(line)})

    def _neutral(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._neutral(part) for key, part in value.items() if key not in _DROPPED}
        if isinstance(value, list):
            return [self._neutral(part) for part in value]
        if isinstance(value, str):
            value = value.replace(f"127.0.0.1:{self._port}", "a.test").replace(f"localhost:{self._port}", "b.test")
            return _ID.sub(lambda found: self._names.setdefault(found[0], f"ID{len(self._names) + 1}"), value)
        return value


def replay(name: str) -> Iterator[tuple[BrowserState, dict[str, Any], tuple[Command, ...]]]:
    """The state after each line of a trace, with the line and the commands that followed from it.

    A reply goes to the oldest command of its method and session that the core asked for and that waits still.
    """
    about, *lines = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    state = BrowserState(options=Options(about["policy"], bridge=about["bridge"], nonce="n"))
    waiting: list[Send] = []
    for line in lines:
        happened = _input(line, waiting)
        state, commands = step(state, happened, START + line["t"])
        waiting.extend(c for c in commands if isinstance(c, Send) and c.tag is not None)
        yield state, line, commands


def _input(line: Mapping[str, Any], waiting: list[Send]) -> Input:
    if "event" in line:
        return Event(line["session"], line["event"], line["params"])
    if "answer" in line:
        return AnswerDialog(*line["answer"])
    if "adopt" in line:
        return Adopt(line["adopt"])
    if "select" in line:
        return SelectTab(line["select"])
    command = next(c for c in waiting if (c.method, c.session_id) == (line["reply"], line["session"]))
    waiting.remove(command)
    assert command.tag is not None
    if "error" in line:
        return Failed(command.tag, *line["error"])
    return Replied(command.tag, line["result"])
