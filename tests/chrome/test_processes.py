"""Browsers of ours on a real Chromium: started, ended in every way, and nothing left behind."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.supervisor.backends import LocalEndpoint, find_browser
from watchkeeper.supervisor.backends.launch import Reach
from watchkeeper.supervisor.backends.local import LocalBrowser, connect_local
from watchkeeper.supervisor.errors import BrowserNotFound, LaunchFailed, TransportClosed

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
HANG = 30.0
HEADLESS = LocalEndpoint(headless=True)


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary profiles of this test alone. The path is short, as that of any temporary folder is in life."""
    tmp_path_factory.getbasetemp()  # made where temporary folders were before
    folder = Path(tempfile.mkdtemp(prefix="wk-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def browser() -> AsyncIterator[LocalBrowser]:
    started = await connect_local(HEADLESS, HANG)
    yield started
    await started.close()


def processes_with(text: Path | str) -> list[int]:
    """Processes, zombies aside, whose command line has this text: every process of a browser names its profile."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if str(text).encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(HANG):
        while not condition():  # noqa: ASYNC110 -- other processes tell nobody
            await asyncio.sleep(0.02)


async def call(browser: LocalBrowser, method: str, params: dict[str, Any] | None = None, session: str = "") -> Any:
    message: dict[str, Any] = {"id": 99, "method": method, "params": params or {}}
    if session:
        message["sessionId"] = session
    browser.transport.send(json.dumps(message))
    async with asyncio.timeout(HANG):
        while (reply := json.loads(await browser.transport.receive())).get("id") != 99:
            pass
    return reply["result"]


async def open_page(browser: LocalBrowser, url: str = "about:blank") -> str:
    target = await call(browser, "Target.createTarget", {"url": url})
    return str(
        (await call(browser, "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}))["sessionId"]
    )


async def test_a_browser_that_started_has_answered_and_names_its_version(browser: LocalBrowser) -> None:
    assert browser.product.startswith(("Chrome/", "HeadlessChrome/"))
    assert browser.owns_browser
    session = await open_page(browser)
    result = await call(browser, "Runtime.evaluate", {"expression": "6 * 7"}, session)
    assert result["result"]["value"] == 42


async def test_pages_of_every_kind_load(browser: LocalBrowser) -> None:
    """A flag can break http alone: --disable-crashpad-for-testing does, in Chromium 156."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A browser also opens connections that it may need, and closes them without a word.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
            )
        writer.close()

    session = await open_page(browser)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for url in (f"http://127.0.0.1:{port}/", "data:text/html,hello", f"http://localhost:{port}/"):
            assert "errorText" not in await call(browser, "Page.navigate", {"url": url}, session)
            expression = "new Promise(done => document.body ? done() : addEventListener('DOMContentLoaded', done))"
            params = {"expression": f"{expression}.then(() => document.body.textContent)", "awaitPromise": True}
            assert (await call(browser, "Runtime.evaluate", params, session))["result"]["value"] == "hello"


async def test_the_temporary_profile_is_for_its_owner_alone(browser: LocalBrowser) -> None:
    assert browser.profile.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("reach", ["pipe", "port"])
async def test_closing_leaves_no_process_no_profile_and_no_temporary_file(
    reach: Reach, own_temporary_folder: Path
) -> None:
    browser = await connect_local(HEADLESS, HANG, reach=reach)
    assert len(processes_with(browser.profile.path)) > 1
    await browser.close()
    await browser.close()
    assert processes_with(browser.profile.path) == []
    assert list(own_temporary_folder.iterdir()) == []
    with pytest.raises(TransportClosed):
        await browser.transport.receive()


async def test_closing_without_a_word_to_the_browser_is_enough_when_it_has_a_dialog_open(browser: LocalBrowser) -> None:
    session = await open_page(browser)
    await call(browser, "Page.enable", {}, session)
    expression = {"expression": "setTimeout(() => alert(1), 0)"}
    await call(browser, "Runtime.evaluate", expression, session)
    while json.loads(await browser.transport.receive()).get("method") != "Page.javascriptDialogOpening":
        pass
    await asyncio.wait_for(browser.close(), HANG)
    assert processes_with(browser.profile.path) == []


async def test_a_browser_that_hangs_is_killed_with_its_helpers(browser: LocalBrowser) -> None:
    os.kill(browser.process.pid, signal.SIGSTOP)
    await asyncio.wait_for(browser.close(), HANG)
    assert browser.process.exit_code == -signal.SIGKILL
    assert processes_with(browser.profile.path) == []
    assert not browser.profile.path.exists()


async def test_a_killed_browser_ends_the_transport_and_says_how_it_ended(browser: LocalBrowser) -> None:
    os.kill(browser.process.pid, signal.SIGKILL)
    with pytest.raises(TransportClosed):
        while True:
            await asyncio.wait_for(browser.transport.receive(), HANG)
    assert (await browser.ending()).startswith("the browser ended (killed by SIGKILL")
    await browser.close()
    assert processes_with(browser.profile.path) == []
    assert not browser.profile.path.exists()


OWNER = """
    import asyncio, sys
    from watchkeeper.supervisor.backends import LocalEndpoint
    from watchkeeper.supervisor.backends.local import connect_local

    async def main(reach, then):
        browser = await connect_local(LocalEndpoint(headless=True), 30, reach=reach)
        print(browser.profile.path, flush=True)
        if then == "exits":
            sys.exit(0)
        if then == "is busy":
            while True:
                pass
        await asyncio.Event().wait()

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("reach", "then", "end"),
    [
        ("pipe", "exits", None),
        ("pipe", "waits", signal.SIGTERM),
        ("pipe", "waits", signal.SIGKILL),
        ("pipe", "is busy", signal.SIGKILL),
        ("port", "exits", None),
        ("port", "waits", signal.SIGKILL),
    ],
)
async def test_however_our_process_ends_no_browser_process_survives_and_the_next_start_removes_the_profile(
    reach: Reach, then: str, end: signal.Signals | None, own_temporary_folder: Path
) -> None:
    command = [sys.executable, "-c", textwrap.dedent(OWNER), reach, then]
    owner = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert owner.stdout is not None
    profile = Path((await asyncio.wait_for(owner.stdout.readline(), HANG)).decode().strip())
    if end is not None:
        assert len(processes_with(profile)) > 1
        owner.send_signal(end)
    await asyncio.wait_for(owner.wait(), HANG)
    await until(lambda: processes_with(profile) == [])
    assert profile.exists(), "this test is about profiles that are left"
    next_one = await connect_local(HEADLESS, HANG)
    assert not profile.exists()
    await next_one.close()


REAPER = """
    import asyncio, ctypes, os, signal, sys
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to us, as to process 1
    from watchkeeper.supervisor.backends import LocalEndpoint, connect

    async def main(how):
        browser = await connect(LocalEndpoint(headless=True), timeout=30)
        if how == "is killed":
            os.kill(browser.process.pid, signal.SIGKILL)
        await browser.close()
        try:
            print("a child is left:", os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        except ChildProcessError:
            print("no children")

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("how", ["is closed", "is killed"])
async def test_where_orphans_come_to_us_no_zombie_is_left(how: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(REAPER), how]
    reaper = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = await asyncio.wait_for(reaper.communicate(), HANG)
    assert said.decode().strip() == "no children"


async def test_the_profiles_of_living_owners_are_left_alone(browser: LocalBrowser) -> None:
    other = await connect_local(HEADLESS, HANG)
    assert browser.profile.path.exists()
    await other.close()
    assert browser.profile.path.exists()
    assert await call(browser, "Browser.getVersion")


async def test_the_browser_gets_its_pipe_and_nothing_else_that_we_have_open(tmp_path: Path) -> None:
    secret = os.open(tmp_path / "ours", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(secret, True)
    browser = await connect_local(HEADLESS, HANG)
    try:
        descriptors = Path(f"/proc/{browser.process.pid}/fd")
        open_files = [os.readlink(link) for link in descriptors.iterdir()]
        assert str(tmp_path / "ours") not in open_files
        assert {os.readlink(descriptors / number)[:5] for number in ("3", "4")} == {"pipe:"}
        assert os.readlink(descriptors / "0") == os.readlink(descriptors / "1") == "/dev/null"
    finally:
        os.close(secret)
        await browser.close()


async def test_a_launch_that_is_cancelled_leaves_nothing(own_temporary_folder: Path) -> None:
    for turns in (3, 30, 300):
        launching = asyncio.create_task(connect_local(HEADLESS, HANG))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        launching.cancel()
        try:
            await (await launching).close()
        except asyncio.CancelledError:
            pass
        await until(lambda: processes_with(own_temporary_folder) == [])
        assert list(own_temporary_folder.iterdir()) == []


async def test_a_program_that_is_no_browser_fails_with_what_it_printed_and_leaves_nothing(
    own_temporary_folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'I am a teapot' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(LaunchFailed, match=r"exit code 3.*I am a teapot") as failed:
        await connect_local(LocalEndpoint(str(program), headless=True), HANG)
    assert failed.value.kind == "unknown"
    program.write_text("#!/bin/sh\nexec sleep 100\n")
    with pytest.raises(LaunchFailed, match=r"did not answer within 0\.3 s") as failed:
        await connect_local(LocalEndpoint(str(program), headless=True), 0.3)
    assert failed.value.kind == "timeout"
    assert list(own_temporary_folder.iterdir()) == []


async def test_a_browser_that_will_never_listen_is_given_up_at_once(tmp_path: Path) -> None:
    program = tmp_path / "chrome"
    said = "DevTools remote debugging requires a non-default data directory. Specify this using --user-data-dir."
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexec sleep 100\n")
    program.chmod(0o755)
    with pytest.raises(LaunchFailed, match="default profile") as failed:
        await connect_local(LocalEndpoint(str(program), headless=True), 10 * HANG)
    assert failed.value.kind == "default_profile"


async def test_an_executable_that_is_missing_or_not_one_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(BrowserNotFound, match="no such file"):
        await connect_local(LocalEndpoint(str(tmp_path / "none"), headless=True), HANG)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(LaunchFailed, match="not a program") as failed:
        await connect_local(LocalEndpoint(str(tmp_path / "text"), headless=True), HANG)
    assert failed.value.kind == "not_executable"


async def test_a_window_without_a_display_is_refused_and_no_preference_means_headless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(LaunchFailed, match="no display") as failed:
        await connect_local(LocalEndpoint(headless=False), HANG)
    assert failed.value.kind == "no_display"
    browser = await connect_local(LocalEndpoint(headless=None), HANG)
    await browser.close()


async def test_a_display_that_cannot_be_opened_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":987")
    with pytest.raises(LaunchFailed) as failed:
        await connect_local(LocalEndpoint(headless=False), HANG)
    assert failed.value.kind == "no_display"


async def test_a_kept_profile_stays_and_is_not_opened_twice(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    endpoint = LocalEndpoint(headless=True, user_data_dir=str(folder))
    first = await connect_local(endpoint, HANG)
    with pytest.raises(LaunchFailed, match=f"in use by another browser .process {first.process.pid}") as failed:
        await connect_local(endpoint, HANG)
    assert failed.value.kind == "profile_in_use"
    assert await call(first, "Browser.getVersion")
    await first.close()
    assert (folder / "Local State").exists()
    await (await connect_local(endpoint, HANG)).close()
    assert (folder / "Local State").exists()


def test_a_browser_started_from_a_thread_lives_on_when_that_thread_started_others_and_ends_with_its_loop() -> None:
    outcome: list[Any] = []

    async def use() -> None:
        browser = await connect_local(HEADLESS, HANG)
        short_lived = threading.Thread(target=lambda: None)
        short_lived.start()
        short_lived.join()
        outcome.append(await call(browser, "Browser.getVersion"))
        await browser.close()
        outcome.append(processes_with(browser.profile.path))

    thread = threading.Thread(target=lambda: asyncio.run(use()), daemon=True)
    thread.start()
    thread.join(2 * HANG)
    assert outcome[0]["product"]
    assert outcome[1] == []


async def test_as_an_ordinary_user_the_sandbox_stays_on(tmp_path: Path) -> None:
    """Root alone can check it for another user, so as an ordinary user this looks at the browser that it starts."""
    browser = await connect_local(HEADLESS, HANG)
    command = Path(f"/proc/{browser.process.pid}/cmdline").read_text().split("\0")
    await browser.close()
    assert ("--no-sandbox" in command) == (os.geteuid() == 0)
    assert any("without its sandbox" in note for note in browser.notes) == (os.geteuid() == 0)


def test_the_machine_that_runs_these_tests_has_a_browser() -> None:
    assert find_browser() is not None
