"""Loss and return on a real Chromium: killed, dropped, gone and back, and a dialog open before we came."""

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from fakes.site import Site
from fakes.waits import WAIT_S, Start, pending

from watchkeeper.supervisor import CdpEndpoint, LocalEndpoint, SupervisorOptions, SupervisorRegistry, find_browser
from watchkeeper.supervisor.errors import ConnectionLost, EndpointUnreachable

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--site-per-process",
]


@dataclass
class Port:
    """A browser that somebody else runs, with an open debugging port."""

    number: int
    process: asyncio.subprocess.Process

    @property
    def endpoint(self) -> CdpEndpoint:
        return CdpEndpoint(f"http://127.0.0.1:{self.number}")


async def launch(number: int, folder: str) -> Port:
    executable = find_browser()
    assert executable is not None
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        str(executable),
        *FLAGS,
        *sandbox,
        f"--user-data-dir={folder}",
        f"--remote-debugging-port={number}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", number)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        await writer.wait_closed()
        break
    return Port(number, process)


async def end(port: Port) -> None:
    if port.process.returncode is None:
        os.killpg(port.process.pid, signal.SIGKILL)
        await asyncio.wait_for(port.process.wait(), 10)


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = await launch(number, folder)
        yield made
        await end(made)


async def test_a_killed_browser_fails_the_call_in_flight_and_the_next_start_relaunches(
    registry: SupervisorRegistry, site: Site
) -> None:
    endpoint = LocalEndpoint(headless=True)
    supervisor = await registry.get_or_start("task", endpoint)
    await supervisor.navigate(site.page("/", "<title>T</title>"))
    waiting = asyncio.create_task(supervisor.evaluate("new Promise(() => {})"))
    await asyncio.sleep(0)
    process = supervisor.browser._connected.process  # type: ignore[attr-defined]
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(waiting, WAIT_S)
    with pytest.raises(ConnectionLost) as raised:
        await supervisor.navigate(site.url("/"))
    assert "starts a new one" in raised.value.hint
    again = await registry.get_or_start("task", endpoint)
    assert again is not supervisor and "started again" in again.notice
    assert (await again.navigate(site.url("/"))).title == "T"


async def test_a_dropped_socket_is_connected_again_and_the_page_has_kept_its_state(
    registry: SupervisorRegistry, site: Site, port: Port
) -> None:
    site.page("/inner", "<script>who = 'inner'</script>")
    supervisor = await registry.get_or_start("task", port.endpoint)
    await supervisor.navigate(site.page("/", "<script>who = 'top'</script><iframe src='{other}/inner'></iframe>"))
    await supervisor.evaluate("window.kept = 42")
    await supervisor.browser._connected.transport.close()
    assert await registry.get_or_start("task", port.endpoint) is supervisor
    view = await supervisor.wait_for(lambda v: v if len(v.frames) == 2 else None, WAIT_S)
    assert "is back" in supervisor.notice
    assert await supervisor.evaluate("window.kept") == 42
    assert await supervisor.evaluate("who", frame_id=view.frames[1].frame_id) == "inner"


async def test_a_page_that_was_held_when_we_vanished_went_on_with_the_default_answer(
    registry: SupervisorRegistry, site: Site, port: Port
) -> None:
    supervisor = await registry.get_or_start("task", port.endpoint)
    text = "<script>setTimeout(() => { got = [confirm('held')]; document.title = 'on' }, 1)</script>"
    await supervisor.navigate(site.page("/", text))
    view = await pending(supervisor)
    assert view.pending_dialogs[0].via == "debugger"
    await supervisor.browser._connected.transport.close()
    await registry.get_or_start("task", port.endpoint)
    assert supervisor.snapshot().recent_dialogs[-1].closed_by == "lost"
    await supervisor.wait_for(lambda v: True if v.frames else None, WAIT_S)
    assert await supervisor.evaluate("[got[0], document.title]") == [False, "on"]
    assert await supervisor.evaluate("1 + 1") == 2


async def test_an_endpoint_that_is_gone_is_told_and_used_again_when_it_is_back(site: Site, port: Port) -> None:
    registry = SupervisorRegistry(options=SupervisorOptions(launch_timeout_s=2))
    supervisor = await registry.get_or_start("task", port.endpoint)
    await supervisor.navigate(site.page("/", "<title>T</title>"))
    await end(port)
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(supervisor.evaluate("new Promise(() => {})"), WAIT_S)
    with pytest.raises(EndpointUnreachable):
        await registry.get_or_start("task", port.endpoint)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        back = await launch(port.number, folder)
        try:
            again = await registry.get_or_start("task", port.endpoint)
            assert (await again.navigate(site.url("/"))).title == "T"
        finally:
            await registry.stop_all()
            await end(back)


async def test_the_persons_own_tabs_are_left_alone(registry: SupervisorRegistry, site: Site, port: Port) -> None:
    supervisor = await registry.get_or_start("task", port.endpoint)
    before = {i["targetId"] for i in (await supervisor.browser.command("Target.getTargets"))["targetInfos"]}
    await supervisor.navigate(site.page("/", "ours"))
    assert len(supervisor.snapshot().tabs) == 1
    assert supervisor.snapshot().tabs[0].target_id not in before
    await registry.stop("task")
    other = await registry.get_or_start("other", port.endpoint)
    after = {i["targetId"] for i in (await other.browser.command("Target.getTargets"))["targetInfos"]}
    pages = {
        i["targetId"] for i in (await other.browser.command("Target.getTargets"))["targetInfos"] if i["type"] == "page"
    }
    assert before & pages == before & after & pages and before & pages, "what was there is there still"
    assert port.process.returncode is None


async def test_a_popup_in_a_shared_browser_is_followed(registry: SupervisorRegistry, site: Site, port: Port) -> None:
    site.page("/popup", "<script>setTimeout(() => { got = confirm('Popup') }, 300)</script>")
    supervisor = await registry.get_or_start("task", port.endpoint)
    await supervisor.navigate(site.page("/", "opener"))
    await supervisor.evaluate(f"void window.open({site.other('/popup')!r}, '_blank')")
    view = await pending(supervisor)
    assert view.pending_dialogs[0].tab_id == "t2"
    assert (await supervisor.answer_dialog("accept")).delivered


async def test_a_dialog_that_was_open_before_we_came_is_named_and_can_be_ended(
    start: Start, registry: SupervisorRegistry, site: Site, port: Port
) -> None:
    text = "<script>kept = 7; setTimeout(() => { got = [confirm('unseen')] }, 1)</script>"
    first = SupervisorRegistry(options=SupervisorOptions(bridge="never"))
    before = await first.get_or_start("task", port.endpoint)
    await before.navigate(site.page("/", text))
    await pending(before)
    target = before.snapshot().tabs[0].target_id
    await before.browser._connected.transport.close()  # the native dialog stays open, its session is gone
    supervisor = await registry.get_or_start("task", port.endpoint)
    await supervisor.follow_tab(target)
    assert supervisor.snapshot().tabs[0].stuck
    answer = await supervisor.answer_dialog("dismiss")
    assert "freed" in answer.note
    assert await supervisor.evaluate("[got[0], kept]") == [False, 7]
    await first.stop_all()
