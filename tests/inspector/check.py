"""The Inspector lists and calls the tools over stdio, streamable HTTP and SSE, and finds no fault in their schemas.

The commands of docs/guides/inspector.md are run as they stand there, on pages of our own.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "guides" / "inspector.md"
IN_GUIDE = "npx @modelcontextprotocol/inspector@2 --cli "
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


def follow_guide(watchkeeper: str, server: str) -> None:
    """Each command of the guide on the Inspector's command line, in order."""
    text = GUIDE.read_text("utf-8").replace("https://example.com/", PAGE).replace("http://127.0.0.1:8765", server)
    commands = [line.removeprefix(IN_GUIDE) for line in text.splitlines() if line.startswith(IN_GUIDE)]
    assert len(commands) >= 5, commands
    for command in commands:
        words = [watchkeeper if word == "watchkeeper" else word for word in shlex.split(command.replace(PAGE, "@"))]
        at = words.index("--method")
        answer = inspect(words[:at], *(word.replace("@", PAGE) for word in words[at:]))
        assert not answer.get("isError"), (command, answer)
    sys.stdout.write(f"guide: {len(commands)} commands did what they should\n")


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
        follow_guide(watchkeeper, found[0])
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(LIMIT_S) == 0


if __name__ == "__main__":
    main(sys.argv[1])
