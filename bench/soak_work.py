"""What the soak test does to a server: one function for each kind of work, on a task of its own, which it ends.

Rules: whatever is done is checked; what came out otherwise is raised as ``Wrong``. Every wait is bounded. Calls are
timed by ``Agent``, which knows their limits.
"""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
from fakes.site import Site
from mcp import Client

from watchkeeper.server.settings import Settings
from watchkeeper.server.tools import ALL_TOOLS

WAIT_S = 60.0
GRACE_S = 5.0
"""Above a call's own limit: HTTP, and a machine that does other things as well."""
LIMITS = {spec.name: spec.limit for spec in ALL_TOOLS}
ROWS = 1_500
BIG = "".join(f"<tr><td>Row {n}</td><td><a href='/row/{n}'>Open {n}</a></td></tr>" for n in range(ROWS))
WORDS = "the keeper of order 4711 looked at /srv/app/main.py and found ValueError in line 12"
SESSIONS = 4
DIALOG_TIMEOUT_S = 15.0
"""Long enough to answer in time on a machine that does other things as well."""


class Wrong(Exception):
    """Something came out otherwise than it has to."""


@dataclass
class Tally:
    """Of a whole run."""

    calls: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    late: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)


class Agent:
    """A client of the server, and what it has seen."""

    def __init__(self, client: Client, settings: Settings, tally: Tally) -> None:
        self.client = client
        self._settings = settings
        self._tally = tally

    async def call(self, tool: str, *, may_fail: tuple[str, ...] = (), **arguments: Any) -> Mapping[str, Any]:
        """The structured result; of an error that may be, its ``error``."""
        self._tally.calls[tool] += 1
        limit = LIMITS[tool](arguments, self._settings) + GRACE_S if tool in LIMITS else WAIT_S
        started = time.monotonic()
        try:
            result = await self.client.call_tool(tool, arguments)
        finally:
            took = time.monotonic() - started
            self._tally.slowest[tool] = max(took, self._tally.slowest.get(tool, 0))
            if took > limit:
                self._tally.late.append(f"{tool} took {took:.1f} s; its limit is {limit:.0f} s")
        found: Mapping[str, Any] = result.structured_content or {}
        if result.is_error:
            code = found.get("error", {}).get("code", "?")
            self._tally.errors[f"{tool}: {code}"] += 1
            if code not in may_fail:
                raise Wrong(f"{tool} failed: {found.get('error')}")
        return found

    async def evaluate(self, task: str, expression: str, **more: Any) -> Any:
        found = await self.call("browser_evaluate", expression=expression, task_id=task, **more)
        return found.get("value", found.get("result"))

    async def until(self, task: str, condition: Callable[[Mapping[str, Any]], Any]) -> Any:
        """What ``condition`` of a snapshot gives, once it gives something."""
        with anyio.fail_after(WAIT_S):
            while True:
                found = condition(await self.call("browser_snapshot", task_id=task, max_tokens=1_000))
                if found:
                    return found
                await anyio.sleep(0.05)

    async def dialog(self, task: str) -> Mapping[str, Any]:
        """The dialog that is about to open."""
        found: Mapping[str, Any] = await self.until(task, lambda seen: next(iter(seen["pending_dialogs"]), None))
        return found


