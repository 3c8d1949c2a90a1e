"""Completions of prompt arguments and of the variables in resource templates.

Rules: suggestions are of the principal's own tasks, addresses, conversations and archive; at most 100, and how many
more there are is said. Suggesting starts no browser and keeps no task from ending. What cannot be looked up in time, or
is not known, gives no suggestions and no error: a person is typing.

Source: https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from ..dispatch import Dispatcher
from ..errors import told
from .principal import principal
from .prompts import Prompts
from .resources import ARCHIVED, RESOURCES

if TYPE_CHECKING:
    from watchkeeper.supervisor import View

Context = ServerRequestContext[Any, Any]
MOST = 100
"""The protocol's own limit."""
LOOK_S = 2.0
log = logging.getLogger(__name__)


class Completions:
    """The completion requests of one server."""

    def __init__(self, dispatcher: Dispatcher, prompts: Prompts) -> None:
        self._dispatcher = dispatcher
        self._prompts = prompts

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Raises MCPError where the prompt, the template or the argument is unknown."""
        kind = self._kind(params.ref, params.argument.name)
        given = (params.context.arguments if params.context else None) or {}
        values = await self._values(kind, given.get("task_id", ""))
        masked = self._dispatcher.tasks.secrets.masked
        fits = _fitting(params.argument.value, (masked(value) for value in values))
        completion = types.Completion(values=fits[:MOST], total=len(fits), has_more=len(fits) > MOST)
        return types.CompleteResult(completion=completion)

    def _kind(self, ref: types.ResourceTemplateReference | types.PromptReference, name: str) -> str:
        """What is to be suggested; empty for arguments that people put in their own words."""
        if isinstance(ref, types.PromptReference):
            prompt = self._prompts.named(ref.name)
            kinds = {argument.name: argument.kind for argument in prompt.arguments}
            what = prompt.name
        else:
            resource = next((resource for resource in RESOURCES if resource.uri == ref.uri), None)
            if resource is None:
                said = f"Unknown resource template: {ref.uri[:200]}. resources/templates/list shows them."
                raise MCPError(types.INVALID_PARAMS, said)
            names = {"id": "archived"} if resource is ARCHIVED else {}
            kinds = {variable: names.get(variable, variable) for variable in resource.template.variable_names}
            what = resource.uri
        if name not in kinds:
            raise MCPError(types.INVALID_PARAMS, f"{what} has no argument {name[:60]!r}; it has {', '.join(kinds)}.")
        return kinds[name]

    async def _values(self, kind: str, task_id: str) -> Iterable[str]:
        who, tasks = principal(), self._dispatcher.tasks
        match kind:
            case "task_id":
                return tasks.live(who)
            case "url":
                of = [task_id] if task_id else tasks.live(who)
                running = [supervisor for name in of if (supervisor := tasks.peek(who, name)) is not None]
                urls = [url for supervisor in running for url in _addresses(supervisor.snapshot())]
                return dict.fromkeys(url for url in urls if url.startswith(("http:", "https:")))
            case "archived":
                return await self._looked_up(lambda: self._dispatcher.conversations.kept(who, MOST))
            case "session_id":
                return await self._looked_up(lambda: self._dispatcher.conversations.archived_sessions(who))
        return ()

    async def _looked_up(self, look: Any) -> Iterable[str]:
        found: list[str] = []
        with anyio.move_on_after(LOOK_S):
            try:
                found = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
            except Exception as error:
                if told(error) is None:
                    raise
                log.warning("no suggestions from the archive: %s", error)
        return found


def _addresses(view: "View") -> list[str]:
    """Of the page in front first: its frames know before its tab does."""
    top = view.frame_tree.top
    return [*([top.url] if top else []), *(tab.url for tab in view.tabs)]


def _fitting(typed: str, values: Iterable[str]) -> list[str]:
    """Those that begin with what was typed, then those that contain it; in their own order otherwise."""
    begun = typed.casefold()
    fits = [value for value in values if begun in value.casefold()]
    return sorted(fits, key=lambda value: not value.casefold().startswith(begun))
