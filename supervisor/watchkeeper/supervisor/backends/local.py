"""Start a browser on this machine.

Rules: what cannot work is refused before anything starts. A browser counts as started when it has answered a command.
Whatever fails on the way, and however it is cancelled, leaves no process and no temporary folder.
"""

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from anyio import CancelScope, to_thread

from ..egress.policy import ProxyRoute
from ..errors import BrowserNotFound, EndpointUnreachable, LaunchFailed, TransportClosed
from ..transport import PipeTransport, Transport
from . import failures
from .connected import Connected, ask_version
from .endpoint import LocalEndpoint
from .find import find_browser, is_executable
from .launch import Machine, Reach, arguments, sandbox_is_off
from .process import BrowserProcess, read_port_file
from .profile import KeptProfile, Profile, TemporaryProfile, temporary_root

NOTE_NO_SANDBOX = (
    "The browser runs without its sandbox (we run as root, or browser.extra_args says so): a page that breaks out of"
    " the browser has our rights. Run as an ordinary user where pages are not trusted."
)
NOTE_SMALL_SHM = "/dev/shm is small here, so the browser keeps shared memory in the temporary folder, which is slower."

ENDED_FROM_OUTSIDE = (0, -9, -15)
"""Exit codes after which what the browser printed explains nothing: in order, SIGKILL, SIGTERM."""


class LocalBrowser(Connected):
    """A browser of ours; ``close`` ends it, its helpers and its temporary profile."""

    owns_browser = True

    def __init__(
        self, transport: Transport, product: str, notes: tuple[str, ...], process: BrowserProcess, profile: Profile
    ) -> None:
        super().__init__(transport, product, notes)
        self.process = process
        self.pid = process.pid
        self.profile = profile
        self._closing: asyncio.Task[None] | None = None

    async def ending(self) -> str:
        try:
            async with asyncio.timeout(1):  # the pipe ends a moment before the process does
                code = await self.process.wait()
        except TimeoutError:
            return ""
        printed = "" if code in ENDED_FROM_OUTSIDE else failures.tail(self.process.printed)
        return f"the browser ended ({failures.ended(code)})" + (f"; it printed: {printed}" if printed else "")

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(_end(self.transport, self.process, self.profile))
        with CancelScope(shield=True):
            await asyncio.shield(self._closing)


async def connect_local(
    endpoint: LocalEndpoint, timeout: float, *, reach: Reach | None = None, route: ProxyRoute | None = None
) -> LocalBrowser:
    """Start the browser of this endpoint. ``reach``: over a pipe, except on Windows. ``route``: the proxy to use
    instead of the endpoint's.

    Raises: BrowserNotFound, LaunchFailed, InvalidArgument.
    """
    machine = this_machine()
    executable = resolve_executable(endpoint.executable)
    headless = not machine.has_display if endpoint.headless is None else endpoint.headless
    if not headless and not machine.has_display:
        raise LaunchFailed(
            "The browser should open a window, and there is no display.",
            "Set browser.headless to true, or start where DISPLAY or WAYLAND_DISPLAY is set.",
            kind="no_display",
        )
    if reach is None:
        reach = "port" if machine.platform == "win32" else "pipe"
    temporary = endpoint.user_data_dir is None

    def command(profile: str) -> list[str]:
        options = arguments(
            machine,
            profile=profile,
            temporary=temporary,
            headless=headless,
            reach=reach,
            extra=endpoint.extra_args,
            proxy=endpoint.proxy,
            route=route,
        )
        return [str(executable), *options]

    command("")  # refuses what it must before a folder is made
    profile: Profile = await to_thread.run_sync(make_profile, endpoint.user_data_dir, executable)
    notes = []
    if sandbox_is_off(machine, endpoint.extra_args):
        notes.append(NOTE_NO_SANDBOX)
    if "--disable-dev-shm-usage" in (line := command(str(profile.path))):
        notes.append(NOTE_SMALL_SHM)
    process: BrowserProcess | None = None
    transport: Transport | None = None
    try:
        async with asyncio.timeout(timeout) as deadline:
            if reach == "pipe":
                process, read_fd, write_fd = await BrowserProcess.start_with_pipe(line, profile.environment)
                transport = PipeTransport(read_fd, write_fd)
            else:
                with suppress(FileNotFoundError):
                    (profile.path / "DevToolsActivePort").unlink()  # of a run before this one
                process = await BrowserProcess.start_with_port(line, profile.environment)
                transport = await _open_port(process, profile.path, timeout)
            product = await _first_answer(process, transport)
        failures.check_version(product)
        return LocalBrowser(transport, product, tuple(notes), process, profile)
    except BaseException as error:
        exit_code = process.exit_code if process is not None else None
        await _end(transport, process, profile)
        if isinstance(error, TransportClosed | EndpointUnreachable) or (
            isinstance(error, TimeoutError) and deadline.expired()
        ):
            printed = process.printed if process is not None else ""
            if exit_code is None and process is not None and isinstance(error, TransportClosed):
                exit_code = process.exit_code
            raise failures.explain(printed, exit_code, timeout) from None
        if isinstance(error, OSError):
            raise LaunchFailed(
                f"The browser could not be started: {error.strerror or error}.",
                "Check browser.executable, and the limits on processes and open files.",
                kind="not_executable",
            ) from None
        raise


