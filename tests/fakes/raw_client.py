"""A JSON-RPC client over stdio that writes lines and reads lines, and a server process for it."""

import json
import os
import subprocess
import sys
from typing import Any

import anyio

GUARD_S = 60.0
COMMAND = [sys.executable, "-m", "watchkeeper.server"]


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WATCHKEEPER_")}


NEWS = {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}
NEWS.add("notifications/resources/updated")


class Raw:
    """A client that writes lines and reads lines."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env={**clean(), **environment}
        )

    def write(self, *lines: object) -> None:
        assert self.process.stdin is not None
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    async def read(self) -> dict[str, Any]:
        """The next message, but for news of lists and resources, which may come at any time."""
        while (message := await self.message()).get("method", "") in NEWS:
            pass
        return message

    async def message(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        with anyio.fail_after(GUARD_S):
            line = await anyio.to_thread.run_sync(self.process.stdout.readline, abandon_on_cancel=True)
        assert line, "the server closed its output"
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def open(self, version: str = "2025-11-25") -> dict[str, Any]:
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.write({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
        answer = await self.read()
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, number: int, tool: str, **arguments: object) -> None:
        params = {"name": tool, "arguments": arguments}
        self.write({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    async def ended(self) -> tuple[int, bytes, bytes]:
        """Status, and what was left in stdout and stderr."""
        with anyio.fail_after(GUARD_S):
            out, err = await anyio.to_thread.run_sync(self.process.communicate, abandon_on_cancel=True)
        return self.process.returncode, out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
