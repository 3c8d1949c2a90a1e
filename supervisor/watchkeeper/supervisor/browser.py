"""A browser: one process or endpoint, one connection, any number of tasks.

Rules: owns the connection and its life. Each event goes to the supervisor of the task that it belongs to, and to no
other. In a browser of our own each task has a browser context (its own cookies); in somebody else's browser, or in a
persistent profile, tasks share the default context and see only the tabs that they opened, and those that these opened.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Target/
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Protocol

from .backends import Connected, Endpoint, connect
from .core import fields
from .core.inputs import Event
from .core.sessions import AUTO_ATTACH
from .egress import Gate, Gates, Outcome
from .errors import ConnectionLost, SupervisorError, TargetClosed
from .pending import Command
from .runner import Runner
from .transport import PipeTransport

COMMAND_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 3.0
RECONNECT_DELAYS_S = (0.5, 1, 2, 4, 8, *[10] * 10)
RECONNECT_TIMEOUT_S = 10.0


class Task(Protocol):
    """What a browser needs of a supervisor."""

    context_id: str | None

    gate: Gate | None

    def receive(self, event: Event) -> None: ...

    def not_connected(self, outcome: Outcome) -> None:
        """A page wanted to connect somewhere, and it was refused or failed."""

    def connection_lost(self, reason: str) -> None: ...

    def connection_back(self, target_ids: frozenset[str]) -> tuple[str, ...]:
        """Gives the targets to attach again."""


class Browser:
    """``isolated``: each task gets a browser context of its own."""

    def __init__(self, endpoint: Endpoint, connected: Connected, *, isolated: bool, gates: Gates | None = None) -> None:
        self.endpoint = endpoint
        self.isolated = isolated
        self.product = connected.product
        self.ended = ""
        """How our browser ended, once that is known; empty while it runs."""
        self.reconnects = 0
        """How often the connection was lost and came back."""
        self._connected = connected
        self._gates = gates
        self._tasks: list[Task] = []
        self._by_session: dict[str, Task] = {}
        self._by_target: dict[str, Task] = {}
        self._started_wall = time.time() - time.monotonic()
        self._closing = False
        self._back = asyncio.Event()
        self.runner = self._new_runner()
        self._life: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin reading, and watch for targets."""
        self._life = asyncio.create_task(self._live(), name="watchkeeper-browser")
        await self._watch()

    async def _watch(self) -> None:
        await self.command("Target.setDiscoverTargets", {"discover": True})
        if self.isolated:
            await self.command("Target.setAutoAttach", AUTO_ATTACH)

    async def _live(self) -> None:
        """Read until the connection ends; then, where the browser is somebody else's, connect again."""
        while True:
            await self.runner.run()
            if self._closing:
                return
            if self.owned:
                self.ended = await self._connected.ending()
                return
            if not await self._reconnect():
                self._back.set()
                return

    async def _reconnect(self) -> bool:
        """To the same endpoint, after ever longer pauses; False when it was in vain for long enough."""
        self._back.clear()
        await self._connected.close()
        for delay in RECONNECT_DELAYS_S:
            await asyncio.sleep(delay)
            try:
                self._connected = await connect(self.endpoint, timeout=RECONNECT_TIMEOUT_S)
            except SupervisorError:
                continue
            self.runner = self._new_runner()
            reader = asyncio.create_task(self.runner.run(), name="watchkeeper-browser-reader")
            try:
                await self._restore()
            except SupervisorError:
                await self._connected.close()
                await reader
                continue
            self.reconnects += 1
            self._back.set()
            await reader
            return True
        return False

    async def _restore(self) -> None:
        """Attach again to what the tasks had: pages survive a connection, sessions do not."""
        await self._watch()
        existing = fields.items(await self.command("Target.getTargets"), "targetInfos")
        target_ids = frozenset(fields.text(info, "targetId") for info in existing)
        for task in self._tasks:
            for target_id in task.connection_back(target_ids):
                self.adopt(target_id, task)
                await self.attach(target_id)

    async def attach(self, target_id: str) -> None:
        """Attach to a target of a shared browser, where nothing is attached by itself."""
        await self.command("Target.attachToTarget", {"targetId": target_id, "flatten": True})

    async def back(self, timeout: float) -> bool:
        """Wait until a lost connection is back; False where it is not in time, or will not be."""
        if self.owned or self._life is None or self._life.done():
            return self.lost is None
        try:
            async with asyncio.timeout(timeout):
                await self._back.wait()
        except TimeoutError:
            return False
        return self.lost is None

    def _new_runner(self) -> Runner:
        return Runner(self._connected.transport, self._on_event, self._on_lost)

    def now(self) -> float:
        """Seconds since the epoch, never running backwards."""
        return self._started_wall + time.monotonic()

    @property
    def lost(self) -> str | None:
        """Why the connection ended; None while it lives."""
        return self.runner.lost

    @property
    def owned(self) -> bool:
        """Whether we started this browser, and so end it."""
        return self._connected.owns_browser

    @property
    def pid(self) -> int | None:
        """The process of our own browser; None for others."""
        return self._connected.pid

    @property
    def over(self) -> str:
        """What the connection runs on: ``pipe`` or ``websocket``."""
        return "pipe" if isinstance(self._connected.transport, PipeTransport) else "websocket"

    async def command(self, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """A command of the browser-level session."""
        return await self.runner.call(None, method, params or {}, timeout=COMMAND_TIMEOUT_S)

    def adopt(self, target_id: str, task: Task) -> None:
        """This target, and what it opens, belongs to the task."""
        self._by_target[target_id] = task

    async def add_task(self, task: Task) -> None:
        """Make room for a task: a context of its own, where tasks are isolated. Failed, ``remove_task`` ends it."""
        self._tasks.append(task)
        if self._gates is not None:
            task.gate = await self._gates.for_task(task.not_connected)
        if self.isolated:
            params: dict[str, Any] = {"disposeOnDetach": True}
            if task.gate is not None:
                params |= {"proxyServer": task.gate.route.server, "proxyBypassList": task.gate.route.bypass}
            created = await self.command("Target.createBrowserContext", params)
            task.context_id = fields.text(created, "browserContextId") or None
            # Nothing is saved that nobody asked for; a browser with a window would fill the person's own folder.
            nowhere = {"behavior": "deny", "browserContextId": task.context_id}
            self._send(None, "Browser.setDownloadBehavior", nowhere)

    async def remove_task(self, task: Task) -> None:
        """End a task: what it opened is closed."""
        if task not in self._tasks:
            return
        self._tasks.remove(task)
        targets = [target_id for target_id, owner in self._by_target.items() if owner is task]
        sessions = {session_id for session_id, owner in self._by_session.items() if owner is task}
        self._by_target = {key: owner for key, owner in self._by_target.items() if owner is not task}
        self._by_session = {key: owner for key, owner in self._by_session.items() if owner is not task}
        try:
            await self._close_targets(task, targets)
        finally:
            # Nobody hears any more that these sessions end: without this, calls would wait for their time limits.
            self.runner.pending.interrupt(lambda command: command.session_id in sessions, _task_ended)
            if self._gates is not None and task.gate is not None:
                await self._gates.end_task(task.gate, task.not_connected)

    async def _close_targets(self, task: Task, targets: list[str]) -> None:
        if self.lost is not None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                if task.context_id is not None:
                    await self.command("Target.disposeBrowserContext", {"browserContextId": task.context_id})
                else:
                    await asyncio.gather(*(self.command("Target.closeTarget", {"targetId": t}) for t in targets))
        except (SupervisorError, TimeoutError):
            # The browser goes, or does not answer; its end (or the person) closes what is left.
            return

    @property
    def has_tasks(self) -> bool:
        return bool(self._tasks)

    async def close(self) -> None:
        """End the connection, and the browser when it is ours. Bounded, idempotent."""
        self._closing = True
        if self.owned and self.lost is None:
            self.runner.send(None, "Browser.close", {}, lambda _: None, timeout=CLOSE_TIMEOUT_S)
        await self._connected.close()
        if self._gates is not None:
            await self._gates.close()
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        self.runner.end("closed by us")

    # --- events -------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event.session_id is None:
            self._on_browser_event(event)
            return
        task = self._by_session.get(event.session_id)
        if task is None:
            return
        if event.method == "Target.attachedToTarget":
            self._by_session[fields.text(event.params, "sessionId")] = task
        task.receive(event)
        if event.method == "Target.detachedFromTarget":
            self._by_session.pop(fields.text(event.params, "sessionId"), None)

    def _on_browser_event(self, event: Event) -> None:
        params = event.params
        match event.method:
            case "Target.attachedToTarget":
                self._on_attached(event)
            case "Target.detachedFromTarget":
                task = self._by_session.get(fields.text(params, "sessionId"))
                if task is not None:
                    task.receive(event)
                    self._by_session.pop(fields.text(params, "sessionId"), None)
            case "Target.targetCreated":
                self._on_created(fields.mapping(params, "targetInfo"))
            case "Target.targetInfoChanged":
                task = self._by_target.get(fields.text(fields.mapping(params, "targetInfo"), "targetId"))
                if task is not None:
                    task.receive(event)
            case "Target.targetDestroyed" | "Target.targetCrashed":
                target_id = fields.text(params, "targetId")
                task = self._by_target.get(target_id)
                if task is not None:
                    task.receive(event)
                if event.method == "Target.targetDestroyed":
                    self._by_target.pop(target_id, None)

    def _on_attached(self, event: Event) -> None:
        info = fields.mapping(event.params, "targetInfo")
        session_id, target_id = fields.text(event.params, "sessionId"), fields.text(info, "targetId")
        task = self._by_target.get(target_id) or self._owner(info)
        if task is None:
            # Not ours: let it run, and leave it alone.
            self._send(session_id, "Runtime.runIfWaitingForDebugger", {})
            self._send(None, "Target.detachFromTarget", {"sessionId": session_id})
            return
        self._by_target[target_id] = task
        self._by_session[session_id] = task
        task.receive(event)

    def _on_created(self, info: Mapping[str, Any]) -> None:
        """A target appeared. In a shared context nothing is attached by itself: a popup of ours is, here."""
        if self.isolated or fields.text(info, "type") != "page" or fields.flag(info, "attached"):
            return
        task = self._owner(info)
        if task is not None:
            target_id = fields.text(info, "targetId")
            self.adopt(target_id, task)
            self._send(None, "Target.attachToTarget", {"targetId": target_id, "flatten": True})

    def _owner(self, info: Mapping[str, Any]) -> Task | None:
        context_id = fields.text(info, "browserContextId")
        if self.isolated:
            return next((task for task in self._tasks if task.context_id == context_id), None)
        return self._by_target.get(fields.text(info, "openerId"))

    def _send(self, session_id: str | None, method: str, params: Mapping[str, Any]) -> None:
        self.runner.send(session_id, method, params, lambda _: None, timeout=COMMAND_TIMEOUT_S)

    def _on_lost(self, reason: str) -> None:
        self._by_session.clear()
        self._by_target.clear()
        self._back.clear()
        for task in self._tasks:
            task.connection_lost(reason)


def _task_ended(command: Command) -> TargetClosed:
    return TargetClosed(
        f"The task was ended; {command.method} got no answer.", "Call browser_navigate to begin it anew."
    )


def lost_error(reason: str, owned: bool) -> ConnectionLost:
    """What a caller is told who needs a browser that is gone."""
    remedy = "starts a new one (tabs and sign-ins of this task are gone)" if owned else "connects again"
    return ConnectionLost(f"The connection to the browser ended: {reason}.", f"Call browser_navigate: it {remedy}.")
