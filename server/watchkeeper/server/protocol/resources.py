"""What clients can read beside calling tools: the server's status, what is known of each task, what was archived.

Rules: a resource is declared once, here; lists, templates, completions and docs/protocol.md are made from that. Reading
runs as a call of a tool does: under its limits, masked, fenced or as strings of JSON. It starts no browser and waits
for no dialog. A principal reads its own tasks and its own archive, and learns nothing of others.

Source: https://modelcontextprotocol.io/specification/2026-07-28/server/resources
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .. import archives, render
from ..dispatch import Dispatcher, Reply
from ..observability.status import status
from ..tools import ALL_TOOLS
from ..tools.spec import TASK_ID, Annotations, Arguments, Call, Json, ToolResult, ToolSpec
from .principal import principal

Context = ServerRequestContext[Any, Any]
Part = Literal["snapshot", "dialogs", "console"]
"""What a task shows of itself, each in a resource of its own."""
PAGE = 100
READ_LIMIT_S = 15.0
ARCHIVED_PAGE_TOKENS = 8_000
NOT_FOUND_BEFORE_2026 = -32002
"""Older revisions have a code of their own; since 2026-07-28 what is not found is an invalid parameter."""
_NOTHING_THERE = frozenset({"no_task", "invalid_arguments", "engine_tool_failed"})
"""Codes of tool errors that mean: nothing is to be found at this address."""


async def _unasked(done: float, total: float | None = None, message: str | None = None) -> None:
    """Progress of a read: nobody asked for it."""


async def _dialogs(call: Call, arguments: Arguments) -> ToolResult:
    view = call.tasks.require(call.principal, arguments["task_id"]).snapshot()
    pending = [dialog.as_dict() for dialog in view.pending_dialogs]
    recent = [dialog.as_dict() for dialog in view.recent_dialogs]
    return ToolResult("", {"pending_dialogs": pending, "recent_dialogs": recent})


DIALOGS = ToolSpec(
    name="read dialogs",
    title="",
    description="",
    properties={"task_id": TASK_ID},
    required=("task_id",),
    handler=_dialogs,
    limit=lambda arguments, settings: READ_LIMIT_S,
    annotations=Annotations(read_only=True),
    tells=False,
)
# What happened to a task meanwhile is kept for the next call: what is read may never come before a model.
_TOOLS = {spec.name: replace(spec, tells=False) for spec in ALL_TOOLS}
Read = Callable[[Dispatcher, str, Mapping[str, str]], Awaitable[Reply]]


async def _read_status(dispatcher: Dispatcher, who: str, names: Mapping[str, str]) -> Reply:
    return dispatcher.shown("", status(dispatcher, who))


async def _read_snapshot(dispatcher: Dispatcher, who: str, names: Mapping[str, str]) -> Reply:
    return await dispatcher.run(_TOOLS["browser_snapshot"], names, who, _unasked)


async def _read_dialogs(dispatcher: Dispatcher, who: str, names: Mapping[str, str]) -> Reply:
    return await dispatcher.run(DIALOGS, names, who, _unasked)


async def _read_console(dispatcher: Dispatcher, who: str, names: Mapping[str, str]) -> Reply:
    return await dispatcher.run(_TOOLS["browser_console"], {**names, "all": True}, who, _unasked)


async def _read_archived(dispatcher: Dispatcher, who: str, names: Mapping[str, str]) -> Reply:
    tool = archives.expand_tool(dispatcher.settings)
    spec = next((spec for spec in dispatcher.offered() if spec.name == tool), None)
    if spec is None:
        error = {"code": "no_archive", "message": "There is no archive.", "hint": "context.archive switches it on."}
        return Reply("", {"error": error}, is_error=True)
    reply = await dispatcher.run(spec, {**names, "max_tokens": ARCHIVED_PAGE_TOKENS}, who, _unasked)
    found = reply.structured.get("result")
    if reply.is_error or not isinstance(found, dict):
        return reply
    more = {"next": ARCHIVED.template.expand({"id": names["id"], "cursor": found["next"]})} if "next" in found else {}
    return Reply(reply.text, {**found, **more})


@dataclass(frozen=True)
class Resource:
    """``uri`` is an address, or a template (RFC 6570) of many; ``part``: what of a task it shows."""

    uri: str
    name: str
    title: str
    description: str
    read: Read
    mime: str = "application/json"
    priority: float = 0.5
    part: Part | None = None

    @cached_property
    def template(self) -> UriTemplate:
        return UriTemplate.parse(self.uri)

    @property
    def annotations(self) -> types.Annotations:
        return types.Annotations(audience=["user", "assistant"], priority=self.priority)

    def of_task(self, task_id: str) -> types.Resource:
        """As it is listed for a task."""
        return types.Resource(
            uri=self.template.expand({"task_id": task_id}),
            name=f"{self.name} of {render.visible(task_id)}",
            title=f"{self.title} ({render.visible(task_id)})",
            description=self.description,
            mime_type=self.mime,
            annotations=self.annotations,
        )


STATUS = Resource(
    "watchkeeper://status",
    "status",
    "What the server is doing",
    "Your tasks and their browsers, and what the server counts.",
    _read_status,
)
SNAPSHOT = Resource(
    "watchkeeper://tasks/{task_id}/snapshot",
    "page",
    "The page as it is now",
    "The selected tab as a text tree, as browser_snapshot shows it, open dialogs first. It is the page's own words.",
    _read_snapshot,
    mime="text/plain",
    priority=0.8,
    part="snapshot",
)
DIALOGS_OF_TASK = Resource(
    "watchkeeper://tasks/{task_id}/dialogs",
    "dialogs",
    "Dialogs, open and recent",
    "alert, confirm, prompt and beforeunload: what each asks, and how those that closed ended.",
    _read_dialogs,
    priority=0.9,
    part="dialogs",
)
CONSOLE = Resource(
    "watchkeeper://tasks/{task_id}/console",
    "console",
    "Console",
    "The newest lines of the console, errors and everything else.",
    _read_console,
    part="console",
)
ARCHIVED = Resource(
    "watchkeeper://archive/{id}{?cursor}",
    "archived",
    "An archived original",
    "What was too long to be shown, or was compressed, by the id in the result (needs context.archive); in pages.",
    _read_archived,
    priority=0.3,
)
RESOURCES = (STATUS, SNAPSHOT, DIALOGS_OF_TASK, CONSOLE, ARCHIVED)
OPTIONAL = frozenset({"cursor"})
"""Variables without which an address leads somewhere too."""
OF_TASKS = tuple(resource for resource in RESOURCES if resource.part)


def found(uri: str) -> tuple[Resource, dict[str, str]] | None:
    """The resource of an address, and the values of its variables; None for what cannot be one of ours."""
    for resource in RESOURCES:
        values = resource.template.match(uri)
        if values is not None:
            named = {name: value for name, value in values.items() if isinstance(value, str) and value}
            return (resource, named) if set(resource.template.variable_names) - OPTIONAL <= set(named) else None
    return None


class Resources:
    """The requests about resources of one server."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The status and what each live task of the principal shows, in pages."""
        live = self._dispatcher.tasks.live(principal())
        after = _decoded(params.cursor) if params and params.cursor else None
        # A cursor names the task before, not a number: tasks come and go between two pages.
        left = [task_id for task_id in live if after is None or task_id > after]
        shown, more = left[: PAGE // len(OF_TASKS)], left[PAGE // len(OF_TASKS) :]
        first = [] if after is not None else [_listed(STATUS)]
        return types.ListResourcesResult(
            resources=[*first, *(resource.of_task(task_id) for task_id in shown for resource in OF_TASKS)],
            next_cursor=_encoded(shown[-1]) if more else None,
        )

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type=resource.mime,
                    annotations=resource.annotations,
                )
                for resource in RESOURCES
                if UriTemplate.is_template(resource.uri)
            ]
        )

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        at = found(uri)
        if at is None:
            refuse(context, uri, f"There is no resource {uri[:200]!r}.", "resources/list shows what there is.")
        resource, values = at
        reply = await resource.read(self._dispatcher, principal(), values)
        if reply.is_error:
            error: Json = reply.structured["error"]
            if error["code"] in _NOTHING_THERE:
                refuse(context, uri, error["message"], error["hint"], error["code"])
            said = f"{error['message']} {error['hint']}"
            raise MCPError(types.INTERNAL_ERROR, said, {"uri": uri, "code": error["code"], "hint": error["hint"]})
        text = reply.text if resource.mime == "text/plain" else render.as_json(reply.structured)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=resource.mime, text=text)]
        )


def refuse(context: Context, uri: str, message: str, hint: str, code: str = "unknown_resource") -> NoReturn:
    """Answer that nothing is at this address, in the way of the connection's revision."""
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    number = types.INVALID_PARAMS if modern else NOT_FOUND_BEFORE_2026
    raise MCPError(number, f"{message} {hint}", {"uri": uri, "code": code, "hint": hint})


def _listed(resource: Resource) -> types.Resource:
    return types.Resource(
        uri=resource.uri,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime,
        annotations=resource.annotations,
    )


def _encoded(task_id: str) -> str:
    return base64.urlsafe_b64encode(task_id.encode("utf-8", "surrogatepass")).decode()


def _decoded(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), b"-_", validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        raise MCPError(
            types.INVALID_PARAMS,
            f"{cursor[:60]!r} is no cursor of ours. Give nextCursor of the page before, unchanged.",
        ) from None
