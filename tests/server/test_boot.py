"""The first moments over stdio: answered before the SDK is there, exactly as the live server answers."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.server.generate.boot_snapshot import build
from watchkeeper.server.startup import boot

WAIT_S = 30
MODERN = {
    boot.MODERN_VERSION: "2026-07-28",
    boot.MODERN_CLIENT: {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
COMMAND = [sys.executable, "-c", "from watchkeeper.server.cli import main; raise SystemExit(main([]))"]
BROKEN = [
    sys.executable,
    "-c",
    "import sys; sys.modules['mcp.server.lowlevel.server'] = None\n"
    "from watchkeeper.server.cli import main; raise SystemExit(main([]))",
]


def talk(
    *messages: dict[str, Any] | bytes, command: list[str] = COMMAND, answers: int, **environment: str
) -> tuple[list[dict[str, Any]], int, str]:
    """Send messages at once, read so many answers, end the input; gives them, the exit status and stderr."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WATCHKEEPER_")} | environment
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    guard = threading.Timer(WAIT_S, process.kill)
    guard.start()
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    for message in messages:
        process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    got = [json.loads(process.stdout.readline()) for _ in range(answers)]
    process.stdin.close()
    rest = process.stdout.read()
    errors = process.stderr.read().decode()
    status = process.wait(WAIT_S)
    guard.cancel()
    process.stdout.close()
    process.stderr.close()
    assert rest == b"", "nothing is answered twice"
    return got, status, errors


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


def initialize(version: str = "2025-06-18", name: str = "test") -> dict[str, Any]:
    about = {"name": name, "version": "1"}
    return request(1, "initialize", protocolVersion=version, capabilities={}, clientInfo=about)


INITIALIZED: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def test_the_snapshot_is_what_the_live_server_answers() -> None:
    assert Path(boot.SNAPSHOT).read_text("utf-8") == build()


def test_importing_it_imports_no_sdk() -> None:
    script = (
        "import sys, watchkeeper.server.startup.boot, watchkeeper.server.cli\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'pydantic', 'anyio', 'asyncio')])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_is_answered_once_and_the_live_server_knows_of_it(version: str) -> None:
    unknown = request(4, "tools/call", name="nothing", arguments={})
    got, status, _ = talk(
        initialize(version), INITIALIZED, request(2, "tools/list"), request(3, "ping"), unknown, answers=4
    )
    assert [answer["id"] for answer in got] == [1, 2, 3, 4]
    assert got[0]["result"]["protocolVersion"] == version
    assert {tool["name"] for tool in got[1]["result"]["tools"]} >= {"browser_navigate", "browser_dialog"}
    assert "Unknown tool" in got[3]["error"]["message"], "answered by the live server, which accepted the handshake"
    assert status == 0


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
def test_the_front_and_the_live_server_give_the_same_handshake_and_lists(version: str) -> None:
    """A list with a parameter that the front does not know is left to the live server."""
    got, _, _ = talk(
        initialize(version), INITIALIZED, request(2, "tools/list"), request(3, "tools/list", cursor=None), answers=3
    )
    assert got[1]["result"]["tools"] == got[2]["result"]["tools"]
    by_live = initialize(version)
    by_live["params"]["_meta"] = {}  # which the front does not know in a handshake
    live, _, _ = talk(by_live, answers=1)
    assert got[0]["result"] == live[0]["result"]


def test_the_front_and_the_live_server_give_the_same_list_in_the_newest_revision() -> None:
    got, _, _ = talk(
        request(1, "server/discover", _meta=MODERN),
        request(2, "tools/list", _meta=MODERN),
        request(3, "tools/list", _meta={**MODERN}, cursor=None),
        answers=3,
    )
    assert got[0]["result"]["supportedVersions"] == ["2026-07-28"]
    assert got[1]["result"] == got[2]["result"]


def test_a_client_with_a_model_gets_no_output_schemas() -> None:
    got, _, _ = talk(initialize(name="claude-ai"), INITIALIZED, request(2, "tools/list"), answers=2)
    assert not any("outputSchema" in tool for tool in got[1]["result"]["tools"])
    got, _, _ = talk(initialize(name="somebody"), INITIALIZED, request(2, "tools/list"), answers=2)
    assert all("outputSchema" in tool for tool in got[1]["result"]["tools"])


def test_what_is_no_message_is_refused_by_the_live_server_and_lines_may_come_in_pieces() -> None:
    line = json.dumps(request(2, "ping")).encode()
    got, _, _ = talk(initialize(), b"no json\n", line[:10], line[10:] + b"\n", answers=3)
    assert {answer.get("id") for answer in got} == {1, 2, None}


def test_what_is_no_request_of_json_rpc_and_lists_before_the_handshake_are_left_to_the_live_server() -> None:
    old = {**request(7, "tools/list"), "jsonrpc": "1.0"}
    got, _, _ = talk(request(5, "tools/list"), request(6, "ping"), initialize(), old, request(8, "ping"), answers=5)
    by_id = {answer["id"]: answer for answer in got}
    assert "error" in by_id[5] and "error" in by_id[7]
    assert by_id[6]["result"] == by_id[8]["result"] == {}


def test_what_is_too_much_to_hold_is_left_in_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "CHUNK", 8)
    monkeypatch.setattr(boot, "ENOUGH", 20)
    (source, feed), (answers, sink) = os.pipe(), os.pipe()
    front = boot.Front({"newest_legacy": "2025-11-25"}, boot.Handover(source, sink), {})
    os.write(feed, b"0123456\n" * 10)
    front.start()
    deadline = time.monotonic() + WAIT_S
    while front._read_so_far < 20 and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    handover = front.stop()
    assert handover.lines == [b"0123456"] * 3
    assert os.read(source, 1000) == b"0123456\n" * 7
    for descriptor in (source, feed, answers, sink):
        os.close(descriptor)


