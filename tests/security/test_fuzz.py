"""Nonsense, well-formed and not: every call ends with an answer, and none with a stack trace.

Cases are drawn anew from the same seed each time; those that once broke something stand in ``FAILURES`` for ever.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.raw_client import Raw
from fakes.site import Site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.context.errors import ContextError
from watchkeeper.context.transcripts import load_transcript
from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.settings import Settings
from watchkeeper.server.tools import ALL_TOOLS
from watchkeeper.server.tools.spec import ToolSpec

from .conftest import StartAgent
from .corpus import PAYLOADS, unsound

EVERYTHING = ("core", "actions", "capture", "state")
CALL_GUARD_S = 40.0
PAGE = (
    "<title>x</title><button onclick='document.title += 1'>a</button><input><input type=file><select><option>1</select>"
    "<iframe src='{other}/inner'></iframe>"
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """``count`` cases, the same ones in every run."""
    found: list[Any] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found[:count]


WORDS = st.text(max_size=30) | st.sampled_from([*PAYLOADS.values(), "e1", "e2", "f1", "f2", "s1", "t1", "a", "Enter"])


def from_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What a schema allows, of the keywords that ours use; others are an error, so that none is passed over."""
    known = {"type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "items", "properties", "required"}
    assert schema.keys() <= known | {"description", "minItems", "maxItems", "additionalProperties"}, schema
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    low, high = schema.get("minimum"), schema.get("maximum")
    match schema.get("type"):
        case "string":
            least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
            return WORDS.filter(lambda text: least <= len(text) <= most)
        case "integer":
            return st.integers(low, high)
        case "number":
            return st.floats(low, high, allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "array":
            least, most = schema.get("minItems", 0), schema.get("maxItems", 4)
            return st.lists(from_schema(schema.get("items", {})), min_size=least, max_size=most)
        case "object" if "properties" in schema:
            fields = {name: from_schema(inner) for name, inner in schema["properties"].items()}
            needed = {name: fields.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional=fields)
        case "object":
            return st.dictionaries(WORDS, ANY_JSON, max_size=3)
        case list() as kinds:
            return st.one_of([from_schema({**schema, "type": kind}) for kind in kinds])
    return ANY_JSON


def fitting(spec: ToolSpec) -> st.SearchStrategy[Any]:
    """Arguments that the tool's own schema allows; what could take long is kept short."""
    return from_schema(spec.input_schema).map(lambda found: _short(spec, found))


def _short(spec: ToolSpec, found: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in found.items() if name != "task_id"}
    if "timeout" in spec.properties:
        found["timeout"] = 1
    if "ref" in found and len(str(found["ref"])) % 2:
        found["ref"] = f"e{len(str(found)) % 8}"
    return found


@pytest.mark.anyio
@pytest.mark.chrome
@pytest.mark.timeout(600)
@pytest.mark.parametrize("spec", [spec for spec in ALL_TOOLS if spec.browser], ids=lambda spec: spec.name)
async def test_no_arguments_of_its_schema_upset_a_tool(
    agent: StartAgent, site: Site, tmp_path: Path, spec: ToolSpec
) -> None:
    acting = await agent(server={"toolsets": EVERYTHING, "allowed_dirs": (str(tmp_path),)})
    site.page("/inner", "<button>inner</button>")
    await acting("browser_navigate", url=site.page("/", PAGE))
    for arguments in drawn(fitting(spec), 3 if spec.name == "browser_close" else 15):
        reply = await asyncio.wait_for(acting(spec.name, **arguments), CALL_GUARD_S)
        assert not broken(reply), (arguments, reply.text)
        if acting.dispatcher.tasks.get("", "default") is None or acting.supervisor.state.targets.selected is None:
            await acting("browser_navigate", url=site.url())
    await acting.cdp("Runtime.evaluate", expression="1")


def broken(reply: Any) -> bool:
    code = reply.structured.get("error", {}).get("code")
    return code == "internal_error" or "Traceback" in reply.text or bool(unsound(reply.structured))


@pytest.mark.anyio
@pytest.mark.parametrize("spec", ALL_TOOLS, ids=lambda spec: spec.name)
async def test_no_arguments_at_all_upset_a_tool(spec: ToolSpec) -> None:
    """Of no schema: nothing is done, and the error says what was expected."""
    dispatcher = Dispatcher(Settings.model_validate({"server": {"toolsets": EVERYTHING}}), tools=(spec,))
    names = st.sampled_from([*spec.properties, "x"])
    tricks = [{name: text} for name in spec.properties for text in PAYLOADS.values()]
    for arguments in (*drawn(st.dictionaries(names, ANY_JSON, max_size=4), 60), *tricks):
        if spec.name == "browser_navigate" and isinstance(arguments.get("url"), str):
            continue  # would start a browser; refused addresses have tests of their own
        if spec.name == "browser_tabs" and arguments.get("action") == "new":
            continue
        reply = await dispatcher.call(spec.name, arguments, "", _quiet)
        assert not broken(reply), (arguments, reply.text)
    await dispatcher.close()


async def _quiet(done: float, total: float | None = None, message: str | None = None) -> None:
    return None


LINES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"\x00",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_snapshot","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_snapshot","arguments":{"find":"\\ud800"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"__init__","params":{"__class__":1}}',
    b'{"jsonrpc":"2.0","id":99999999999999999999999999,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":7,"result":{}}',
    b'{"jsonrpc":"2.0","id":7,"error":{}}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'"' + b"a" * 1_000_000 + b'"',
    b"9" * 5_000,
]
"""Lines that are no requests, or hardly; what once upset a server of this kind."""
METHODS = ("ping", "initialize", "tools/call", "tools/list", "server/discover", "resources/read", "x", "")


@pytest.mark.anyio
@pytest.mark.timeout(300)
@pytest.mark.parametrize("opened", [False, True], ids=["before initialize", "after initialize"])
async def test_no_line_upsets_the_server_over_stdio(opened: bool) -> None:
    params = st.none() | ANY_JSON | st.fixed_dictionaries({"name": st.text(max_size=20), "arguments": ANY_JSON})
    message = st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | ANY_JSON, "method": st.sampled_from(METHODS) | ANY_JSON},
        optional={"id": ANY_JSON, "params": params},
    )
    asked = [json.dumps(case).encode() for case in drawn(message, 150)]
    noise = [case.replace(b"\n", b" ") for case in drawn(st.binary(max_size=200), 60)]
    client = Raw()
    try:
        if opened:
            await client.open()
        client.write(*LINES, *asked, *noise)
        if not opened:
            about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            client.write({"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": about})
            client.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        client.write({"jsonrpc": "2.0", "id": "the end", "method": "tools/list"})
        answers = []
        while not answers or answers[-1].get("id") != "the end":
            answers.append(await client.read())
        assert "result" in answers[-1]
        assert not [answer for answer in answers if "Traceback" in json.dumps(answer)]
        assert client.process.stdin is not None
        client.process.stdin.close()
        client.process.stdin = None
        status, _, err = await client.ended()
        assert status == 0
        assert b"Traceback" not in err, err[-3000:]
    finally:
        client.kill()


