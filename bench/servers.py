"""The servers that are compared: how each is found, started and called.

Rules: a server that is not installed is left out, and said so; nothing is downloaded. All drive the same browser with
the same flags through one small script. What a model does by reading (find a ref in a snapshot) is done by pattern.
"""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any]]
FLAGS = (
    "--disable-background-networking --disable-component-update --disable-sync --disable-quic --disable-gpu "
    "--no-first-run --no-default-browser-check"
)


def browser_script(folder: Path, browser: Path) -> Path:
    """A script that starts the browser as all servers are to start it; without its sandbox where root asks."""
    sandbox = "--no-sandbox " if os.geteuid() == 0 else ""
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(browser))} {sandbox}{FLAGS} "$@"\n')
    script.chmod(0o755)
    return script


@dataclass(frozen=True)
class Kind:
    """How a server is called. ``ref`` finds a labelled button in its snapshot; where a server lacks a tool, the entry
    is None.

    Attributes:
        program: the name of its executable, and ``package`` of its npm package.
        start: the command, from the executable's path and the browser's.
        environment: further variables, from the browser's path and an empty folder.
        in_frame: the calls that run JavaScript in the only iframe, from the snapshot and the script; the last one's
            result counts.
        status: the call that tells of open dialogs, where the snapshot does not.
        recovered: a call as its server wants it after it has lost its browser; it may ask before.
    """

    name: str
    program: str
    package: str
    start: Callable[[str, str], list[str]]
    navigate: Callable[[str], Call]
    snapshot: Call | None
    click: Callable[[str], Call]
    evaluate: Callable[[str], Call] | None
    answer: Callable[[bool, str | None], Call] | None
    ref: Callable[[str, str], str | None]
    in_frame: Callable[[str, str], list[Call]] | None = None
    status: Call | None = None
    recovered: Callable[[Callable[[Call], str], Call], Call] = lambda ask, call: call
    environment: Callable[[str, Path], Mapping[str, str]] = lambda browser, folder: {}

    def look(self) -> Call:
        """How an agent looks at what is there."""
        if self.status is not None:
            return self.status
        if self.snapshot is not None:
            return self.snapshot
        assert self.evaluate is not None
        return self.evaluate("document.body.innerText")


@dataclass(frozen=True)
class Installed:
    """A server on this machine."""

    kind: Kind
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kind.name


def _with(pattern: str) -> Callable[[str, str], str | None]:
    """Finds a ref: ``LABEL`` in the pattern stands for the label."""

    def ref(snapshot: str, label: str) -> str | None:
        found = re.search(pattern.replace("LABEL", re.escape(label)), snapshot)
        return found and found[1]

    return ref


def _ours_in_frame(snapshot: str, script: str) -> list[Call]:
    found = re.search(r"\b(f\d+)\b[^\n]*/inner", snapshot) or re.search(r"/inner[^\n]*\b(f\d+)\b", snapshot)
    return [("browser_evaluate", {"expression": script, "frame_id": found[1]})] if found else []


def _playwright_in_frame(snapshot: str, script: str) -> list[Call]:
    ref = _with(r'button "LABEL"[^\n]*?\[ref=(\w+)\]')(snapshot, "Within")
    arguments = {"element": "button", "target": ref or "", "function": f"() => {script}"}
    return [("browser_evaluate", arguments)]


def _devtools_in_frame(snapshot: str, script: str) -> list[Call]:
    ref = _with(r'uid=(\w+) button "LABEL"')(snapshot, "Within")
    return [("evaluate_script", {"pageId": 1, "function": f"(el) => {script}", "args": [ref or ""]})]


def _devtools_recovered(ask: Callable[[Call], str], call: Call) -> Call:
    """Its pages have other numbers then, and it says how to learn them."""
    found = re.search(r"^(\d+):", ask(("list_pages", {})), re.MULTILINE)
    return (call[0], call[1] | {"pageId": int(found[1])}) if found and "pageId" in call[1] else call


def _index(snapshot: str, label: str) -> str | None:
    try:
        elements = json.loads(snapshot).get("interactive_elements", [])
    except ValueError:
        return None
    return next((str(one["index"]) for one in elements if label in one.get("text", "")), None)


