"""Tools that open pages, read them, and speak CDP.

Rule: what a page says is fenced in the text form; in the structured form it stands in strings of JSON.
"""

from typing import Any

from .. import render
from ..security.password_fields import without_passwords
from .large_results import CALL_KEPT, shown
from .spec import DEFAULT_TASK, TASK_ID, TIMEOUT, Annotations, Arguments, Call, Json, ToolResult, ToolSpec, call_limit

SNAPSHOT_LIMIT_S = 60.0
OUTCOMES = {
    "loaded": "Opened",
    "loading": "Still loading",
    "waiting_for_dialog": "Waiting for a dialog",
    "stayed": "The page asked to stay (beforeunload), and was not left",
    "download": "A download; the page stays as it was",
}
_DIALOG: Json = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "type": {"type": "string"},
        "message": {"type": "string"},
        "default_prompt": {"type": "string"},
        "url": {"type": "string"},
        "frame_id": {"type": "string"},
        "tab_id": {"type": "string"},
        "opened_at": {"type": "number"},
    },
    "required": ["id", "type", "message", "opened_at", "frame_id", "tab_id"],
}
SNAPSHOT_OUTPUT: Json = {
    "type": "object",
    "properties": {
        "snapshot": {"type": "string"},
        "pending_dialogs": {"type": "array", "items": _DIALOG},
        "recent_dialogs": {"type": "array", "items": _DIALOG},
        "frame_tree": {
            "type": "object",
            "properties": {"children": {"type": "array"}, "truncated": {"type": "boolean"}},
            "required": ["top", "children", "truncated"],
        },
    },
}


async def navigate(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = await call.tasks.start(
        call.principal, arguments.get("task_id", DEFAULT_TASK), arguments.get("dialog_policy")
    )
    went = await supervisor.navigate(arguments["url"], timeout=arguments.get("timeout"))
    status = f", HTTP {went.status}" if went.status else ""
    title = f", title {render.quoted(went.title, 200)}" if went.title else ""
    text = f"{OUTCOMES[went.outcome]}: {render.address(went.url)}{title}{status}."
    structured = {"outcome": went.outcome, "url": went.url, "title": went.title, "status": went.status}
    if went.note:
        structured["note"] = went.note
        text += f" {went.note}"
    return ToolResult(text, structured)


async def snapshot(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor import SupervisorError
    from watchkeeper.supervisor.page import take_snapshot

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    asked = {name: value for name, value in arguments.items() if name != "task_id"}
    try:
        page = await take_snapshot(supervisor, **asked)
    except SupervisorError as error:
        # A page that cannot be read still has dialogs and frames, and they are known without it.
        if asked.keys() - {"max_tokens"} or error.code in ("no_page", "connection_lost"):
            raise
        text = f"The page cannot be read now: {error.message} {error.hint}"
        facts: Json = {"snapshot": text, "unreadable": error.code}
    else:
        text = render.fenced(page.text)
        facts = {"snapshot": page.text, "snapshot_id": page.snapshot_id, "url": page.url, "title": page.title}
        facts |= {"stale": True} if page.stale else {}
        facts |= {"truncated": True, "lines": page.total} if page.truncated else {}
    view = supervisor.snapshot()
    structured = {
        "pending_dialogs": [dialog.as_dict() for dialog in view.pending_dialogs],
        "recent_dialogs": [dialog.as_dict() for dialog in view.recent_dialogs],
        "frame_tree": view.frame_tree.as_dict(),
        **facts,
    }
    return ToolResult(
        render.joined(render.recent_dialogs(view.recent_dialogs), render.frame_tree(view.frame_tree), text), structured
    )


async def cdp(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    result = await supervisor.call(
        arguments["method"],
        arguments.get("params", {}),
        frame_id=arguments.get("frame_id"),
        target_id=arguments.get("target_id"),
        timeout=arguments.get("timeout"),
    )
    found: dict[str, Any] = await without_passwords(dict(result), supervisor)
    done = f"browser_cdp {arguments['method']} {render.value(arguments.get('params', {}), CALL_KEPT)[0]}"
    return await shown(call, arguments.get("task_id", DEFAULT_TASK), found, "result", done)


NAVIGATE = ToolSpec(
    name="browser_navigate",
    title="Open a page",
    description="Open a URL, starting the task's browser if needed. Then use browser_snapshot to see the page.",
    properties={
        "url": {"type": "string", "minLength": 1, "maxLength": 2_000_000},
        "timeout": TIMEOUT,
        "dialog_policy": {
            "enum": ["must_respond", "auto_dismiss", "auto_accept"],
            "description": "For a new task: who answers alert/confirm/prompt",
        },
        "task_id": {**TASK_ID, "description": "Each task has its own browser state"},
    },
    required=("url",),
    handler=navigate,
    limit=lambda arguments, settings: call_limit(arguments, settings),
    annotations=Annotations(destructive=False, idempotent=True),
)

SNAPSHOT = ToolSpec(
    name="browser_snapshot",
    title="See the page",
    description="The page as a text tree with element refs, all iframes included; open and recent dialogs; frames.",
    properties={
        "max_tokens": {"type": "integer", "minimum": 100, "maximum": 200_000, "description": "Default 6000"},
        "root": {"type": "string", "description": "Only below this ref"},
        "frame_id": {"type": "string", "description": "Only this frame (f2 or full id)"},
        "find": {"type": "string", "description": "Only lines with this text"},
        "since": {"type": "string", "description": "Only changes since this snapshot id"},
        "cursor": {"type": "string", "description": "Continue where … was"},
        "task_id": TASK_ID,
    },
    handler=snapshot,
    limit=lambda arguments, settings: SNAPSHOT_LIMIT_S,
    annotations=Annotations(read_only=True, idempotent=True),
    output=SNAPSHOT_OUTPUT,
)

CDP = ToolSpec(
    name="browser_cdp",
    title="Send a CDP command",
    description=(
        "Any Chrome DevTools Protocol command, for what has no tool. frame_id runs it in that iframe, also "
        "cross-origin, e.g. Runtime.evaluate {expression, returnByValue: true}."
    ),
    properties={
        "method": {"type": "string", "minLength": 3, "maxLength": 200},
        "params": {"type": "object"},
        "frame_id": {"type": "string"},
        "target_id": {"type": "string", "description": "A tab"},
        "timeout": TIMEOUT,
        "task_id": TASK_ID,
    },
    required=("method",),
    handler=cdp,
    limit=lambda arguments, settings: call_limit(arguments, settings),
    annotations=Annotations(destructive=True),
    needs=frozenset({"cdp"}),
)

TOOLS = (NAVIGATE, SNAPSHOT, CDP)
