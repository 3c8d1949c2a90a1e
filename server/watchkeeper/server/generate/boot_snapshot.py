"""What ``boot`` answers before the SDK is there, taken from the live server.

Rules: nothing is written by hand: the server is asked, in both eras, through its own transport.
"""

import json
import os
from typing import Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from ..dispatch import Dispatcher, Reply
from ..protocol.app import make_server
from ..protocol.call_result import call_result
from ..settings import Settings
from ..startup.boot import MODERN_CAPABILITIES, MODERN_CLIENT, MODERN_VERSION, NAVIGATE
from ..startup.descriptors import write_all
from ..tools import ALL_TOOLS
from ..transports.stdio import serve_descriptors

WAIT_S = 20.0
ABOUT = {"name": "boot", "version": "1"}


def build() -> str:
    """The text of ``boot_snapshot.json``."""
    modern = {MODERN_VERSION: MODERN_PROTOCOL_VERSIONS[-1], MODERN_CLIENT: ABOUT, MODERN_CAPABILITIES: {}}
    answers = {
        **_ask(
            ("initialize", {"protocolVersion": "newest", "capabilities": {}, "clientInfo": ABOUT}),
            ("notifications/initialized", None),
            ("legacy", {}),
            ("call_legacy", _REFUSED),
        ),
        **_ask(
            ("discover", {"_meta": modern}),
            ("modern", {"_meta": modern}),
            ("call_modern", {"_meta": modern, **_REFUSED}),
        ),
    }
    around = {era: _around(answers[era]) for era in ("call_legacy", "call_modern")}
    newest = answers["initialize"].pop("protocolVersion")
    tools = answers["legacy"].pop("tools")
    if answers["modern"].pop("tools") != tools:
        raise AssertionError("the tools differ between the eras; boot.py has to know")
    snapshot = {
        "initialize": answers["initialize"],
        "newest_legacy": newest,
        "legacy_versions": sorted(HANDSHAKE_PROTOCOL_VERSIONS),
        "modern_versions": sorted(MODERN_PROTOCOL_VERSIONS),
        "discover": answers["discover"],
        "tools_legacy": answers["legacy"],
        "tools_modern": answers["modern"],
        **around,
        "needs_browser": sorted(spec.name for spec in ALL_TOOLS if spec.needs),
        "tools": tools,
    }
    return json.dumps(snapshot, ensure_ascii=False, indent=1) + "\n"


_METHODS = {
    "discover": "server/discover",
    "legacy": "tools/list",
    "modern": "tools/list",
    "call_legacy": "tools/call",
    "call_modern": "tools/call",
}
_REFUSED: dict[str, Any] = {"name": NAVIGATE, "arguments": {}}
"""A call that starts nothing; the form of its result is that of every other."""


def _around(result: dict[str, Any]) -> dict[str, Any]:
    """What a result of a call has beside what ``call_result`` makes."""
    ours = call_result(Reply("", {}), "both")
    if not set(ours) <= set(result):
        raise AssertionError(f"a result of a call has no {set(ours) - set(result)}; call_result.py has to know")
    return {name: value for name, value in result.items() if name not in ours}


def _ask(*questions: tuple[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Put questions to a server of its own; gives the results by name. Those without parameters are notifications."""
    lines = []
    for name, params in questions:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": _METHODS.get(name, name)}
        lines.append(message if params is None else {**message, "id": name, "params": params})
    return anyio.run(_asked, "".join(json.dumps(line) + "\n" for line in lines).encode())


async def _asked(lines: bytes) -> dict[str, Any]:
    """Write lines to a server and collect its answers: as many as were asked for by an id."""
    # A browser is given, so that the tools that need one are in the list; it is never started.
    settings = Settings.model_validate({"browser": {"executable": "given"}})
    server = make_server(Dispatcher(settings))
    source, feed = os.pipe()
    collect, sink = os.pipe()
    answers: dict[str, Any] = {}
    stop = anyio.Event()

    def read() -> None:
        wanted = sum(b'"id"' in line for line in lines.splitlines())
        with os.fdopen(collect, encoding="utf-8") as replies:
            while len(answers) < wanted:
                answer = json.loads(replies.readline())
                answers[answer["id"]] = answer["result"]

    async def serve() -> None:
        await serve_descriptors(server, source, sink, stop, max_message_bytes=1 << 20)

    write_all(feed, lines)
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
            stop.set()
    for descriptor in (feed, source, sink):
        os.close(descriptor)
    return answers
