"""A Chromium that somebody else runs: on a port, with a profile of its own, known to nobody here."""

import asyncio
import os
import signal
from pathlib import Path

from watchkeeper.supervisor import find_browser

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--site-per-process",
)
START_S = 30.0


class ForeignChromium:
    """Made by ``start``; ``url`` is its CDP address."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    @classmethod
    async def start(cls, folder: Path) -> "ForeignChromium":
        executable = find_browser()
        assert executable is not None
        process = await asyncio.create_subprocess_exec(
            str(executable),
            *FLAGS,
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            f"--user-data-dir={folder}",
            "--remote-debugging-port=0",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        told = folder / "DevToolsActivePort"
        async with asyncio.timeout(START_S):
            while not (told.exists() and told.read_text().strip()):  # noqa: ASYNC110 - a file tells of no change
                await asyncio.sleep(0.05)
        return cls(process, f"http://127.0.0.1:{told.read_text().split()[0]}")

    async def end(self) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            await asyncio.wait_for(self.process.wait(), START_S)
