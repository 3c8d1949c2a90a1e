"""Validate the manifest, pack what is committed, unpack it, and serve it as the manifest says."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[2]
LIMIT_S = 300


def run(*command: str) -> bytes:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout.decode()}\n{done.stderr.decode()}")
    return done.stdout


async def serve(folder: Path) -> list[str]:
    """The tools of the unpacked bundle, started as its manifest says, with every setting at its default."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    start = manifest["server"]["mcp_config"]
    defaults = {f"${{user_config.{name}}}": str(asked["default"]) for name, asked in manifest["user_config"].items()}
    places = {"${__dirname}": str(folder), "${DOCUMENTS}": str(folder)}

    def filled(text: str) -> str:
        for name, value in (*defaults.items(), *places.items()):
            text = text.replace(name, value)
        return text

    server = StdioServerParameters(
        command=start["command"],
        args=[filled(argument) for argument in start["args"]],
        env={**os.environ, **{name: filled(value) for name, value in start["env"].items()}},
    )
    with anyio.fail_after(LIMIT_S):
        async with Client(server, read_timeout_seconds=LIMIT_S) as client:
            return [tool.name for tool in (await client.list_tools()).tools]


def main(mcpb: str, output: str) -> None:
    packed = (ROOT / output).resolve()
    packed.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        source, unpacked = Path(name, "source"), Path(name, "unpacked")
        with tarfile.open(fileobj=BytesIO(run("git", "archive", "HEAD"))) as committed:
            committed.extractall(source, filter="data")
        run(mcpb, "validate", str(source / "manifest.json"))
        run(mcpb, "pack", str(source), str(packed))
        run(mcpb, "unpack", str(packed), str(unpacked))
        offered = anyio.run(serve, unpacked)
        promised = [tool["name"] for tool in json.loads((unpacked / "manifest.json").read_text("utf-8"))["tools"]]
    if offered != promised:
        raise SystemExit(f"the bundle promises {promised} and offers {offered}")
    size = packed.stat().st_size >> 10
    sys.stdout.write(f"{output}: {size} KiB; validated, unpacked, served {len(offered)} tools\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
