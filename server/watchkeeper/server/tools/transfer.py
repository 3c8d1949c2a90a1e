"""The tool that moves files between a page and the allowed folders.

Rule: a path is checked before anything happens, after resolving links; downloads are saved only once somebody asked.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from .. import render
from ..errors import ToolError
from ..security import files
from .spec import DEFAULT_TASK, TASK_ID, TIMEOUT, Annotations, Arguments, Call, Json, ToolResult, ToolSpec, call_limit

if TYPE_CHECKING:
    from watchkeeper.supervisor.page.downloads import Download

WAIT_S = 30.0


async def transfer(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    from watchkeeper.supervisor.page.downloads import downloads_of

    downloads = downloads_of(supervisor)
    match arguments["action"]:
        case "upload":
            from watchkeeper.supervisor.page import actions

            if "ref" not in arguments or "paths" not in arguments:
                raise ToolError(
                    "invalid_arguments", "'upload' needs ref and paths.", "ref: a file field or its button."
                )
            paths = [str(files.allowed_file(Path(path), call.settings)) for path in arguments["paths"]]
            done = await actions.upload(supervisor, arguments["ref"], paths)
            lines = [render.sentence(done.said), *(f"- {line}" for line in done.effects.lines())]
            return ToolResult(render.visible("\n".join(lines)), {"done": done.said})
        case "save":
            folder = files.allowed_folders(call.settings)[0]
            await downloads.save_to(folder)
            return _listed(downloads.list(), f"Downloads are saved in {folder} from now on.")
        case "wait":
            known = downloads.list()
            if not known:
                raise ToolError("no_download", "No download was started.", "Call with action 'save', then click.")
            number = arguments.get("number", known[-1].number)
            ended = await downloads.wait(number, float(arguments.get("timeout", WAIT_S)))
            return _listed((ended,), "")
        case "cancel":
            if "number" not in arguments:
                raise ToolError("invalid_arguments", "'cancel' needs number.", "action 'list' shows the numbers.")
            await downloads.cancel(arguments["number"])
    return _listed(downloads.list(), "")


def _listed(downloads: "tuple[Download, ...]", said: str) -> ToolResult:
    lines = [said] if said else []
    for one in downloads:
        size = (
            f"{one.received} of {one.total} bytes"
            if one.total and one.state == "in_progress"
            else f"{one.received} bytes"
        )
        where = f" → {render.quoted(str(one.path))}" if one.path else ""
        lines.append(f"- {one.number} {render.quoted(one.suggested, 120)} {one.state}, {size}{where}")
    facts: list[Json] = [
        {
            "number": one.number,
            "name": one.suggested,
            "url": one.url,
            "state": one.state,
            "received": one.received,
            "total": one.total,
            "path": str(one.path) if one.path else None,
        }
        for one in downloads
    ]
    return ToolResult("\n".join(lines) or "No download was started.", {"downloads": facts})


TOOLS = (
    ToolSpec(
        name="browser_files",
        title="Upload and download",
        description="upload: give files to a field. Downloads: save (keep them from now on), list, wait, cancel.",
        properties={
            "action": {"enum": ["upload", "save", "list", "wait", "cancel"]},
            "ref": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "number": {"type": "integer"},
            "timeout": TIMEOUT,
            "task_id": TASK_ID,
        },
        required=("action",),
        handler=transfer,
        limit=call_limit,
        annotations=Annotations(destructive=True),
        toolset="actions",
        needs=frozenset({"cdp"}),
    ),
)
