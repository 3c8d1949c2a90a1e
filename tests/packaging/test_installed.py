"""The wheel, installed where no checkout is: its command, its server, its types."""

import sys
import tomllib
from pathlib import Path

import anyio
import pytest
from fakes.distribution import ROOT, run
from fakes.raw_client import GUARD_S, clean
from mcp import Client, StdioServerParameters

PAGE = "data:text/html,<title>Wheel</title><button onclick=\"alert('Hello')\">Press</button>"


def test_the_command_works_from_any_folder(installed: Path, tmp_path: Path) -> None:
    command = installed / "watchkeeper"
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert version in run(command, "version", cwd=tmp_path)
    assert "browser.cdp_url" in run(command, "config", cwd=tmp_path)
    engines = run(command, "engines", cwd=tmp_path)
    assert "compressor" in engines and "lcm" in engines
    imported = "import watchkeeper.{0} as part; print(part.__file__)"
    for part in ("context", "server", "supervisor"):
        assert str(ROOT) not in run(installed / "python", "-c", imported.format(part), cwd=tmp_path)


@pytest.mark.anyio
@pytest.mark.chrome
async def test_it_serves_over_stdio_and_sees_a_page(installed: Path, tmp_path: Path) -> None:
    server = StdioServerParameters(
        command=str(installed / "watchkeeper"),
        args=["--browser.headless", "true"],
        cwd=tmp_path,
        env=clean(),
    )
    with anyio.fail_after(GUARD_S):
        async with Client(server, read_timeout_seconds=GUARD_S) as client:
            assert "browser_dialog" in [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("browser_navigate", {"url": PAGE})
            seen = await client.call_tool("browser_snapshot", {})
            assert not seen.is_error and 'button "Press"' in str(seen.content)
            messages = [{"role": "user", "content": "Keep report-7731.csv."}]
            kept = await client.call_tool("compress_context", {"messages": messages})
            assert not kept.is_error and "report-7731.csv" in str(kept.structured_content)


def test_a_strict_type_checker_sees_its_types(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "uses.py").write_text(
        "from watchkeeper.context import compress_messages\n"
        "from watchkeeper.supervisor import LocalEndpoint, Supervisor, SupervisorRegistry\n"
        "async def use(registry: SupervisorRegistry) -> Supervisor:\n"
        "    return await registry.get_or_start('task', LocalEndpoint(headless=True))\n"
        "async def misuse(supervisor: Supervisor) -> int:\n"
        "    return (await supervisor.answer_dialog('accept')).note  # type: ignore[return-value]\n"
        "result = compress_messages([])\n"
        "reveal_type(result)\n",
        "utf-8",
    )
    checked = run(
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--python-executable",
        installed / "python",
        "uses.py",
        cwd=tmp_path,
    )
    assert 'Revealed type is "watchkeeper.context.api.CompressionResult"' in checked
    assert "Success: no issues found in 1 source file" in checked
