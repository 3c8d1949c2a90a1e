"""Tools that look beside the page: pictures, console, network.

Rule: lists are paged and say how much more there is; page text is fenced.
"""

from collections.abc import Awaitable, Callable

from .. import render
from ..errors import ToolError
from ..security import files
from .spec import DEFAULT_TASK, TASK_ID, Annotations, Arguments, Call, Image, Json, ToolResult, ToolSpec, call_limit

PAGE = 50
LINE_SHOWN = 500
OFFSET: Json = {"type": "integer", "minimum": 0}


async def screenshot(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor.page import capture

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    form = arguments.get("format", "png")
    if form == "pdf":
        folder = files.allowed_folders(call.settings)[0]
        path = files.new_file(folder, "page", ".pdf")
        files.write_private(path, await capture.pdf(supervisor))
        return ToolResult(f"The page as PDF: {path}", {"path": str(path)})
    picture = await capture.screenshot(
        supervisor, ref=arguments.get("ref"), full_page=arguments.get("full_page", False), format=form
    )
    scale = "" if picture.scale == 1 else f", scaled by {picture.scale:.2f}"
    note = f" {picture.note}" if picture.note else ""
    facts: Json = {"width": picture.width, "height": picture.height, "scale": picture.scale, "mime": picture.mime}
    return ToolResult(
        f"{picture.width}×{picture.height} pixels{scale}.{note}",
        {**facts, **({"note": picture.note} if picture.note else {})},
        (Image(picture.data, picture.mime),),
    )


async def console(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    view = supervisor.snapshot()
    everything = arguments.get("all", False)
    entries = sorted((*view.console_errors, *(view.console_other if everything else ())), key=lambda entry: entry.at)
    shown, note = _page(len(entries), arguments.get("offset", 0))
    lines = []
    for entry in entries[shown]:
        where = f" ({render.address(entry.url)}:{entry.line})" if entry.url else ""
        lines.append(f"{entry.level}: {render.quoted(entry.text, LINE_SHOWN)}{where}")
    dropped = f"{view.console_dropped} older entries were dropped." if view.console_dropped else ""
    none = "" if entries else "Nothing was logged." if everything else "No errors."
    body = render.fenced("\n".join(lines), "console") if lines else none
    structured: Json = {
        "entries": [
            {"level": e.level, "text": e.text, "url": e.url, "line": e.line, "at": e.at} for e in entries[shown]
        ],
        "total": len(entries),
        "dropped": view.console_dropped,
    }
    return ToolResult(render.joined(body, note, dropped), structured)


async def network(call: Call, arguments: Arguments) -> ToolResult:
    from watchkeeper.supervisor.page.network import network_log

    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    log = network_log(supervisor)
    first = not log.listening
    await log.start()
    number = arguments.get("body")
    if number is not None:
        text, length = await log.body(number, offset=arguments.get("offset", 0))
        return ToolResult(render.fenced(text, f"body of {number}"), {"body": text, "length": length})
    requests = log.requests(url=arguments.get("url", ""), failed=arguments.get("failed", False))
    shown, note = _page(len(requests), arguments.get("offset", 0))
    lines = []
    for request in requests[shown]:
        outcome = request.failure or (str(request.status) if request.status else "pending")
        took = "" if request.took is None else f" {request.took * 1000:.0f} ms"
        address = render.address(request.url)
        lines.append(f"{request.number} {request.method} {address} {outcome} {request.kind}{took}")
    started = "Requests are kept from now on: do what makes them, then ask again." if first else ""
    body = render.fenced("\n".join(lines), "requests") if lines else "" if first else "No such request."
    structured: Json = {
        "requests": [
            {"number": r.number, "method": r.method, "url": r.url, "status": r.status, "kind": r.kind}
            | ({"failure": r.failure} if r.failure else {})
            for r in requests[shown]
        ],
        "total": len(requests),
        "dropped": log.dropped,
    }
    return ToolResult(render.joined(started, body, note), {**structured, **({"note": started} if started else {})})


def _page(total: int, offset: int) -> tuple[slice, str]:
    """The part of a list that is shown, and what says that there is more. Without an offset the newest are."""
    if offset >= total > 0:
        raise ToolError("invalid_arguments", f"offset {offset} is past the end.", f"There are {total}, from 0.")
    begin = offset if offset else max(0, total - PAGE)
    end = min(total, begin + PAGE)
    return slice(begin, end), "" if end - begin == total else f"{begin}-{end - 1} of {total}; offset shows others."


def _observer(
    name: str,
    title: str,
    description: str,
    properties: Json,
    handler: Callable[[Call, Arguments], Awaitable[ToolResult]],
) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=title,
        description=description,
        properties={**properties, "task_id": TASK_ID},
        handler=handler,
        limit=call_limit,
        annotations=Annotations(read_only=True, idempotent=True),
        toolset="capture",
        needs=frozenset({"cdp"}),
    )


TOOLS = (
    _observer(
        "browser_screenshot",
        "Screenshot",
        "A picture of what is visible, an element or the full page, also while a dialog is open; pdf: a file.",
        {"ref": {"type": "string"}, "full_page": {"type": "boolean"}, "format": {"enum": ["png", "jpeg", "pdf"]}},
        screenshot,
    ),
    _observer(
        "browser_console",
        "Console",
        "Console errors and uncaught exceptions.",
        {"all": {"type": "boolean", "description": "Every message"}, "offset": OFFSET},
        console,
    ),
    _observer(
        "browser_network",
        "Network",
        "Requests made since the first call of this tool; body: the response of one.",
        {
            "url": {"type": "string", "description": "Part of it"},
            "failed": {"type": "boolean"},
            "body": {"type": "integer", "description": "Number of a request"},
            "offset": OFFSET,
        },
        network,
    ),
)
