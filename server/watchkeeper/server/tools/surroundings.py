"""Tools for what a task carries with it: cookies and storage, and what pages believe of their surroundings.

Rule: cookie values are secrets: they go into files with owner-only permissions, never into a result.
"""

import json
from pathlib import Path

from .. import render
from ..errors import ToolError
from ..security import files
from .spec import DEFAULT_TASK, TASK_ID, Annotations, Arguments, Call, Json, ToolResult, ToolSpec, call_limit

STATE_BYTES = 16 << 20


async def storage(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor.page import storage as stored

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    match arguments["action"]:
        case "cookies":
            found = await stored.cookies(supervisor, url=arguments.get("url", ""))
            shown = [{key: value for key, value in cookie.items() if key != "value"} for cookie in found]
            lines = [f"- {c.get('name')} for {c.get('domain')}{c.get('path', '')}" for c in shown]
            return ToolResult(
                render.fenced("\n".join(lines), "cookies") if lines else "No cookies.", {"cookies": shown}
            )
        case "clear":
            await stored.clear_cookies(supervisor)
            return ToolResult("Every cookie of the task is gone.", {"cleared": True})
    path = _path(call, arguments)
    if arguments["action"] == "save":
        state = await stored.save_state(supervisor)
        files.write_private(path, json.dumps(state).encode())
        said = f"{len(state['cookies'])} cookies and the storage of {len(state['origins'])} origins are in {path}."
        return ToolResult(said, {"path": str(path)})
    cookies, origins = await stored.load_state(supervisor, _read_state(path))
    said = f"{cookies} cookies were set, and storage for {origins} origins, which get it when they are opened."
    return ToolResult(said, {"cookies": cookies, "origins": origins})


def _path(call: Call, arguments: Arguments) -> Path:
    if "path" not in arguments:
        raise ToolError("invalid_arguments", f"{arguments['action']!r} needs path.", "A file in an allowed folder.")
    return files.allowed_file(Path(arguments["path"]), call.settings)


def _read_state(path: Path) -> Json:
    try:
        if path.stat().st_size > STATE_BYTES:
            raise ToolError("too_large", f"{path} is larger than {STATE_BYTES >> 20} MiB.", "Is it a state file?")
        state = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ToolError("cannot_read", f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except ValueError:
        state = None
    if not isinstance(state, dict):
        raise ToolError("not_a_state", f"{path} is not a storage state.", "Save one with action 'save'.")
    return state


async def emulate(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor.page import emulation

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    asked = {name: value for name, value in arguments.items() if name != "task_id"}
    if "location" in asked:
        asked["location"] = tuple(asked["location"])
    done = await emulation.emulate(supervisor, **asked)
    return ToolResult("; ".join(done).capitalize() + "." if done else "Nothing was given to set.", {"set": done})


TOOLS = (
    ToolSpec(
        name="browser_storage",
        title="Cookies and sign-ins",
        description="List cookies (without values), save or load the sign-in state as a file, clear cookies.",
        properties={
            "action": {"enum": ["cookies", "save", "load", "clear"]},
            "path": {"type": "string"},
            "url": {"type": "string"},
            "task_id": TASK_ID,
        },
        required=("action",),
        handler=storage,
        limit=call_limit,
        annotations=Annotations(destructive=True),
        toolset="state",
        needs=frozenset({"cdp"}),
    ),
    ToolSpec(
        name="browser_emulate",
        title="Emulate",
        description="Viewport size, colours, locale, time zone, location, offline, for the selected tab.",
        properties={
            "width": {"type": "integer", "minimum": 0, "description": "With height; 0: the window's own"},
            "height": {"type": "integer", "minimum": 0},
            "mobile": {"type": "boolean"},
            "colors": {"enum": ["light", "dark"]},
            "reduced_motion": {"type": "boolean"},
            "media": {"enum": ["screen", "print"]},
            "locale": {"type": "string"},
            "timezone": {"type": "string"},
            "location": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "offline": {"type": "boolean"},
            "user_agent": {"type": "string"},
            "task_id": TASK_ID,
        },
        handler=emulate,
        limit=call_limit,
        annotations=Annotations(destructive=False, idempotent=True),
        toolset="state",
        needs=frozenset({"cdp"}),
    ),
)
