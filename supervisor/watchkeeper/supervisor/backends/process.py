"""A browser's processes: started, listened to, ended without remainder.

Rules: however our own process ends, no browser process survives it. With a pipe the kernel sees to that: it closes our
end, and Chromium ends itself. With a port (Windows) a guard process does.

Why a shell places the pipe on descriptors 3 and 4: ``preexec_fn`` may deadlock when other threads run, ``pass_fds``
keeps the numbers that descriptors have here, and ``posix_spawn`` leaves waiting and sessions to us. So the pipe's ends
are handed over as standard input and output, which ``subprocess`` can place, and one line of shell moves them and
becomes the browser. Only single digits are used in it, all that POSIX promises. Every other descriptor is closed.
PR_SET_PDEATHSIG would be no help: it fires when the *thread* that started the child ends.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from . import guard

MOVE_PIPE = 'exec 3<&0 4>&1 </dev/null >/dev/null; exec "$@"'
PRINTED_CAP = 16 * 1024
"""Bytes kept of what the browser prints: its end."""

ENDS_BY_ITSELF_S = 2.0
ENDS_WHEN_ASKED_S = 1.0
HELPERS_END_S = 0.3
REAP_POLL_S = 0.01


class BrowserProcess:
    """The browser and its helpers, which are one process group."""

    def __init__(self, process: asyncio.subprocess.Process, guardian: subprocess.Popen[bytes] | None = None) -> None:
        self._process = process
        self._guardian = guardian
        self._printed = bytearray()
        self._listener = asyncio.create_task(self._listen(), name="watchkeeper-browser-stderr")
        self._something_printed = asyncio.Event()

    @classmethod
    async def start_with_pipe(
        cls, command: Sequence[str], environment: Mapping[str, str]
    ) -> "tuple[BrowserProcess, int, int]":
        """Start it, with ``environment`` beside ours; gives also the descriptors to read from and to write to."""
        browser_reads, we_write = os.pipe()
        try:
            we_read, browser_writes = os.pipe()
        except OSError:
            os.close(browser_reads)
            os.close(we_write)
            raise
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                MOVE_PIPE,
                "sh",
                *command,
                stdin=browser_reads,
                stdout=browser_writes,
                stderr=subprocess.PIPE,
                env={**os.environ, **environment},
                start_new_session=True,  # the terminal's Ctrl-C is for us; we end the browser in order
            )
        except BaseException:
            os.close(we_read)
            os.close(we_write)
            raise
        finally:
            os.close(browser_reads)
            os.close(browser_writes)
        return cls(process), we_read, we_write

    @classmethod
    async def start_with_port(cls, command: Sequence[str], environment: Mapping[str, str]) -> "BrowserProcess":
        """Start it with a debugging port, and a guard beside it."""
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=sys.platform != "win32",
            creationflags=flags,
        )
        if sys.platform == "win32":
            flags |= subprocess.CREATE_NO_WINDOW
        try:
            guardian = subprocess.Popen(  # noqa: ASYNC220 -- starts and is not waited for
                [sys.executable, "-I", "-S", guard.__file__, str(process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=sys.platform != "win32",
                creationflags=flags,
            )
        except OSError:
            process.kill()
            raise
        return cls(process, guardian)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.returncode

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        return self._printed.decode(errors="replace")

    async def wait(self) -> int:
        return await self._process.wait()

    async def wait_printed(self) -> None:
        """Until it prints something more."""
        self._something_printed.clear()
        await self._something_printed.wait()

    async def end(self) -> None:
        """End it and its helpers: wait, ask, kill; then reap. The caller has closed the pipe."""
        if not await self._ended_within(ENDS_BY_ITSELF_S):
            with suppress(ProcessLookupError):
                self._process.terminate()
            if not await self._ended_within(ENDS_WHEN_ASKED_S):
                self._kill_all()
                await self._ended_within(ENDS_WHEN_ASKED_S)
        await self._end_helpers()
        await to_thread.run_sync(self._release_guard)

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(8192):
            self._printed += data
            del self._printed[:-PRINTED_CAP]
            self._something_printed.set()

    async def _ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _release_guard(self) -> None:
        if self._guardian is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._guardian.communicate(guard.OVER, timeout=1)

    def _kill_all(self, *, leader_is_gone: bool = False) -> None:
        if sys.platform == "win32":
            if leader_is_gone:
                return  # its number may be somebody else's by now; helpers end with their pipes
            command = ["taskkill", "/T", "/F", "/PID", str(self.pid)]
            subprocess.run(command, check=False, capture_output=True, timeout=5)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _end_helpers(self) -> None:
        """The leader is gone. A moment for the helpers to end, then they are killed.

        They all share the leader's standard error, so its end is theirs. (That the process group exists says little:
        zombies belong to it, and init may take seconds to reap them.)
        """
        done, _ = await asyncio.wait([self._listener], timeout=HELPERS_END_S)
        self._kill_all(leader_is_gone=True)
        if not done:
            await asyncio.wait([self._listener], timeout=HELPERS_END_S)
            self._listener.cancel()  # a process that left the group still holds the pipe
            await asyncio.gather(self._listener, return_exceptions=True)
        await self._reap_orphans()

    async def _reap_orphans(self) -> None:
        """Where orphans come to us (process 1 of a container, a subreaper) we reap them; elsewhere init does."""
        if sys.platform == "win32":
            return
        for _ in range(int(HELPERS_END_S / REAP_POLL_S)):
            left = [_reap(child) for child in (-self.pid, *_crash_handlers())]
            if not any(left):
                return
            await asyncio.sleep(REAP_POLL_S)


def _reap(pid: int) -> bool:
    """Collect an ended child, or all of a group (negative); whether there is one still."""
    try:
        while os.waitpid(pid, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _crash_handlers() -> list[int]:
    """Children of ours that are Chromium's crash handlers.

    They leave the browser's process group and end by themselves when it does. We start none, so one that is our child
    is an orphan that came to us (of another browser perhaps, which lives: it is waited for in vain, and not for long).
    """
    found = []
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread or a child that just ended
            for pid in children.read_text().split():
                if "(chrome_crashpad" in Path(f"/proc/{pid}/stat").read_text():
                    found.append(int(pid))
    return found


def read_port_file(folder: Path) -> str | None:
    """The address from ``DevToolsActivePort``, which Chromium writes when its port is open; None before."""
    try:
        port, path = (folder / "DevToolsActivePort").read_text().split("\n")[:2]
    except (OSError, ValueError):
        return None
    return f"ws://127.0.0.1:{int(port)}{path}" if port.isdigit() and path.startswith("/") else None
