"""Tabs of a task: open, follow, select, close.

Rules: a tab is handed out once it answers, or is known to be stuck. Closing asks the page first, as a person's click
would (``beforeunload``), where the page can be asked at all. Native dialogs in a tab are ended before it closes, for
closing a tab in which one was displaced can crash the browser.
"""

import asyncio
from typing import Any, Literal

from .calls import call
from .core import fields, freeing
from .core.inputs import Adopt, Event, SelectTab
from .core.state import BrowserState
from .core.targets import Target
from .errors import CallInterrupted, CallTimeout, NoPage, SupervisorError, TargetClosed, UnknownTarget
from .interruption import dialog_opened
from .shell import Shell

PREPARE_TIMEOUT_S = 10.0
FREE_TIMEOUT_S = 2.0
ASK_TIMEOUT_S = 3.0
"""How long a page that was asked to close may take, before it is closed without being asked."""


async def open_tab(shell: Shell, url: str) -> str:
    """Open a tab and select it; gives its target id."""
    params: dict[str, Any] = {"url": url, "background": True}
    if shell.context_id is not None:
        params["browserContextId"] = shell.context_id
    if shell.state.targets.pages:
        # A background tab of a headless browser is never painted, so screenshots of it would never end.
        params["newWindow"] = True
    created = await shell.browser.command("Target.createTarget", params)
    target_id = fields.text(created, "targetId")
    await _take(shell, target_id, attach=not shell.browser.isolated)
    return target_id


async def follow_tab(shell: Shell, target_id: str) -> None:
    if target_id not in shell.state.targets.pages:
        await _take(shell, target_id, attach=True)
    shell.feed(SelectTab(target_id))


def select_tab(shell: Shell, name: str) -> None:
    shell.feed(SelectTab(_named(shell, name).target_id))


async def refresh_tabs(shell: Shell) -> None:
    """Ask for titles and addresses: the browser does not announce every change of a title."""
    listed = await shell.browser.command("Target.getTargets")
    for info in fields.items(listed, "targetInfos"):
        if fields.text(info, "targetId") in shell.state.targets.pages:
            shell.feed(Event(None, "Target.targetInfoChanged", {"targetInfo": info}))


async def close_tab(shell: Shell, name: str | None) -> str:
    """Close a tab; gives its tab id once the browser says that it is gone.

    Raises: UnknownTarget, NoPage, DialogOpened (the page asks whether to stay), CallInterrupted (it stays by the
    policy), CallTimeout.
    """
    selected = shell.state.targets.selected
    if name is None and selected is None:
        raise NoPage("This task has no open tab.", "There is nothing to close.")
    page = _named(shell, name or selected or "")
    session = shell.state.sessions.of_target(page.target_id)
    pending = shell.state.dialogs.of_page(page.target_id)
    if session is not None and session.prepared and not session.crashed and not pending:
        outcome = await _asked_to_close(shell, page)
        if outcome == "asks":
            raise dialog_opened("closing the tab", shell.snapshot().pending_dialogs)
        if outcome == "stays":
            raise CallInterrupted(
                f"Tab {page.tab_id} asked to stay (beforeunload), and the dialog policy let it.",
                "It is still open. With dialog_policy 'must_respond' you are asked; 'auto_accept' leaves.",
            )
        if outcome == "gone":
            return page.tab_id
    await free_dialogs(shell, page.target_id)
    await shell.browser.command("Target.closeTarget", {"targetId": page.target_id})
    await shell.wait_for_state(lambda state: _gone(state, page) or None, PREPARE_TIMEOUT_S)
    return page.tab_id


async def free_dialogs(shell: Shell, page_id: str) -> None:
    """End what native dialogs a tab has, with their defaults; bounded, and silent where it is in vain."""
    session = shell.state.sessions.of_target(page_id)
    open_here = [d for d in shell.state.dialogs.of_page(page_id) if d.via == "native" and d.type != "beforeunload"]
    if session is None or not open_here or shell.lost is not None:
        return
    top = shell.state.frames.by_id.get(page_id)
    params = {"url": freeing.past(top.url if top else "about:blank")}
    try:
        async with asyncio.timeout(FREE_TIMEOUT_S):
            await shell.browser.runner.call(session.session_id, "Page.navigate", params, timeout=FREE_TIMEOUT_S)
            await shell.wait_for_state(
                lambda state: True if not state.dialogs.of_page(page_id) else None, FREE_TIMEOUT_S
            )
    except (SupervisorError, TimeoutError):
        return


async def _asked_to_close(shell: Shell, page: Target) -> Literal["gone", "asks", "stays", "silent"]:
    started = shell.browser.now()

    def outcome(state: BrowserState) -> Literal["gone", "asks", "stays"] | None:
        if _gone(state, page):
            return "gone"
        asked = [
            d
            for d in (*state.dialogs.pending, *state.dialogs.recent)
            if d.page_id == page.target_id and d.type == "beforeunload" and d.opened_at >= started
        ]
        if any(d.closed_at is None and d.response is None for d in asked):
            return "asks"
        stays = any(d.closed_at is not None and d.response is not None and not d.response.accept for d in asked)
        return "stays" if stays else None

    try:
        await call(shell, "Page.close", target_id=page.target_id, timeout=ASK_TIMEOUT_S)
    except TargetClosed:
        pass  # it was quick
    except SupervisorError:
        return outcome(shell.state) or "silent"
    try:
        return await shell.wait_for_state(outcome, ASK_TIMEOUT_S)
    except CallTimeout:
        return "silent"


async def _take(shell: Shell, target_id: str, *, attach: bool) -> None:
    """From now on a target is of this task; ready when it answers, or is known to be stuck."""
    shell.browser.adopt(target_id, shell)
    shell.feed(Adopt(target_id))
    if attach:
        await shell.browser.attach(target_id)
    await shell.wait_for_state(lambda state: _settled(state, target_id), PREPARE_TIMEOUT_S)
    shell.feed(SelectTab(target_id))


def _settled(state: BrowserState, target_id: str) -> bool | None:
    session = state.sessions.of_target(target_id)
    return True if session is not None and (session.prepared or session.stuck) else None


def _gone(state: BrowserState, page: Target) -> bool:
    return page.target_id not in state.targets.pages


def _named(shell: Shell, name: str) -> Target:
    page = shell.state.targets.by_name(name)
    if page is None:
        known = ", ".join(tab.tab_id for tab in shell.snapshot().tabs) or "none"
        raise UnknownTarget(f"There is no tab {name[:80]!r} in this task.", f"Open tabs: {known}.")
    return page
