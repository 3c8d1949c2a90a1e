"""The Inspector lists and calls the tools over stdio, streamable HTTP and SSE, and finds no fault in their schemas."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NODE = HERE / "node_modules/.bin/node"
INSPECTOR = HERE / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
LIMIT_S = 90
PAGE = "data:text/html,<title>Inspected</title><h1>Hello, inspector</h1>"


def inspect(target: list[str], *arguments: str) -> dict[str, Any]:
    """What the Inspector prints. Raises where it fails."""
    command = [str(NODE), str(INSPECTOR), "--cli", *target, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"the Inspector ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def check(name: str, target: list[str], lasting: bool) -> None:
    """``lasting``: the server outlives a call, and so do its tasks."""
    names = [tool["name"] for tool in inspect(target, "--method", "tools/list", "--strict")["tools"]]
    assert {"browser_navigate", "browser_snapshot", "browser_dialog", "browser_cdp"} <= set(names), names
    call = ("--method", "tools/call", "--tool-name")
    opened = inspect(target, *call, "browser_navigate", "--tool-arg", f"url={PAGE}")
    assert not opened.get("isError"), opened
    assert opened["structuredContent"]["title"] == "Inspected", opened
    if lasting:
        seen = inspect(target, *call, "browser_snapshot")
        assert "Hello, inspector" in seen["content"][0]["text"], seen
        assert seen["structuredContent"]["pending_dialogs"] == [], seen
    sys.stdout.write(f"{name}: {len(names)} tools listed, called, and their schemas are portable\n")


def main(watchkeeper: str) -> None:
    settings = ["--browser.headless=true"]
    check("stdio", [watchkeeper, *settings], lasting=False)
    serve = [watchkeeper, "serve", "--transport=http", "--port=0", *settings]
    server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = re.search(r"http://[^/\s]+", server.stderr.readline())
        assert found is not None
        check("streamable HTTP", [f"{found[0]}/mcp"], lasting=True)
        check("SSE", [f"{found[0]}/sse"], lasting=True)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(LIMIT_S) == 0


if __name__ == "__main__":
    main(sys.argv[1])