def _browser_use(browser: str, folder: Path) -> dict[str, str]:
    profile = {"id": "p", "default": True, "created_at": "2026-01-01T00:00:00", "headless": True, "user_data_dir": None}
    profile |= {"executable_path": browser, "chromium_sandbox": False, "enable_default_extensions": False}
    config = folder / "browser-use.json"
    config.write_text(json.dumps({"browser_profile": {"p": profile}, "llm": {}, "agent": {}}))
    return {"BROWSER_USE_CONFIG_PATH": str(config), "BROWSER_USE_HEADLESS": "true", "ANONYMIZED_TELEMETRY": "false"}


OURS = Kind(
    name="watchkeeper",
    program="",
    package="",
    start=lambda program, browser: [
        *(shlex.split(program) or [sys.executable, "-m", "watchkeeper.server"]),
        *("--headless", "true", "--executable", browser),
    ],
    navigate=lambda url: ("browser_navigate", {"url": url}),
    snapshot=("browser_snapshot", {}),
    click=lambda ref: ("browser_click", {"ref": ref}),
    evaluate=lambda script: ("browser_evaluate", {"expression": script}),
    answer=lambda accept, text: (
        "browser_dialog",
        {"action": "accept" if accept else "dismiss"} | ({} if text is None else {"prompt_text": text}),
    ),
    ref=_with(r'(\S+) button "LABEL"'),
    in_frame=_ours_in_frame,
)
PEERS: tuple[Kind, ...] = (
    Kind(
        name="@playwright/mcp",
        program="playwright-mcp",
        package="@playwright/mcp",
        start=lambda program, browser: (
            [program, "--executable-path", browser, "--headless", "--isolated"]
            + (["--no-sandbox"] if os.geteuid() == 0 else [])
        ),
        navigate=lambda url: ("browser_navigate", {"url": url}),
        snapshot=("browser_snapshot", {}),
        click=lambda ref: ("browser_click", {"element": "button", "target": ref}),
        evaluate=lambda script: ("browser_evaluate", {"function": f"() => {script}"}),
        answer=lambda accept, text: (
            "browser_handle_dialog",
            {"accept": accept} | ({} if text is None else {"promptText": text}),
        ),
        ref=_with(r'button "LABEL"[^\n]*?\[ref=(\w+)\]'),
        in_frame=_playwright_in_frame,
    ),
    Kind(
        name="chrome-devtools-mcp",
        program="chrome-devtools-mcp",
        package="chrome-devtools-mcp",
        start=lambda program, browser: [program, "--executablePath", browser, "--headless", "--isolated"],
        environment=lambda browser, folder: {"CI": "1"},
        navigate=lambda url: ("navigate_page", {"pageId": 1, "type": "url", "url": url}),
        snapshot=("take_snapshot", {"pageId": 1}),
        click=lambda ref: ("click", {"pageId": 1, "uid": ref}),
        evaluate=lambda script: ("evaluate_script", {"pageId": 1, "function": f"() => {script}"}),
        answer=lambda accept, text: (
            "handle_dialog",
            {"pageId": 1, "action": "accept" if accept else "dismiss"} | ({} if text is None else {"promptText": text}),
        ),
        ref=_with(r'uid=(\w+) button "LABEL"'),
        in_frame=_devtools_in_frame,
        recovered=_devtools_recovered,
    ),
    Kind(
        name="agent-browser",
        program="agent-browser",
        package="agent-browser",
        start=lambda program, browser: [program, "mcp", "--tools", "core,tabs"],
        environment=lambda browser, folder: {
            "AGENT_BROWSER_EXECUTABLE_PATH": browser,
            "AGENT_BROWSER_NO_VERSION_CHECK": "1",
            "AGENT_BROWSER_SOCKET_DIR": str(folder / "ab"),
        },
        navigate=lambda url: ("agent_browser_open", {"url": url}),
        snapshot=("agent_browser_snapshot", {}),
        click=lambda ref: ("agent_browser_click", {"selector": f"@{ref}"}),
        evaluate=lambda script: ("agent_browser_eval", {"script": script}),
        answer=lambda accept, text: (
            f"agent_browser_dialog_{'accept' if accept else 'dismiss'}",
            {} if text is None else {"text": text},
        ),
        status=("agent_browser_dialog_status", {}),
        ref=_with(r'"LABEL"[^\n]*?ref=(\w+)'),
        in_frame=lambda snapshot, script: [
            ("agent_browser_frame_switch", {"frame": "#inner"}),
            ("agent_browser_eval", {"script": script}),
        ],
    ),
    Kind(
        name="browser-use",
        program="browser-use",
        package="",
        # Its server is a module of the Python that its program stands beside.
        start=lambda program, browser: [str(Path(program).with_name("python")), "-m", "browser_use.mcp"],
        environment=_browser_use,
        navigate=lambda url: ("browser_navigate", {"url": url}),
        snapshot=("browser_get_state", {}),
        click=lambda ref: ("browser_click", {"index": int(ref)}),
        evaluate=None,
        answer=None,
        ref=_index,
    ),
    Kind(
        name="server-puppeteer",
        program="mcp-server-puppeteer",
        package="@modelcontextprotocol/server-puppeteer",
        start=lambda program, browser: [program],
        environment=lambda browser, folder: {
            "PUPPETEER_LAUNCH_OPTIONS": json.dumps({"headless": True, "executablePath": browser}),
            "ALLOW_DANGEROUS": "true",
        },
        navigate=lambda url: ("puppeteer_navigate", {"url": url}),
        snapshot=None,
        click=lambda ref: ("puppeteer_click", {"selector": ref}),
        evaluate=lambda script: ("puppeteer_evaluate", {"script": script}),
        answer=None,
        ref=lambda snapshot, label: "button",
    ),
)


