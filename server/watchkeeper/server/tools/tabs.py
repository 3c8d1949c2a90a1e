"""Tools for a task's tabs, and for its end.

Rule: a tab that opens by itself is never selected by itself; closing says what is selected afterwards.
"""

from typing import TYPE_CHECKING

from .. import render
from ..errors import ToolError
from .spec import DEFAULT_TASK, TASK_ID, Annotations, Arguments, Call, Json, ToolResult, ToolSpec, call_limit

if TYPE_CHECKING:
    from watchkeeper.supervisor import View

CLOSE_LIMIT_S = 15.0


async def tabs(call: Call, arguments: Arguments) -> ToolResult:
    action, task_id = arguments["action"], arguments.get("task_id", DEFAULT_TASK)
    if action == "new":
        supervisor = await call.tasks.start(call.principal, task_id)
        await supervisor.open_tab()
        url = arguments.get("url")
        if url is not None:
            went = await supervisor.navigate(url)
            return _listed(supervisor.snapshot(), f"Opened a tab with {render.address(went.url)}.")
        return _listed(supervisor.snapshot(), "Opened an empty tab.")
    supervisor = call.tasks.require(call.principal, task_id)
    if action == "list":
        await supervisor.refresh_tabs()
        return _listed(supervisor.snapshot(), "")
    tab = arguments.get("tab")
    if action == "select":
        if tab is None:
            raise ToolError("invalid_arguments", "'select' needs tab.", "Give a tab id such as t2.")
        supervisor.select_tab(tab)
        return _listed(supervisor.snapshot(), f"{tab} is selected.")
    closed = await supervisor.close_tab(tab)
    return _listed(supervisor.snapshot(), f"{closed} was closed.")


def _listed(view: "View", said: str) -> ToolResult:
    lines = [said] if said else []
    for tab in view.tabs:
        marks = [
            mark
            for mark, holds in (("selected", tab.selected), ("crashed", tab.crashed), ("does not answer", tab.stuck))
            if holds
        ]
        opener = [f"opened by {tab.opener}"] if tab.opener else []
        told = ", ".join([*marks, *opener])
        title = f" {render.quoted(tab.title, 120)}" if tab.title else ""
        lines.append(f"- {tab.tab_id}{title} {render.address(tab.url)}" + (f" ({told})" if told else ""))
    if not view.tabs:
        lines.append("No tab is open: browser_navigate opens one.")
    return ToolResult("\n".join(lines), {"tabs": [tab.as_dict() for tab in view.tabs]})


async def close(call: Call, arguments: Arguments) -> ToolResult:
    task_id = arguments.get("task_id", DEFAULT_TASK)
    if await call.tasks.stop(call.principal, task_id):
        return ToolResult(f"Task {task_id!r} ended; its tabs are closed.", {"closed": True})
    return ToolResult(f"Task {task_id!r} had no browser.", {"closed": False})


_ACTIONS: Json = {"enum": ["list", "new", "select", "close"]}
TOOLS = (
    ToolSpec(
        name="browser_tabs",
        title="Tabs",
        description="List, open, select or close this task's tabs. Popups are listed, not selected.",
        properties={
            "action": _ACTIONS,
            "tab": {"type": "string", "description": "Such as t2; close: default the selected"},
            "url": {"type": "string", "description": "For new"},
            "task_id": TASK_ID,
        },
        required=("action",),
        handler=tabs,
        limit=call_limit,
        annotations=Annotations(destructive=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    ),
    ToolSpec(
        name="browser_close",
        title="End a task",
        description="End the task: close its tabs and forget its cookies.",
        properties={"task_id": TASK_ID},
        handler=close,
        limit=lambda arguments, settings: CLOSE_LIMIT_S,
        annotations=Annotations(destructive=True, idempotent=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    ),
)