def resolve_executable(configured: str | None) -> Path:
    """The browser to start. A name without a folder is looked up in ``PATH``.

    Raises: BrowserNotFound, LaunchFailed (``not_executable``).
    """
    if configured is None:
        found = find_browser()
        if found is None:
            raise BrowserNotFound(
                "No Chrome, Chromium, Edge or Brave was found on this machine.",
                "Install one (on Debian: apt install chromium), or name it in browser.executable, or give the address"
                " of a running one in browser.cdp_url.",
            )
        return found
    path = Path(configured).expanduser()
    if path.name == configured:
        path = Path(shutil.which(configured) or configured)
    if not path.exists():
        raise BrowserNotFound(
            f"browser.executable is {configured!r}, and there is no such file.",
            "Give the path of the browser's executable, or leave it out: then one is looked for.",
        )
    if path.suffix == ".app":
        inside = path / "Contents" / "MacOS" / path.stem
        path = inside if inside.exists() else path
    if not is_executable(path):
        raise LaunchFailed(
            f"browser.executable is {configured!r}, which is not a program that you may run.",
            "Give the path of the browser's executable, or leave it out: then one is looked for.",
            kind="not_executable",
        )
    return path.absolute()


def this_machine() -> Machine:
    """What the command line depends on, as it is here."""
    environment = os.environ
    x11, wayland = bool(environment.get("DISPLAY")), bool(environment.get("WAYLAND_DISPLAY"))
    if sys.platform == "win32":
        return Machine(sys.platform, is_root=False, has_display=True)
    if sys.platform == "darwin":
        has_display = "SSH_CONNECTION" not in environment
        return Machine(sys.platform, is_root=os.geteuid() == 0, has_display=has_display)
    shm_free = None
    if Path("/dev/shm").is_dir():
        shm_free = shutil.disk_usage("/dev/shm").free
    return Machine(sys.platform, os.geteuid() == 0, x11 or wayland, wayland and not x11, shm_free)


def make_profile(user_data_dir: str | None, executable: Path) -> Profile:
    if user_data_dir is not None:
        return KeptProfile(user_data_dir)
    return TemporaryProfile(temporary_root(executable))


async def _open_port(process: BrowserProcess, folder: Path, timeout: float) -> Transport:
    from ..transport.websocket import WebSocketTransport

    while (url := read_port_file(folder)) is None:
        if process.exit_code is not None:
            raise TransportClosed("the browser ended while it started")
        await asyncio.sleep(0.02)
    return await WebSocketTransport.connect(url, timeout)


async def _first_answer(process: BrowserProcess, transport: Transport) -> str:
    """Wait until it answers, ends, or says that it never will.

    Raises: TransportClosed, EndpointUnreachable.
    """
    answer = asyncio.create_task(ask_version(transport))
    others = [asyncio.create_task(process.wait()), asyncio.create_task(_says_never(process))]
    try:
        await asyncio.wait([answer, *others], return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise TransportClosed("the browser ended while it started")
    finally:
        for task in (answer, *others):
            task.cancel()
        await asyncio.gather(answer, *others, return_exceptions=True)


async def _says_never(process: BrowserProcess) -> None:
    while not failures.FATAL_BUT_RUNNING.search(process.printed):
        await process.wait_printed()


async def _end(transport: Transport | None, process: BrowserProcess | None, profile: Profile) -> None:
    with CancelScope(shield=True):
        if transport is not None:
            await transport.close()
        if process is not None:
            await process.end()
        await to_thread.run_sync(profile.remove)
