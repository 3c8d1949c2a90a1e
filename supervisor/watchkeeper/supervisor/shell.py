"""The shell around the core of one task: feeds it what happens, and carries out its commands.

Rules: the state is replaced whole by the core's ``step`` and by nothing else. Whatever acts on a task (calls, tabs,
navigation, answers to dialogs) gets this shell; what callers see is ``Supervisor``, made of those. Runs in the event
loop that started it; ``snapshot`` may be read from any thread.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from .backends import BrowserbaseEndpoint
from .boundary import Boundary
from .browser import COMMAND_TIMEOUT_S, Browser, lost_error
from .core.commands import Command, CrashInterrupts, DetachInterrupts, DialogInterrupts, Prepare, SeedFrames, Send, Tag
from .core.dialogs import DialogPolicy
from .core.inputs import Disconnected, Event, Failed, Input, Noticed, Reconnected, Replied, Tick
from .core.reducer import next_deadline, step
from .core.state import BrowserState, Options
from .core.view import View, view
from .core.wire import Reply
from .egress import Gate, Outcome
from .errors import CallTimeout, SupervisorError, TargetClosed, TargetCrashed
from .interruption import dialog_opened
from .options import SupervisorOptions, chosen_bridge
from .use import Use

T = TypeVar("T")
TIMEOUT_RANGE_S = (0.1, 300.0)


class Shell:
    """``Supervisor`` is one."""

    def __init__(
        self,
        task_id: str,
        browser: Browser,
        options: SupervisorOptions,
        dialog_policy: DialogPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task_id = task_id
        self.browser = browser
        self.endpoint = browser.endpoint
        self.options = options
        self.context_id: str | None = None
        self.gate: Gate | None = None
        self.boundary = Boundary(options, lambda level, text, url: self.feed(Noticed(level, text, url)))
        self.notice = ""
        """What happened meanwhile that the next caller should be told; the one who tells it clears it."""
        self.use = Use(clock)
        core_options = Options(
            dialog_policy or options.dialog_policy,
            options.dialog_timeout_s,
            chosen_bridge(options.bridge, browser.product),
            secrets.token_hex(16),
        )
        dismisses = isinstance(browser.endpoint, BrowserbaseEndpoint)
        self._state = BrowserState(options=core_options, backend_dismisses=dismisses)
        self._view: tuple[BrowserState, View] | None = None
        self._inputs: deque[Input] = deque()
        self._applying = False
        self._waiters: list[tuple[Callable[[BrowserState], Any], asyncio.Future[Any]]] = []
        self._alarm: tuple[float, asyncio.TimerHandle] | None = None
        self._closed = False
        self._listeners: list[Callable[[Event], None]] = []

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> BrowserState:
        """The core's state, frozen. Embedders read ``snapshot()``, which is bounded and stable."""
        return self._state

    def snapshot(self) -> View:
        """What is known now. Immutable; needs no waiting and no particular thread."""
        state, cached = self._state, self._view
        if cached is None or cached[0] is not state:
            cached = (state, view(state))
            self._view = cached
        return cached[1]

    @property
    def lost(self) -> str | None:
        """Why there is no connection; None while there is one."""
        return self.browser.lost

    async def wait_for(self, condition: Callable[[View], T | None], timeout: float) -> T:
        """Wait until ``condition`` of the view gives something. Raises CallTimeout."""
        return await self.wait_for_state(lambda _: condition(self.snapshot()), timeout)

    async def wait_for_state(self, condition: Callable[[BrowserState], T | None], timeout: float) -> T:
        """Wait until ``condition`` of the core's state gives something. Raises CallTimeout."""
        found = condition(self._state)
        if found is not None:
            return found
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        entry = (condition, waiter)
        self._waiters.append(entry)
        try:
            async with asyncio.timeout(timeout):
                return await waiter
        except TimeoutError:
            raise CallTimeout(
                f"What was waited for did not happen within {timeout:g} s.",
                "Take a browser_snapshot to see the state of the page.",
            ) from None
        finally:
            self._waiters.remove(entry)

    # --- what the browser tells us ------------------------------------------------------------------------------------

    def receive(self, event: Event) -> None:
        self.feed(event)
        away = self.boundary.trespass(event, self._session_of)
        if away is not None:
            self._send(away)
        for listener in tuple(self._listeners):
            listener(event)

    def _session_of(self, target_id: str) -> str | None:
        session = self._state.sessions.of_target(target_id)
        return None if session is None else session.session_id

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Hear every event of this task's sessions, in order, once the state has it. Calling the result ends that.

        A listener returns at once and raises nothing.
        """
        listeners = self._listeners
        listeners.append(listener)

        def stop() -> None:  # knows no more than it needs: who keeps it shall not keep the task as well
            if listener in listeners:
                listeners.remove(listener)

        return stop

    def not_connected(self, outcome: Outcome) -> None:
        self.boundary.not_connected(outcome)

    def connection_lost(self, reason: str) -> None:
        self.feed(Disconnected(reason))
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None

    def connection_back(self, target_ids: frozenset[str]) -> tuple[str, ...]:
        """The connection is there again; gives the targets of this task that survived, to be attached again."""
        before = len(self._state.targets.pages)
        self.feed(Reconnected(target_ids))
        left = tuple(self._state.targets.pages)
        lost = before - len(left)
        self.notice = "The connection to the browser was lost and is back" + (
            f"; {lost} tabs are gone." if lost else "."
        )
        return left

    def feed(self, happened: Input) -> None:
        """Step the core. Inputs that arise while it steps (a send that fails at once) wait their turn."""
        self._inputs.append(happened)
        if self._applying:
            return
        self._applying = True
        try:
            while self._inputs:
                self._state, commands = step(self._state, self._inputs.popleft(), self.browser.now())
                for command in commands:
                    self._execute(command)
        finally:
            self._applying = False
        self._arm()
        self._wake()

    def _execute(self, command: Command) -> None:
        pending = self.browser.runner.pending
        match command:
            case Send():
                self._send(command)
            case DialogInterrupts(target_ids):
                dialogs = self.snapshot().pending_dialogs
                pending.interrupt(lambda c: c.page_id in target_ids, lambda c: dialog_opened(c.method, dialogs))
            case CrashInterrupts(session_ids):
                pending.interrupt(
                    lambda c: c.session_id in session_ids,
                    lambda c: TargetCrashed(
                        f"The renderer crashed while {c.method} ran.",
                        "browser_navigate revives the page; what it held in memory is gone.",
                    ),
                )
            case DetachInterrupts(session_id):
                pending.interrupt(
                    lambda c: c.session_id == session_id,
                    lambda c: TargetClosed(
                        f"The page or frame was closed, or moved to another process, while {c.method} ran.",
                        "Take a browser_snapshot to see what is there now.",
                    ),
                )

    def _send(self, command: Send) -> None:
        tag = command.tag

        def finish(outcome: Reply | SupervisorError) -> None:
            if tag is not None:
                self.feed(_outcome(tag, outcome))

        # A page that a dialog holds prepares itself once it is freed, however long that takes.
        timeout = TIMEOUT_RANGE_S[1] if isinstance(tag, Prepare | SeedFrames) else COMMAND_TIMEOUT_S
        self.browser.runner.send(command.session_id, command.method, command.params, finish, timeout=timeout)

    def _arm(self) -> None:
        """Let the core know when its next deadline is reached."""
        due = next_deadline(self._state)
        if self._alarm is not None:
            if self._alarm[0] == due:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due is not None:
            delay = max(0.0, due - self.browser.now())
            self._alarm = (due, asyncio.get_running_loop().call_later(delay, self._tick))

    def _tick(self) -> None:
        self._alarm = None
        self.feed(Tick())

    def _wake(self) -> None:
        for condition, waiter in self._waiters:
            if waiter.done():
                continue
            try:
                found = condition(self._state)
            except Exception as error:  # noqa: BLE001 - the caller's condition is at fault, and the caller gets it
                waiter.set_exception(error)
                continue
            if found is not None:
                waiter.set_result(found)

    # --- checks -------------------------------------------------------------------------------------------------------

    def top_frame_id(self) -> str | None:
        """The top frame of the selected tab."""
        selected = self._state.targets.selected
        if selected is None:
            return None
        return next((frame.frame_id for frame in self._state.frames.of_page(selected)), None)

    def require_connection(self) -> None:
        """Every act of a caller begins here. Raises ConnectionLost."""
        self.use.touch()
        if self.browser.lost is not None:
            raise lost_error(self.browser.ended or self.browser.lost, self.browser.owned)

    def clamped(self, timeout: float | None) -> float:
        low, high = TIMEOUT_RANGE_S
        return min(max(self.options.call_timeout_s if timeout is None else timeout, low), high)


def _outcome(tag: Tag, outcome: Reply | SupervisorError) -> Input:
    if isinstance(outcome, SupervisorError):
        return Failed(tag, 0, outcome.message)
    if outcome.is_error:
        return Failed(tag, outcome.code, outcome.message)
    return Replied(tag, outcome.result)
