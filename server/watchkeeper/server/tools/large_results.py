"""Results that may be larger than what a model should read at once.

Rule: what is not shown is said, and where there is an archive the whole is kept there, as it would have been shown
(without secrets), with its handle in the result. That it could not be kept is no failure of the call.
"""

from typing import Any

import anyio

from .. import render
from ..errors import told
from .spec import Call, Json, ToolResult

SHOWN = 20_000
CALL_KEPT = 300


async def shown(call: Call, task_id: str, found: Any, key: str, done: str) -> ToolResult:
    """A value as JSON, cut after ``SHOWN`` characters; then ``<key>_json`` has the text.

    ``done`` is what gave it, in words by which it may be searched for.
    """
    found = call.tasks.secrets.masked(found)  # before it is cut: the cut, or that of a page, might go through a secret
    text, cut = render.value(found, SHOWN)
    if not cut:
        return ToolResult(render.fenced(text, "result"), {key: found})
    whole = render.value(found, 1 << 40)[0]
    note = f"Cut: {SHOWN} of {len(whole)} characters. Ask for less: select in the expression, or slice(…) a text."
    kept, more = await _kept(call, task_id, whole, done)
    note += kept
    return ToolResult(render.joined(render.fenced(text, "result"), note), {f"{key}_json": text, "note": note, **more})


async def _kept(call: Call, task_id: str, whole: str, done: str) -> tuple[str, Json]:
    """What the note says of the archive, and the handle; both empty where there is none."""
    by = " ".join(call.tasks.secrets.masked(done).split())[:CALL_KEPT]

    def keep() -> tuple[str, str] | None:
        return call.conversations.keep(call.principal, task_id, whole, by)

    try:
        kept = await anyio.to_thread.run_sync(keep, abandon_on_cancel=True)
    except Exception as error:
        known = told(error)
        if known is None:
            raise
        return f" The whole could not be kept in the archive: {known.message}.", {}
    if kept is None:
        return "", {}
    handle, tool = kept
    return f' The whole is in the archive: {tool}(id="{handle}") gives its pages.', {"archived": handle}
