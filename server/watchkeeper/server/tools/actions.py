"""Tools that act on a page, by the refs of a snapshot, in any frame.

Rule: each says what it did and what that started; what the page says in it stands in quotes.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .. import render
from ..security.password_fields import without_passwords
from .large_results import shown
from .spec import DEFAULT_TASK, TASK_ID, TIMEOUT, Annotations, Arguments, Call, Json, ToolResult, ToolSpec, call_limit

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor
    from watchkeeper.supervisor.page.actions import Done

REF: Json = {"type": "string"}
MODIFIERS = ["Alt", "Control", "Meta", "Shift"]
WAIT_S = 10.0
Act = Callable[["Supervisor", Arguments], Awaitable["Done"]]


def _done(done: "Done") -> ToolResult:
    """What an action did, and each thing that it started on a line of its own."""
    effects = done.effects.lines()
    lines = [render.sentence(done.said), *(f"- {render.visible(line)}" for line in effects)]
    structured: Json = {"done": done.said}
    return ToolResult("\n".join(lines), {**structured, "started": effects} if effects else structured)


def _handler(act: Act) -> Callable[[Call, Arguments], Awaitable[ToolResult]]:
    async def handle(call: Call, arguments: Arguments) -> ToolResult:
        supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
        if "text" in arguments:  # what is typed may be the name of a secret
            text = await call.tasks.secrets.typed(arguments["text"], supervisor, arguments["ref"])
            arguments = {**arguments, "text": text}
        return _done(await act(supervisor, arguments))

    return handle


async def _click(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.click(
        supervisor,
        arguments["ref"],
        button=arguments.get("button", "left"),
        count=2 if arguments.get("double") else 1,
        modifiers=arguments.get("modifiers", ()),
    )


async def _type(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    text, submit = arguments["text"], arguments.get("submit", False)
    if arguments.get("keys"):
        return await actions.type_text(supervisor, text, arguments["ref"], submit=submit)
    return await actions.fill(supervisor, arguments["ref"], text, submit=submit)


async def _press(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.press(supervisor, arguments["keys"], arguments.get("ref"))


async def _select(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.select(supervisor, arguments["ref"], arguments["values"])


async def _check(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.check(supervisor, arguments["ref"], arguments.get("checked", True))


async def _hover(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.hover(supervisor, arguments["ref"])


async def _drag(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.drag(supervisor, arguments["ref"], arguments["onto"])


async def _scroll(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page import actions

    return await actions.scroll(
        supervisor, arguments.get("ref"), to=arguments.get("to"), pages=arguments.get("pages", 0.0)
    )


async def _history(supervisor: "Supervisor", arguments: Arguments) -> "Done":
    from watchkeeper.supervisor.page.history import go

    return await go(supervisor, arguments["action"])


async def wait(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor.page.waits import wait_for

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    wishes = {name: value for name, value in arguments.items() if name not in ("task_id", "timeout")}
    waited = await wait_for(supervisor, **wishes, timeout=float(arguments.get("timeout", WAIT_S)))
    structured: Json = {"met": waited.met, "seconds": round(waited.seconds, 3), "said": waited.said}
    return ToolResult(render.sentence(waited.said), structured)


async def evaluate(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    found: Any = await supervisor.evaluate(
        arguments["expression"], frame_id=arguments.get("frame_id"), timeout=arguments.get("timeout")
    )
    found = await without_passwords(found, supervisor)
    done = f"browser_evaluate {arguments['expression']}"
    return await shown(call, arguments.get("task_id", DEFAULT_TASK), found, "value", done)


def _action(name: str, title: str, description: str, properties: Json, act: Act, *required: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=title,
        description=description,
        properties={**properties, "task_id": TASK_ID},
        required=required,
        handler=_handler(act),
        limit=call_limit,
        annotations=Annotations(destructive=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    )


TOOLS = (
    _action(
        "browser_click",
        "Click",
        "Click an element by its ref from browser_snapshot.",
        {
            "ref": REF,
            "double": {"type": "boolean"},
            "button": {"enum": ["left", "right", "middle"]},
            "modifiers": {"type": "array", "items": {"enum": MODIFIERS}},
        },
        _click,
        "ref",
    ),
    _action(
        "browser_type",
        "Type",
        "Fill a field (replacing its content), also dates, ranges and rich text. secret:NAME types a declared secret.",
        {
            "ref": REF,
            "text": {"type": "string"},
            "keys": {"type": "boolean", "description": "Send each key, keep the content"},
            "submit": {"type": "boolean", "description": "Press Enter after"},
        },
        _type,
        "ref",
        "text",
    ),
    _action(
        "browser_press",
        "Press keys",
        "Press a key or combination, such as Enter or Control+A.",
        {"keys": {"type": "string"}, "ref": REF},
        _press,
        "keys",
    ),
    _action(
        "browser_select",
        "Select options",
        "Choose options of a list by value or label.",
        {"ref": REF, "values": {"type": "array", "items": {"type": "string"}}},
        _select,
        "ref",
        "values",
    ),
    _action(
        "browser_check",
        "Check or uncheck",
        "Set a checkbox, radio or switch.",
        {"ref": REF, "checked": {"type": "boolean", "description": "Default true"}},
        _check,
        "ref",
    ),
    _action("browser_hover", "Hover", "Move the pointer onto an element.", {"ref": REF}, _hover, "ref"),
    _action("browser_drag", "Drag", "Drag one element onto another.", {"ref": REF, "onto": REF}, _drag, "ref", "onto"),
    _action(
        "browser_scroll",
        "Scroll",
        "Scroll the page, or the part around ref; without to or pages, ref comes into view.",
        {
            "ref": REF,
            "to": {"enum": ["view", "top", "bottom"]},
            "pages": {"type": "number", "minimum": -100, "maximum": 100, "description": "Screens down; negative: up"},
        },
        _scroll,
    ),
    _action(
        "browser_history",
        "Back, forward, reload",
        "Move in the tab's history.",
        {"action": {"enum": ["back", "forward", "reload"]}},
        _history,
        "action",
    ),
    ToolSpec(
        name="browser_wait",
        title="Wait",
        description="Wait for one thing to come about.",
        properties={
            "text": {"type": "string", "description": "Shown in any frame"},
            "gone": {"type": "string", "description": "Text no longer shown"},
            "ref": REF,
            "url": {"type": "string", "description": "Part of it, or * pattern"},
            "quiet": {"const": True, "description": "Network idle"},
            "seconds": {"type": "number", "minimum": 0, "maximum": 60},
            "timeout": TIMEOUT,
            "task_id": TASK_ID,
        },
        handler=wait,
        limit=call_limit,
        annotations=Annotations(read_only=True, idempotent=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    ),
    ToolSpec(
        name="browser_evaluate",
        title="Run JavaScript",
        description="Run JavaScript in a frame (default top) and get its value as JSON; promises are awaited.",
        properties={
            "expression": {"type": "string", "minLength": 1},
            "frame_id": {"type": "string"},
            "timeout": TIMEOUT,
            "task_id": TASK_ID,
        },
        required=("expression",),
        handler=evaluate,
        limit=call_limit,
        annotations=Annotations(destructive=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    ),
)
