"""Random acts on a real Chromium, seeded: whatever happens, calls end in time and what is reported is true.

The pages are the oracle: each tells a local server what its dialogs returned, and that is compared with what the
supervisor says of them. ``WATCHKEEPER_CHAOS_STEPS`` and ``WATCHKEEPER_CHAOS_SEED`` make longer and other runs.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from fakes.hosted_proxy import HostedProxy, hosted_chromium
from fakes.site import Site
from fakes.waits import WAIT_S, quiet

from watchkeeper.supervisor import CdpEndpoint, Dialog, Endpoint, LocalEndpoint, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.errors import ConnectionLost, SupervisorError
from watchkeeper.supervisor.options import BridgeChoice

pytestmark = [pytest.mark.anyio, pytest.mark.chrome, pytest.mark.timeout(600)]
STEPS = int(os.environ.get("WATCHKEEPER_CHAOS_STEPS", "60"))
SEED = int(os.environ.get("WATCHKEEPER_CHAOS_SEED", "1"))
DEADLINE_S = 2.0
GUARD_S = 30.0
"""Far beyond every deadline: what is not over by then hangs."""
T = TypeVar("T")

ASK = """<title>page</title><button style='position:fixed;inset:0'>b</button><script>
  const ask = (kind, name, fallback) => {
    const id = `${name}-${Math.random().toString(36).slice(2)}`;  // a page that is loaded again asks anew
    const got = kind === 'alert' ? alert(id) : kind === 'confirm' ? confirm(id) : prompt(id, fallback);
    navigator.sendBeacon(`/told?id=${id}&got=${encodeURIComponent(JSON.stringify(got ?? null))}`);
  };
  const [, kind, id] = location.search.split('&');
  if (kind) ask(kind, id, 'def');