ROLES = st.sampled_from(["system", "user", "assistant", "tool", "developer", "", "x"])
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "role": ROLES | ANY_JSON,
            "content": ANY_JSON,
            "tool_calls": ANY_JSON,
            "type": ANY_JSON,
            "message": ANY_JSON,
        },
    ),
    max_size=6,
)
FAILURES: list[bytes] = [
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"role":"user","content":"\\ud800"}\n',
    b'[{"role":"assistant","tool_calls":[{"function":{"arguments":null}}]}]',
    b'{"messages":{"a":1}}',
    b"9" * 5_000,
    b'{"type":[]}\n',
]


@settings(max_examples=150)
@given(
    st.binary(max_size=300)
    | MESSAGES.map(lambda m: json.dumps(m).encode())
    | MESSAGES.map(lambda m: "\n".join(map(json.dumps, m)).encode())
)
def test_no_file_upsets_the_reader_of_transcripts(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    _read(tmp_path_factory.mktemp("t") / "x.jsonl", data)


@pytest.mark.parametrize("data", FAILURES, ids=lambda data: repr(data[:30]))
def test_what_once_upset_the_reader_of_transcripts_does_so_no_more(tmp_path: Path, data: bytes) -> None:
    _read(tmp_path / "x.json", data)


def _read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        load_transcript(path)
    except ContextError as error:
        assert error.message and error.hint


@pytest.mark.anyio
async def test_no_transcript_upsets_the_tool_that_compresses(agent: StartAgent) -> None:
    acting = await agent(server={"toolsets": EVERYTHING})
    for messages in drawn(MESSAGES, 60):
        reply = await acting("compress_context", messages=messages, target_tokens=1_000)
        assert not broken(reply), (messages, reply.text)