def found(peers_dir: Path | None, browser: str, folder: Path, ours: str = "") -> tuple[list[Installed], list[str]]:
    """Watchkeeper and the peers on this machine, and the names of those that are not there."""
    servers, missing = [_installed(OURS, ours, browser, folder)], []
    for kind in PEERS:
        program = _program(kind, peers_dir)
        if program is None:
            missing.append(kind.name)
        else:
            servers.append(_installed(kind, program, browser, folder))
    return servers, missing


def ours_alone(browser: str, folder: Path, ours: str = "") -> list[Installed]:
    return [_installed(OURS, ours, browser, folder)]


def _installed(kind: Kind, program: str, browser: str, folder: Path) -> Installed:
    own = folder / kind.program
    own.mkdir(exist_ok=True)
    return Installed(kind, kind.start(program, browser), kind.environment(browser, own))


def _program(kind: Kind, peers_dir: Path | None) -> str | None:
    """Its executable: in the folder that was given, on PATH, or where npx would take it from without asking the net."""
    if peers_dir is not None:
        for inside in ("bin", "node_modules/.bin"):
            for depth in ("", "*/", "*/*/"):
                for path in sorted(peers_dir.glob(f"{depth}{inside}/{kind.program}")):
                    return _native(path.absolute())
        return None
    if on_path := shutil.which(kind.program):
        return _native(Path(on_path))
    if kind.package and (npx := shutil.which("npx")):
        command = [npx, "--no-install", "--package", kind.package, "-c", f"command -v {kind.program}"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None
        return _native(Path(told.stdout.strip())) if told.returncode == 0 and told.stdout.strip() else None
    return None


def _native(program: Path) -> str:
    """A binary for this machine that lies beside a script of the same name is what the script would start."""
    real = program.resolve()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    binary = real.with_name(f"{real.stem}-{platform.system().lower()}-{machine}")
    return str(binary if os.access(binary, os.X_OK) else program)


def version(server: Installed) -> str:
    """What its package says; empty where that is not known."""
    for folder in Path(server.command[0]).resolve().parents:
        about = folder / "package.json"
        if server.kind.package and about.is_file():
            told = json.loads(about.read_text())
            if told.get("name") == server.kind.package:
                return str(told.get("version", ""))
    return ""