</script>"""
PAGES = {
    "/plain": "",
    "/same": "<iframe src='/plain'></iframe>",
    "/cross": "<iframe src='{other}/plain'></iframe>",
    "/nested": "<iframe src='{other}/back'></iframe><iframe srcdoc='x'></iframe>",
    "/back": "<iframe src='{site}/plain'></iframe>",
    "/asks": "<script>onbeforeunload = e => e.preventDefault()</script>",
}


class Chaos:
    def __init__(self, registry: SupervisorRegistry, endpoint: Endpoint, site: Site, seed: int) -> None:
        self.registry = registry
        self.endpoint = endpoint
        self.site = site
        self.random = random.Random(seed)
        self.asked = 0
        self.told: dict[str, Any] = {}
        self.tried: set[str] = set()
        """Dialogs for which an answer was on its way when something else happened."""
        self.closed: dict[str, Dialog] = {}
        self.log: list[str] = []
        self.hosted: HostedProxy | None = None
        for path, text in PAGES.items():
            site.page(path, ASK + text)
        site.hang("/hang")
        site.pages["/told"] = self._hear

    def _hear(self, request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        query = parse_qs(urlsplit(request.path).query)
        self.told[query["id"][0]] = json.loads(query["got"][0])
        return 204, {}, b""

    @property
    def supervisor(self) -> Any:
        found = self.registry.get("task")
        assert found is not None
        return found

    async def bounded(self, what: Awaitable[T]) -> T | None:
        """The outcome of a call: a result, or an error of ours; anything else, or none in time, is a failure."""
        try:
            return await asyncio.wait_for(what, GUARD_S)
        except SupervisorError as error:
            self.log.append(f"  {error.code}: {error.message[:100]}")
            if isinstance(error, ConnectionLost):
                await self.start()
            return None

    async def start(self) -> None:
        await asyncio.wait_for(self.registry.get_or_start("task", self.endpoint), GUARD_S)

    def question(self) -> tuple[str, str]:
        self.asked += 1
        return self.random.choice(["alert", "confirm", "prompt"]), f"q{self.asked}"

    def some_frame(self) -> str | None:
        frames = self.supervisor.snapshot().frames
        return self.random.choice(frames).frame_id if frames else None

    # --- acts ---------------------------------------------------------------------------------------------------------

    async def navigate(self) -> None:
        path = self.random.choice(list(PAGES))
        query = "" if self.random.random() < 0.7 else "?&{}&{}".format(*self.question())
        host = self.random.choice([self.site.url, self.site.other])
        await self.bounded(self.supervisor.navigate(host(path + query), timeout=DEADLINE_S))

    async def navigate_nowhere(self) -> None:
        await self.bounded(self.supervisor.navigate(self.site.url("/hang"), timeout=0.3))

    async def reload(self) -> None:
        await self.bounded(self.supervisor.call("Page.reload", timeout=DEADLINE_S))

    async def ask_in_a_call(self) -> None:
        kind, name = self.question()
        script = f"void ask('{kind}', '{name}', 'def')"
        await self.bounded(self.supervisor.evaluate(script, frame_id=self.some_frame(), timeout=DEADLINE_S))

    async def ask_later(self) -> None:
        kind, name = self.question()
        script = f"void setTimeout(() => ask('{kind}', '{name}', 'def'), {self.random.randrange(30)})"
        await self.bounded(self.supervisor.evaluate(script, frame_id=self.some_frame(), timeout=DEADLINE_S))

    async def answer(self) -> None:
        for dialog in self.supervisor.snapshot().pending_dialogs:
            action = self.random.choice(["accept", "dismiss"])
            text = f"text-{dialog.message}" if (dialog.type, action) == ("prompt", "accept") else None
            self.tried.add(dialog.message)
            await self.bounded(self.supervisor.answer_dialog(action, text, dialog.id))

    async def two_answers(self) -> None:
        pending = self.supervisor.snapshot().pending_dialogs
        if not pending:
            return
        self.tried.add(pending[0].message)
        both = [self.supervisor.answer_dialog(action, None, pending[0].id) for action in ("accept", "dismiss")]
        await asyncio.gather(*(self.bounded(one) for one in both))

    async def look(self) -> None:
        """A script runs in the frame that it is meant for."""
        frames = self.supervisor.snapshot().frames
        if not frames:
            return
        frame = self.random.choice(frames)
        got = await self.bounded(self.supervisor.evaluate("location.href", frame_id=frame.frame_id, timeout=DEADLINE_S))
        now = next((f for f in self.supervisor.snapshot().frames if f.frame_id == frame.frame_id), None)
        if got is not None and now is not None and now.url == frame.url and frame.url:
            assert got == frame.url, f"{frame.short} is at {frame.url}, the script ran at {got}"

    async def change_frames(self) -> None:
        change = self.random.choice(["remove()", "src = '/plain'", f"src = {self.site.other('/plain')!r}"])
        script = (
            f"document.querySelector('iframe')?.{change}"
            if "(" in change
            else (f"(document.querySelector('iframe') || {{}}).{change}")
        )
        session = self.supervisor.snapshot().frames[:1]
        if session:  # past what a dialog holds back, as a timer of the page would do it
            runner = self.supervisor.browser.runner
            await self.bounded(
                runner.call(session[0].session_id, "Runtime.evaluate", {"expression": script}, timeout=0.3)
            )

    async def popup(self) -> None:
        path = self.random.choice(list(PAGES))
        script = f"void window.open({self.random.choice([self.site.url, self.site.other])(path)!r})"
        await self.bounded(self.supervisor.evaluate(script, timeout=DEADLINE_S))

    async def tabs(self) -> None:
        known = self.supervisor.snapshot().tabs
        if len(known) > 3 or (len(known) > 1 and self.random.random() < 0.5):
            await self.bounded(self.supervisor.close_tab(self.random.choice(known).tab_id))
        elif known:
            try:
                self.supervisor.select_tab(self.random.choice(known).tab_id)
            except SupervisorError:
                return  # it closed meanwhile

    async def crash(self) -> None:
        frame = self.some_frame()
        if frame is not None:
            await self.bounded(self.supervisor.call("Page.crash", frame_id=frame, timeout=DEADLINE_S))

    async def lose(self) -> None:
        """The browser is killed, or the socket breaks."""
        if self.hosted is not None:
            self.hosted.drop()
        else:
            os.kill(self.supervisor.browser._connected.process.pid, signal.SIGKILL)
        await self.supervisor.wait_for(lambda view: None if view.connected else True, WAIT_S)
        await self.start()

    # --- the run ------------------------------------------------------------------------------------------------------

    async def run(self, steps: int) -> None:
        acts: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.navigate, 12),
            (self.navigate_nowhere, 2),
            (self.reload, 4),
            (self.ask_in_a_call, 14),
            (self.ask_later, 14),
            (self.answer, 26),
            (self.two_answers, 4),
            (self.look, 12),
            (self.change_frames, 8),
            (self.popup, 5),
            (self.tabs, 6),
            (self.crash, 3),
            (self.lose, 2),
        ]
        await self.start()
        await self.navigate()
        for number in range(steps):
            (act,) = self.random.choices([a for a, _ in acts], [w for _, w in acts])
            self.log.append(f"{number} {act.__name__}")
            await act()
            self.check()
        await self.recover()
        self.check()

    def check(self) -> None:
        """What is told now is consistent, and agrees with what the pages told."""
        supervisor = self.supervisor
        view = supervisor.snapshot()
        tabs = {tab.tab_id for tab in view.tabs}
        assert not view.connected or all(d.tab_id in tabs for d in view.pending_dialogs), "no dialog without its tab"
        assert len({f.frame_id for f in view.frames}) == len(view.frames)
        for dialog in view.recent_dialogs:
            if dialog.message:
                self.closed[dialog.message] = dialog
        for name, got in tuple(self.told.items()):
            dialog = self.closed.get(name)
            if dialog is None:
                continue
            told = (
                f"{dialog.id} {dialog.message}: {dialog.type} {dialog.closed_by} {dialog.response}, the page got {got}"
            )
            if dialog.closed_by == "lost" and name in self.tried:
                continue  # the answer was on its way: nobody can know, and nobody claims to
            wanted: Any = None
            if dialog.type == "confirm":
                wanted = dialog.response == "accept"
            elif dialog.type == "prompt" and dialog.response == "accept":
                wanted = dialog.response_text
            assert got == wanted, told

    async def recover(self) -> None:
        """After all that, everything can be answered, and a page opened."""
        await self.start()
        for _ in range(20):
            if not self.supervisor.snapshot().pending_dialogs:
                break
            await self.answer()
        await quiet(self.supervisor)
        async with asyncio.timeout(GUARD_S):
            while True:
                done = await self.bounded(self.supervisor.navigate(self.site.url("/plain?end"), timeout=10))
                if done is not None and done.outcome == "loaded":
                    break
                await self.answer()
        assert await self.supervisor.evaluate("1 + 1", timeout=10) == 2


def children() -> set[int]:
    """Processes that we started, and theirs; zombies are nobody's concern."""
    alive = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.add(process.pid)
    return alive


