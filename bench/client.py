"""A client that talks to a server over stdio, and knows which processes are of it.

Rules: every wait is bounded; what comes late is dropped; several calls may be under way. Processes are found by a mark
in their environment, so that daemons which leave their parent count too, and whatever is left is ended by its id.
"""

import contextlib
import itertools
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ANSWER_S = 60.0
"""After this time many clients give up, and so does this one."""
EXIT_S = 10.0
MARK = "BENCH_SERVER_MARK"
_BROWSER = ("chrom", "headless_shell")


@dataclass(frozen=True)
class Reply:
    """What a call gave: seconds, the text a model would read, and whether it is an error. Without an answer in time,
    ``silent`` is true and ``text`` empty."""

    seconds: float
    text: str
    error: bool = False
    silent: bool = False


class Client:
    """Starts ``command`` in an empty folder. Use as a context manager; at its end nothing of the server is left."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self._mark = uuid.uuid4().hex
        own = {"HOME": self._folder.name, "TMPDIR": self._folder.name, MARK: self._mark}
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=inherited | own | dict(environment),
            start_new_session=True,
        )
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def seconds(self) -> float:
        """Since the process was started."""
        return time.perf_counter() - self.began

    # --- messages

    def ask(self, method: str, params: Mapping[str, Any], within: float = ANSWER_S) -> dict[str, Any]:
        """The response.

        Raises:
            TimeoutError: none came in time, or the server has gone.
        """
        number = next(self._numbers)
        answer: queue.Queue[dict[str, Any]] = queue.Queue(1)
        self._waiting[number] = answer
        try:
            self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)})
            got = answer.get(timeout=within)
            if not got:
                raise TimeoutError(f"the server ended before it answered {method}")
            return got
        except (OSError, ValueError, queue.Empty) as error:
            raise TimeoutError(f"no answer to {method} within {within:g} s") from error
        finally:
            self._waiting.pop(number, None)

    def initialize(self) -> dict[str, Any]:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        result: dict[str, Any] = self.ask("initialize", about).get("result", {})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def tools(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        for _ in range(100):
            result = self.ask("tools/list", cursor).get("result", {})
            found += result.get("tools", [])
            if not result.get("nextCursor"):
                break
            cursor = {"cursor": result["nextCursor"]}
        return found

    def call(self, tool: str, arguments: Mapping[str, Any], within: float = ANSWER_S) -> Reply:
        began = time.perf_counter()
        try:
            answer = self.ask("tools/call", {"name": tool, "arguments": dict(arguments)}, within)
        except TimeoutError:
            return Reply(time.perf_counter() - began, "", error=True, silent=True)
        took = time.perf_counter() - began
        if "error" in answer:
            return Reply(took, json.dumps(answer["error"]), error=True)
        result = answer.get("result", {})
        text = "\n".join(part.get("text", "") for part in result.get("content", []) if part.get("type") == "text")
        return Reply(took, text, error=bool(result.get("isError")))

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # some servers print other things
            if not isinstance(message, dict):
                continue
            if "method" in message:
                self._refuse(message)
            elif waiting := self._waiting.get(message.get("id", 0)):
                waiting.put(message)
        for waiting in list(self._waiting.values()):
            waiting.put({})  # nothing comes any more

    def _refuse(self, message: Mapping[str, Any]) -> None:
        """Requests of a server: nothing is offered, but it must not wait for ever."""
        if "id" in message:
            error = {"code": -32601, "message": "not offered"}
            with contextlib.suppress(OSError, ValueError):
                self._write({"jsonrpc": "2.0", "id": message["id"], "error": error})

    # --- processes

    def processes(self) -> tuple[list[psutil.Process], list[psutil.Process]]:
        """The server's own processes, and those of its browser."""
        own: list[psutil.Process] = []
        browser: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) != self._mark or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                name = Path(process.exe()).name.lower()
            except (psutil.Error, OSError):
                continue
            (browser if any(part in name for part in _BROWSER) else own).append(process)
        return own, browser

    def memory_mb(self) -> float:
        """Proportional set size of the server's own processes; a browser is not counted."""
        total = 0.0
        for process in self.processes()[0]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss / 1e6
        return total

    def kill_browser(self) -> bool:
        """End the browser's first process, as a crash would; whether there was one."""
        for process in self.processes()[1]:
            with contextlib.suppress(psutil.Error):
                if not any(part.startswith("--type=") for part in process.cmdline()):
                    process.kill()
                    return True
        return False

    def end(self) -> int:
        """Close the input, wait, and end what is left; how many processes that were."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_S)
        own, browser = self.processes()
        left = [*own, *browser]
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=EXIT_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()
        return len(left)