def test_where_the_sdk_cannot_be_loaded_every_call_says_so() -> None:
    call = request(3, "prompts/list")
    got, status, errors = talk(
        initialize(), INITIALIZED, request(2, "tools/list"), call, request(4, "ping"), command=BROKEN, answers=4
    )
    by_id = {answer["id"]: answer for answer in got}
    assert by_id[2]["result"]["tools"]
    assert "could not be loaded" in by_id[3]["error"]["message"]
    assert status == 1 and "could not be loaded" in errors


def test_wrong_settings_end_the_server_with_a_sentence() -> None:
    _, status, errors = talk(answers=0, WATCHKEEPER_BROWSER__CALL_TIMEOUT_S="soon")
    assert status == 2 and "call_timeout_s" in errors


def test_settings_that_shape_the_tools_are_left_to_the_live_server(tmp_path: Path) -> None:
    assert boot.may_answer({}, {}, None)
    assert boot.may_answer({"browser.headless": "true"}, {"WATCHKEEPER_SERVER__LOG_LEVEL": "debug"}, None)
    assert not boot.may_answer({"server.toolsets": "core"}, {}, None)
    assert not boot.may_answer({}, {"WATCHKEEPER_CONTEXT__ENGINE": "lcm"}, None)
    assert not boot.may_answer({}, {}, str(tmp_path))
    assert not boot.may_answer({}, {"WATCHKEEPER_CONFIG": "x"}, None)


@pytest.mark.parametrize(
    ("setting", "value"), [("EXECUTABLE", "/somewhere/chromium"), ("CDP_URL", "http://127.0.0.1:9")]
)
def test_a_browser_that_is_named_is_not_looked_for(setting: str, value: str) -> None:
    named = {f"WATCHKEEPER_BROWSER__{setting}": value, "PATH": "/nowhere"}
    assert boot.may_answer({}, named, None)
    got, _, _ = talk(initialize(), INITIALIZED, request(2, "tools/list"), answers=2, **named)
    assert "browser_cdp" in {tool["name"] for tool in got[1]["result"]["tools"]}


def test_an_input_that_ends_at_once_ends_the_server() -> None:
    got, status, _ = talk(answers=0)
    assert got == [] and status == 0
