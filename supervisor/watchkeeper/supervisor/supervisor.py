"""The supervisor of one task: its tabs, frames and dialogs, kept up to date beside its callers.

Rules: the state is replaced whole by the core's ``step`` and by nothing else; this shell feeds it and carries out its
commands. Every call has a deadline, and ends early when a dialog, a crash or a lost connection makes an answer
impossible. Runs in the event loop that started it; ``snapshot`` may be read from any thread.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from .boundary import Boundary
from .browser import COMMAND_TIMEOUT_S, Browser, lost_error
from .core import dialogs as core_dialogs
from .core import fields
from .core.commands import Command, CrashInterrupts, DetachInterrupts, DialogInterrupts, Prepare, SeedFrames, Send, Tag
from .core.dialogs import DialogPolicy
from .core.inputs import (
    Adopt,
    AnswerDialog,
    Disconnected,
    Event,
    Failed,
    Input,
    Noticed,
    Reconnected,
    Replied,
    SelectTab,
    Tick,
)
from .core.methods import BROWSER_PROCESS
from .core.reducer import next_deadline, step
from .core.routing import Route, Unroutable, route
from .core.state import BrowserState, Options
from .core.targets import Target
from .core.view import View, view
from .core.wire import Reply
from .dialog_answer import DialogAnswer, chosen_dialog, free_tab
from .egress import Gate, Outcome
from .errors import (
    CallTimeout,
    EvaluationFailed,
    MethodRefused,
    NoPage,
    SupervisorError,
    TabStuck,
    TargetClosed,
    TargetCrashed,
    UnknownFrame,
    UnknownTarget,
)
from .interruption import dialog_opened
from .navigation import Navigation, navigate
from .options import SupervisorOptions, chosen_bridge

T = TypeVar("T")
ANSWER_TIMEOUT_S = 5.0
BARRIER_TIMEOUT_S = 0.5
CONTEXT_TIMEOUT_S = 1.0
BESIDE_DIALOG_TIMEOUT_S = 3.0
PREPARE_TIMEOUT_S = 10.0
TIMEOUT_RANGE_S = (0.1, 300.0)
_ERRORS: Mapping[str, type[SupervisorError]] = {
    "unknown_frame": UnknownFrame,
    "unknown_target": UnknownTarget,
    "no_page": NoPage,
    "refused": MethodRefused,
    "crashed": TargetCrashed,
    "stuck": TabStuck,
}


class Supervisor:
    """Made by ``SupervisorRegistry.get_or_start``."""

    def __init__(
        self, task_id: str, browser: Browser, options: SupervisorOptions, dialog_policy: DialogPolicy | None = None
    ) -> None:
        self.task_id = task_id
        self.browser = browser
        self.endpoint = browser.endpoint
        self.options = options
        self.context_id: str | None = None
        self.gate: Gate | None = None
        self.boundary = Boundary(options, lambda level, text, url: self._apply(Noticed(level, text, url)))
        self.notice = ""
        """What happened meanwhile that the next caller should be told; the one who tells it clears it."""
        core_options = Options(
            dialog_policy or options.dialog_policy,
            options.dialog_timeout_s,
            chosen_bridge(options.bridge, browser.product),
            secrets.token_hex(16),
        )
        self._state = BrowserState(options=core_options)
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

    # --- acting -------------------------------------------------------------------------------------------------------

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        frame_id: str | None = None,
        target_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> Mapping[str, Any]:
        """Send a CDP command to the frame, tab or browser that it is meant for, and give its result.

        ``frame_id`` and ``target_id`` may be short names (``f2``, ``t1``). ``session_id`` bypasses the routing, for
        callers that took it from the view. ``timeout`` is in seconds, clamped to 0.1-300.

        Raises: UnknownFrame, UnknownTarget, NoPage, MethodRefused, DialogOpened, TargetCrashed, TargetClosed,
        ProtocolError, CallTimeout, ConnectionLost.
        """
        self._require_connection()
        timeout = self._clamped(timeout)
        if session_id is not None:
            session = self._state.sessions.by_id.get(session_id)
            if session is None:
                raise TargetClosed(
                    f"There is no CDP session {session_id[:80]!r} any more.",
                    "Its page was closed or moved to another process. Take a browser_snapshot.",
                )
            found = Route(session_id, params or {}, session.page_id)
        else:
            routed = route(
                self._state,
                method,
                params or {},
                frame_id=frame_id,
                target_id=target_id,
                context_id=self.context_id,
            )
            if isinstance(routed, Unroutable):
                raise _ERRORS[routed.kind](routed.message, routed.hint)
            found = routed
        self._past_dialogs(method, found, timeout)
        if found.needs_isolated_world:
            found = await self._with_context(method, found, params or {})
        self.boundary.check_call(method, found.params)
        if method == "Page.navigateToHistoryEntry":
            await self._check_history(found, timeout)
        found, timeout = self._past_dialogs(method, found, timeout)
        if found.needs_isolated_world:
            found = await self._in_isolated_world(found, timeout)
        try:
            result = await self.browser.runner.call(
                found.session_id, method, found.params, timeout=timeout, page_id=found.page_id
            )
        except CallTimeout:
            if found.page_id is not None and self._state.dialogs.pending:
                raise dialog_opened(method, self.snapshot().pending_dialogs) from None
            raise
        return self._own_part(method, result)

    async def evaluate(
        self,
        expression: str,
        *,
        frame_id: str | None = None,
        await_promise: bool = True,
        timeout: float | None = None,
    ) -> Any:
        """Run JavaScript in a frame's own world and give its value, as JSON. Raises EvaluationFailed."""
        result = await self.call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": await_promise, "userGesture": True},
            frame_id=frame_id or self.top_frame_id(),
            timeout=timeout,
        )
        return evaluated(result)

    async def navigate(self, url: str, *, timeout: float | None = None) -> Navigation:
        """Open a URL in the selected tab (a new one, when there is none) and wait until it has loaded."""
        self._require_connection()
        self.boundary.check_url(url)
        page_id = self._state.targets.selected or await self.open_tab()
        return await navigate(self, page_id, url, self._clamped(timeout))

    async def open_tab(self, url: str = "about:blank") -> str:
        """Open a tab and select it; gives its target id."""
        self._require_connection()
        self.boundary.check_url(url)
        params: dict[str, Any] = {"url": url, "background": True}
        if self.context_id is not None:
            params["browserContextId"] = self.context_id
        if self._state.targets.pages:
            # A background tab of a headless browser is never painted, so screenshots of it would never end.
            params["newWindow"] = True
        created = await self.browser.command("Target.createTarget", params)
        target_id = fields.text(created, "targetId")
        await self._take(target_id, attach=not self.browser.isolated)
        return target_id

    async def follow_tab(self, target_id: str) -> None:
        """Make a tab that is open in a shared browser one of this task's, and select it."""
        self._require_connection()
        if target_id not in self._state.targets.pages:
            await self._take(target_id, attach=True)
        self._apply(SelectTab(target_id))

    def select_tab(self, name: str) -> None:
        """Select a tab of this task by tab id or target id. Raises UnknownTarget."""
        self._apply(SelectTab(self._tab(name).target_id))

    async def close_tab(self, name: str | None = None) -> str:
        """Close a tab, the selected one when none is named; gives its tab id once the browser says that it is gone.

        Raises: UnknownTarget, NoPage, DialogOpened (the page asks whether to stay), CallTimeout.
        """
        selected = self._state.targets.selected
        if name is None and selected is None:
            raise NoPage("This task has no open tab.", "There is nothing to close.")
        page = self._tab(name or selected or "")
        await self.call("Target.closeTarget", {"targetId": page.target_id})

        def gone(state: BrowserState) -> bool | None:
            asks = any(d.type == "beforeunload" for d in state.dialogs.of_page(page.target_id))
            return False if asks else True if page.target_id not in state.targets.pages else None

        if not await self.wait_for_state(gone, PREPARE_TIMEOUT_S):
            raise dialog_opened("closing the tab", self.snapshot().pending_dialogs)
        return page.tab_id

    def _tab(self, name: str) -> Target:
        page = self._state.targets.by_name(name)
        if page is None:
            known = ", ".join(tab.tab_id for tab in self.snapshot().tabs) or "none"
            raise UnknownTarget(f"There is no tab {name[:80]!r} in this task.", f"Open tabs: {known}.")
        return page

    async def _take(self, target_id: str, *, attach: bool) -> None:
        """From now on a target is of this task; ready when it answers, or is known to be stuck."""
        self.browser.adopt(target_id, self)
        self._apply(Adopt(target_id))
        if attach:
            await self.browser.attach(target_id)
        await self.wait_for_state(lambda state: self._settled(state, target_id), PREPARE_TIMEOUT_S)
        self._apply(SelectTab(target_id))

    async def answer_dialog(
        self, action: Literal["accept", "dismiss"], prompt_text: str | None = None, dialog_id: str | None = None
    ) -> DialogAnswer:
        """Answer an open dialog, and wait until the browser says that it closed.

        Raises: NoDialogOpen, UnknownDialog, AmbiguousDialog, DialogBeingAnswered, BadPromptText.
        """
        stuck = next((tab for tab in self.snapshot().tabs if tab.stuck), None)
        if stuck is not None and dialog_id is None and not self._state.dialogs.pending:
            return await free_tab(self, stuck, action)
        dialog = chosen_dialog(self._state.dialogs, action, prompt_text, dialog_id)
        accept = action == "accept"
        text = core_dialogs.answer_text(dialog, accept, prompt_text)
        self._require_connection()
        self._apply(AnswerDialog(dialog.dialog_id, accept, text, "agent"))

        def over(state: BrowserState) -> bool | None:
            now = state.dialogs.get(dialog.dialog_id)
            return True if now is None or now.closed_at is not None or now.response is None else None

        try:
            await self.wait_for_state(over, ANSWER_TIMEOUT_S)
        except CallTimeout:
            pass  # told below: what is known of the dialog now is the answer
        if dialog.via == "debugger":
            await self._gone_on(dialog)
        known = [*self.snapshot().recent_dialogs, *self.snapshot().pending_dialogs]
        return DialogAnswer.of(next((d for d in known if d.id == dialog.dialog_id), None), action, text)

    async def _gone_on(self, dialog: core_dialogs.Dialog) -> None:
        """Until the script that asked has gone on to its end, or to the next dialog; bounded.

        A page that is let go handles first what is in its queue, so a script sent right after the answer could find
        the page as it was before. A promise settles only once the interrupted script is done.
        """
        try:
            await self.browser.runner.call(
                dialog.session_id,
                "Runtime.evaluate",
                {"expression": "0", "awaitPromise": True},
                timeout=BARRIER_TIMEOUT_S,
                page_id=dialog.page_id,
            )
        except SupervisorError:
            return  # it went on: it asks again, is busy, or is gone

    async def close(self) -> None:
        """End the task: its tabs are closed. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self.browser.remove_task(self)
        self.connection_lost("the task was closed")

    # --- what the browser tells us ------------------------------------------------------------------------------------

    def receive(self, event: Event) -> None:
        self._apply(event)
        frame_id = self.boundary.trespass(event)
        if frame_id is not None:
            self._send(Send(event.session_id, "Page.navigate", {"url": "about:blank", "frameId": frame_id}))
        for listener in tuple(self._listeners):
            listener(event)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Hear every event of this task's sessions, in order, once the state has it. Calling the result ends that.

        A listener returns at once and raises nothing.
        """
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def not_connected(self, outcome: Outcome) -> None:
        self.boundary.not_connected(outcome)

    def connection_lost(self, reason: str) -> None:
        self._apply(Disconnected(reason))
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None

    def connection_back(self, target_ids: frozenset[str]) -> tuple[str, ...]:
        """The connection is there again; gives the targets of this task that survived, to be attached again."""
        before = len(self._state.targets.pages)
        self._apply(Reconnected(target_ids))
        left = tuple(self._state.targets.pages)
        lost = before - len(left)
        self.notice = "The connection to the browser was lost and is back" + (
            f"; {lost} tabs are gone." if lost else "."
        )
        return left

    def _apply(self, happened: Input) -> None:
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
                self._apply(_outcome(tag, outcome))

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
        self._apply(Tick())

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

    def _require_connection(self) -> None:
        if self.browser.lost is not None:
            raise lost_error(self.browser.ended or self.browser.lost, self.browser.owned)

    def _clamped(self, timeout: float | None) -> float:
        low, high = TIMEOUT_RANGE_S
        return min(max(self.options.call_timeout_s if timeout is None else timeout, low), high)

    async def _check_history(self, found: Route, timeout: float) -> None:
        history = await self.browser.runner.call(
            found.session_id, "Page.getNavigationHistory", {}, timeout=timeout, page_id=found.page_id
        )
        self.boundary.check_history(history, found.params.get("entryId"))

    def _past_dialogs(self, method: str, found: Route, timeout: float) -> tuple[Route, float]:
        """A command that would wait behind a dialog is not sent; beside a page that the debugger holds, most go on."""
        if found.page_id is None or method in BROWSER_PROCESS or self._state.options.dialog_policy != "must_respond":
            return found, timeout
        related = self._state.targets.related(found.page_id)
        frames = self._state.frames.by_id
        for dialog in self._state.dialogs.pending:
            if dialog.page_id not in related:
                continue
            holder = dialog.session_id or (frames[dialog.frame_id].session_id if dialog.frame_id in frames else None)
            here = dialog.page_id == found.page_id
            blocked = dialog.via != "debugger" and holder in (None, found.session_id)
            if here and (blocked or method.startswith("Input.")):
                raise dialog_opened(method, self.snapshot().pending_dialogs, sent=False)
            if dialog.via != "debugger" or not here:
                # Other sessions answer, unless they share the process that waits, which nobody tells us.
                timeout = min(timeout, BESIDE_DIALOG_TIMEOUT_S)
            elif found.params.get("awaitPromise") is True:
                # No promise settles while a page is held, not even one made of a plain value.
                params = {**found.params, "awaitPromise": False}
                found = Route(found.session_id, params, found.page_id, found.frame_id)
        return found, timeout

    async def _with_context(self, method: str, found: Route, params: Mapping[str, Any]) -> Route:
        """A frame that has just come, or has just been navigated, is given a moment until its context is known."""
        frame_id = found.frame_id

        def known(state: BrowserState) -> Route | None:
            again = route(state, method, params, frame_id=frame_id, context_id=self.context_id)
            return again if isinstance(again, Route) and not again.needs_isolated_world else None

        try:
            return await self.wait_for_state(known, CONTEXT_TIMEOUT_S)
        except CallTimeout:
            return found

    async def _in_isolated_world(self, found: Route, timeout: float) -> Route:
        """A frame whose own context we do not know still runs our script, in a world of its own."""
        made = await self.browser.runner.call(
            found.session_id,
            "Page.createIsolatedWorld",
            {"frameId": found.frame_id, "worldName": "watchkeeper"},
            timeout=timeout,
            page_id=found.page_id,
        )
        number = fields.integer(made, "executionContextId")
        return Route(found.session_id, {**found.params, "contextId": number}, found.page_id, found.frame_id)

    def _own_part(self, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lists of targets show those of this task only."""
        if method != "Target.getTargets":
            return result
        own = self._state.targets.pages.keys() | self._state.frames.by_id.keys()
        infos = [info for info in fields.items(result, "targetInfos") if fields.text(info, "targetId") in own]
        return {**result, "targetInfos": infos}

    @staticmethod
    def _settled(state: BrowserState, target_id: str) -> bool | None:
        session = state.sessions.of_target(target_id)
        return True if session is not None and (session.prepared or session.stuck) else None


def evaluated(result: Mapping[str, Any]) -> Any:
    """The value of a ``Runtime.evaluate`` by value. Raises EvaluationFailed where the script threw."""
    details = fields.mapping(result, "exceptionDetails")
    if details:
        exception = fields.mapping(details, "exception")
        said = fields.text(exception, "description") or str(exception.get("value", fields.text(details, "text")))
        raise EvaluationFailed(f"The script threw: {said[:2000]}", "Mend the script; the page was not left.")
    value = fields.mapping(result, "result")
    return value.get("value", value.get("unserializableValue"))


def _outcome(tag: Tag, outcome: Reply | SupervisorError) -> Input:
    if isinstance(outcome, SupervisorError):
        return Failed(tag, 0, outcome.message)
    if outcome.is_error:
        return Failed(tag, outcome.code, outcome.message)
    return Replied(tag, outcome.result)