async def run(chaos: Chaos) -> None:
    before = children()
    try:
        await chaos.run(STEPS)
    except BaseException:
        print(f"seed {SEED}; the last acts:", *chaos.log[-25:], sep="\n")  # noqa: T201
        raise
    finally:
        await asyncio.wait_for(chaos.registry.stop_all(), GUARD_S)
    async with asyncio.timeout(GUARD_S):
        while chaos.hosted is None and children() - before:  # noqa: ASYNC110 -- processes tell nobody when they end
            await asyncio.sleep(0.05)
    agreed = [name for name in chaos.told if name in chaos.closed]
    assert len(agreed) >= STEPS // 25, "the pages told too little to compare anything with"


@pytest.mark.parametrize("bridge", ["auto", "never", "xhr"])
async def test_whatever_happens_to_a_browser_of_ours(site: Site, bridge: BridgeChoice) -> None:
    registry = SupervisorRegistry(options=SupervisorOptions(bridge=bridge, load_wait_s=DEADLINE_S))
    chaos = Chaos(registry, LocalEndpoint(headless=True), site, SEED)
    await run(chaos)


@pytest.mark.parametrize("bridge", ["auto", "never"])
async def test_whatever_happens_to_somebody_elses_browser(site: Site, bridge: BridgeChoice) -> None:
    registry = SupervisorRegistry(options=SupervisorOptions(bridge=bridge, load_wait_s=DEADLINE_S))
    async with hosted_chromium(dismisses_dialogs=False) as hosted:
        chaos = Chaos(registry, CdpEndpoint(hosted.url), site, SEED + 1)
        chaos.hosted = hosted
        await run(chaos)
