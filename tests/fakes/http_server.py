"""The server as a process that listens on a free port."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fakes.raw_client import COMMAND, clean

GUARD_S = 60.0
ALICE, BOB = "alice-has-this-token", "bob-has-another-one"


class Server:
    """The process; ``url`` is where it says that it listens."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url


@asynccontextmanager
async def serving(*arguments: str, **environment: str) -> AsyncIterator[Server]:
    command = [*COMMAND, "serve", "--transport", "http", "--port", "0", *arguments]
    process = await anyio.to_thread.run_sync(
        lambda: subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**clean(), **environment})
    )
    try:
        assert process.stderr is not None
        with anyio.fail_after(GUARD_S):
            line = await anyio.to_thread.run_sync(process.stderr.readline, abandon_on_cancel=True)
        assert "listening on http://" in line, line
        yield Server(process, line.split("listening on ")[1].split("/mcp")[0])
    finally:
        process.kill()
        process.communicate()
