"""A server of the conformance scenarios' tools, resources and prompts, on Watchkeeper's own stack: its server class,
its subscriptions, its HTTP application, its way to listen and to end. Only what is served is not Watchkeeper's.
"""

import logging
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import anyio
import fixture_questions  # noqa: F401  registers its tools
import fixture_texts as texts
import mcp_types as types
from fixture_tools import TOOLS, Context, FixtureTool, Result, said
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.lifetime import serve_until_ended
from watchkeeper.server.protocol.app import WatchkeeperServer, fit_to_revision
from watchkeeper.server.protocol.subscriptions import Subscriptions
from watchkeeper.server.settings import Settings
from watchkeeper.server.transports.http import serve_http

NAME = "conformance-fixture"
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
PROMPT_SOMETIMES = types.Prompt(name="test_sometimes", description="Comes and goes.")
TOOL_SOMETIMES = types.Tool(name="test_sometimes", description="Comes and goes.", input_schema=NOTHING)


class Changing:
    """What the scenarios make come and go while they look."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._tool = self._prompt = False

    def tools(self) -> list[types.Tool]:
        listed = [tool.listed for tool in TOOLS.values()]
        for name, what in (("test_trigger_tool_change", "tools"), ("test_trigger_prompt_change", "prompts")):
            listed.append(types.Tool(name=name, description=f"Changes the list of {what}.", input_schema=NOTHING))
        return [*listed, TOOL_SOMETIMES] if self._tool else listed

    def prompts(self) -> list[types.Prompt]:
        return [*texts.PROMPTS, PROMPT_SOMETIMES] if self._prompt else texts.PROMPTS

    def change(self, name: str) -> Result | None:
        """The answer, where this tool is one that changes a list."""
        if name == "test_trigger_tool_change":
            self._tool = not self._tool
            self._subscriptions.lists_changed(tools=True)
        elif name == "test_trigger_prompt_change":
            self._prompt = not self._prompt
            self._subscriptions.lists_changed(prompts=True)
        else:
            return None
        return said("Changed.")


def make_fixture(dispatcher: Dispatcher) -> WatchkeeperServer:
    subscriptions = Subscriptions(dispatcher)
    changing = Changing(subscriptions)

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=changing.tools())

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Result:
        changed = changing.change(params.name)
        if changed is not None:
            return changed
        tool: FixtureTool | None = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await tool.run(context, params)

    async def list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=changing.prompts())

    def schema_of(name: str) -> Mapping[str, Any] | None:
        return TOOLS[name].listed.input_schema if name in TOOLS else None

    server = WatchkeeperServer(
        NAME,
        version="1",
        get_tool_input_schema=schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=texts.list_resources,
        on_list_resource_templates=texts.list_templates,
        on_read_resource=texts.read_resource,
        on_subscribe_resource=texts.subscribe,
        on_unsubscribe_resource=texts.unsubscribe,
        on_subscriptions_listen=subscriptions.listen,
        on_list_prompts=list_prompts,
        on_get_prompt=texts.get_prompt,
        on_completion=texts.complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, subscriptions.initialized)
    server.middleware.append(fit_to_revision)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


async def _set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def main() -> None:
    """Listen on any free port until a signal comes; says where on stderr."""
    settings = Settings.model_validate({"server": {"transport": "http", "port": 0}})
    dispatcher = Dispatcher(settings)
    server = make_fixture(dispatcher)
    await serve_until_ended(
        dispatcher, lambda stop: serve_http(server, dispatcher, settings, stop), anyio.sleep_forever
    )


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # what is deprecated is part of what is tested
    anyio.run(main)