def expect(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise Wrong(f"{what}: {str(found)[:300]!r} instead of {wanted!r}")


def furnish(site: Site) -> None:
    """The pages that the work is done on."""
    site.pages["/"] = "<title>Home</title><h1>Home</h1><button onclick='document.title=`Clicked`'>Press</button>"
    site.pages["/big"] = f"<title>Big</title><table>{BIG}</table>"
    site.pages["/frames"] = "<title>Frames</title><iframe src='{other}/inner'></iframe><iframe src='/inner'></iframe>"
    site.pages["/inner"] = "<p>inner</p><script>got = null</script>"
    site.pages["/popup"] = "<title>Popup</title>"
    site.pages["/leave"] = "<title>Leave</title><script>onbeforeunload = event => event.preventDefault()</script>"
    site.pages["/memory"] = "<title>Memory</title><script>held = new Array(1e6).fill(location.href)</script>"
    site.hang("/never")

    def file(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        name = request.path.partition("?")[2]
        headers = {"Content-Type": "application/octet-stream", "Content-Disposition": f"attachment; filename={name}"}
        return 200, headers, b"0" * 300_000

    site.pages["/file"] = file


async def pages(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/big"), task_id=task)
    whole = await agent.call("browser_snapshot", task_id=task, max_tokens=60_000)
    if f"Open {ROWS - 1}" not in whole["snapshot"]:
        raise Wrong("the big page was not seen whole")
    await agent.call("browser_snapshot", task_id=task, find="Open 700")
    await agent.call("browser_screenshot", task_id=task)
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    seen = await agent.call("browser_snapshot", task_id=task)
    ref = re.search(r'(\S+) button "Press"', seen["snapshot"])
    if ref is None:
        raise Wrong(f"no ref of the button in {seen['snapshot'][:300]!r}")
    await agent.call("browser_click", ref=ref[1], task_id=task)
    expect(await agent.evaluate(task, "document.title"), "Clicked", "the title after the click")
    await agent.call("browser_history", action="back", task_id=task)
    await agent.call("browser_network", task_id=task)
    await agent.evaluate(task, "for (let i = 0; i < 400; i++) console.error(`noise ${i}`)")
    await agent.call("browser_console", task_id=task)


async def filling(agent: Agent, task: str, site: Site, calls: int) -> None:
    """Fills what is kept up to a cap, such as answers for clients that come back, so that what grows later has none."""
    await agent.call("browser_navigate", url=site.url("/big"), task_id=task)
    for _ in range(calls):
        await agent.call("browser_snapshot", task_id=task, max_tokens=60_000)
    await agent.call("browser_close", task_id=task)


async def dialogs(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    for kind, action, text, wanted in (
        ("alert", "accept", None, None),
        ("confirm", "accept", None, True),
        ("confirm", "dismiss", None, False),
        ("prompt", "accept", "typed", "typed"),
        ("prompt", "dismiss", None, None),
    ):
        asks = f"done = false; setTimeout(() => {{ got = {kind}('{kind}?') ?? null; done = true }})"
        await agent.evaluate(task, asks)
        asked = await agent.dialog(task)
        expect((asked["type"], asked["message"]), (kind, f"{kind}?"), "the dialog")
        more = {} if text is None else {"prompt_text": text}
        await agent.call("browser_dialog", action=action, task_id=task, **more)
        expect(await agent.evaluate(task, "[done, got]"), [True, wanted], f"what {kind} gave")


async def dialog_of_nobody(agent: Agent, task: str, site: Site) -> None:
    """The watchdog ends it."""
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    await agent.evaluate(task, "setTimeout(() => { got = confirm('anybody?') })")
    await agent.dialog(task)
    await agent.call("browser_evaluate", expression="1 + 1", task_id=task, timeout=2, may_fail=("dialog_opened",))
    closed = await agent.until(task, lambda seen: seen["recent_dialogs"] or None)
    expect(closed[-1]["closed_by"], "watchdog", "who closed the dialog")
    expect(await agent.evaluate(task, "got"), False, "what it gave")


async def leaving(agent: Agent, task: str, site: Site) -> None:
    """beforeunload, answered both ways."""
    await agent.call("browser_navigate", url=site.url("/leave"), task_id=task)
    await agent.call("browser_press", keys="a", task_id=task)  # a page asks only those who have touched it
    for action in ("dismiss", "accept"):
        await agent.evaluate(task, "void setTimeout(() => location.href = '/')")
        asked = await agent.dialog(task)
        expect(asked["type"], "beforeunload", "the dialog")
        await agent.call("browser_dialog", action=action, task_id=task)
    await agent.call("browser_wait", url="/", task_id=task)


async def frames(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/frames"), task_id=task)
    children = await agent.until(task, lambda seen: len(seen["frame_tree"]["children"]) == 2 and seen["frame_tree"])
    foreign = next(child for child in children["children"] if child["is_oopif"])["frame_id"]
    await agent.call(
        "browser_evaluate",
        expression="setTimeout(() => { got = confirm('inner?') })",
        frame_id=foreign,
        task_id=task,
    )
    asked = await agent.dialog(task)
    expect((asked["message"], asked["frame_id"]), ("inner?", foreign), "the dialog of the frame")
    await agent.call("browser_dialog", action="accept", task_id=task)
    expect(await agent.evaluate(task, "got", frame_id=foreign), True, "what it gave in the frame")


async def popups(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    for _ in range(3):
        await agent.evaluate(task, "void window.open('/popup')")
    with anyio.fail_after(WAIT_S):
        while len((await agent.call("browser_tabs", action="list", task_id=task))["tabs"]) < 4:
            await anyio.sleep(0.05)
    tabs = (await agent.call("browser_tabs", action="list", task_id=task))["tabs"]
    for tab in tabs[1:]:
        await agent.call("browser_tabs", action="select", tab=tab["tab_id"], task_id=task)
        await agent.call("browser_tabs", action="close", tab=tab["tab_id"], task_id=task)
    await agent.call("browser_tabs", action="new", url=site.url("/big"), task_id=task)


async def downloads(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    await agent.call("browser_files", action="save", task_id=task)
    name = f"{task}.bin"
    await agent.evaluate(task, f"void setTimeout(() => location.href = '/file?{name}')")
    with anyio.fail_after(WAIT_S):
        while not (await agent.call("browser_files", action="list", task_id=task))["downloads"]:
            await anyio.sleep(0.05)
    [one] = (await agent.call("browser_files", action="wait", task_id=task))["downloads"]
    expect((one["state"], one["name"]), ("completed", name), "the download")
    Path(one["path"]).unlink()


async def crashes(agent: Agent, task: str, site: Site) -> None:
    """A renderer dies, and the next page works."""
    await agent.call("browser_navigate", url=site.url("/memory"), task_id=task)
    gone = ("target_crashed", "timeout", "call_timeout", "target_closed")
    await agent.call("browser_cdp", method="Page.crash", task_id=task, timeout=5, may_fail=gone)
    await agent.call("browser_evaluate", expression="1", task_id=task, timeout=5, may_fail=gone)
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    expect(await agent.evaluate(task, "document.title"), "Home", "the title after the crash")


async def cancelled(agent: Agent, task: str, site: Site) -> None:
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    for tool, arguments in (
        ("browser_navigate", {"url": site.url("/never")}),
        ("browser_evaluate", {"expression": "new Promise(() => {})", "timeout": 60}),
        ("browser_wait", {"text": "never there", "timeout": 60}),
    ):
        with anyio.move_on_after(0.7):
            await agent.call(tool, task_id=task, **arguments)
            raise Wrong(f"{tool} ended, which it cannot")
    await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    expect(await agent.evaluate(task, "document.title"), "Home", "the title after what was cancelled")


async def nonsense(agent: Agent, task: str, site: Site) -> None:
    """Bad input is refused and does nothing."""
    for tool, arguments in (
        ("browser_navigate", {"url": "no address at all"}),
        ("browser_navigate", {"url": "file:///etc/passwd"}),
        ("browser_navigate", {"address": 1}),
        ("browser_snapshot", {"max_tokens": -1}),
        ("browser_click", {"ref": "x" * 10_000}),
        ("browser_dialog", {"action": "shrug"}),
        ("browser_cdp", {"method": "No.such", "params": {"deep": [[[[]]]]}}),
        ("compress_context", {"messages": [{"role": "nobody"}]}),
    ):
        of_task = {} if tool == "compress_context" else {"task_id": task}
        result = await agent.client.call_tool(tool, {**arguments, **of_task})
        if not result.is_error or (result.structured_content or {}).get("error", {}).get("code") == "internal_error":
            raise Wrong(f"{tool} with bad input: {result.structured_content}")
    try:
        await agent.client.call_tool("browser_nothing", {})
    except Exception:  # noqa: BLE001 - of whatever kind, in either era
        return
    raise Wrong("a tool that does not exist was called")


async def compression(agent: Agent, task: str, site: Site) -> None:
    words = WORDS.split()
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": " ".join(words[(n + k) % len(words)] for k in range(200))}
        for n in range(160)
    ]
    for session in ({}, {"session_id": f"one of {SESSIONS}: {hash(task) % SESSIONS}"}):
        done = await agent.call("compress_context", messages=messages, mode="force", target_tokens=8_000, **session)
        if len(done["messages"]) >= len(messages):
            raise Wrong("nothing was compressed")


async def killed(agent: Agent, tasks: list[str], site: Site, pid: int) -> None:
    """The browser is killed while calls run: all of them end, and the next page starts another."""
    for task in tasks:
        await agent.call("browser_navigate", url=site.url("/"), task_id=task)
    lost = ("connection_lost", "target_closed", "target_crashed")
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            waits = {"expression": "new Promise(() => {})", "timeout": 60}
            group.create_task(agent.call("browser_evaluate", task_id=task, may_fail=lost, **waits))
        await anyio.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
    for task in tasks:
        again = await agent.call("browser_navigate", url=site.url("/"), task_id=task)
        if "started again" not in again.get("notice", ""):
            raise Wrong(f"nobody was told that the browser was started again: {again}")


Act = Callable[[Agent, str, Site], Awaitable[None]]
ACTS: tuple[Act, ...] = (
    pages,
    dialogs,
    dialog_of_nobody,
    leaving,
    frames,
    popups,
    downloads,
    crashes,
    cancelled,
    nonsense,
    compression,
)


async def done(act: Act, agent: Agent, task: str, site: Site, tally: Tally) -> None:
    """Do it, end its task, and note what was wrong."""
    try:
        with anyio.fail_after(5 * WAIT_S):
            await act(agent, task, site)
    except (Wrong, TimeoutError) as error:
        tally.wrong.append(f"{act.__name__}: {error or 'it took too long'}")
    finally:
        with anyio.CancelScope(shield=True), contextlib.suppress(Wrong):
            await agent.call("browser_close", task_id=task)
