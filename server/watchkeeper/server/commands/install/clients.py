"""The clients that ``install`` knows: where each keeps its entries, in what form, and what is to be known of it.

Rules: a client is one row here; the table in docs/clients.md, ``--list`` and doctor are made from it. Places are
patterns: ``{home}``, ``{config}`` ($XDG_CONFIG_HOME or ~/.config), ``{roaming}`` (%APPDATA%), ``{local}``
(%LOCALAPPDATA%), ``{claude}`` ($CLAUDE_CONFIG_DIR or ~/.claude) and ``{claude_json}``. A ``*`` stands for the one
folder of that name that is there; a place with one is passed over where there is none.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ...errors import ToolError

Scope = Literal["user", "project"]
SYSTEMS = {"darwin": "macOS", "win32": "Windows", "linux": "Linux"}


@dataclass(frozen=True, slots=True)
class Client:
    """A program that starts MCP servers.

    ``user``: by system, the places of its file, the first that applies. ``project``: its file in a project's folder.
    ``key``: where entries stand in it. ``form``: what an entry has before ``command``. ``comments``: whether the client
    reads JSON with comments. ``locked``: whether it holds ``<file>.lock`` while it writes. ``hooks``: by
    scope, the file of its hooks. ``then``: what a person has to do afterwards. ``source``: where this is documented.
    """

    name: str
    title: str
    user: Mapping[str, tuple[str, ...]]
    then: str
    source: str
    project: str | None = None
    key: tuple[str, ...] = ("mcpServers",)
    form: Mapping[str, str] = field(default_factory=dict)
    comments: bool = False
    locked: bool = False
    hooks: Mapping[Scope, str] = field(default_factory=dict)
    note: str = ""

    def scopes(self) -> tuple[Scope, ...]:
        return ("user", "project") if self.project else ("user",)


def _everywhere(place: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(SYSTEMS, (place,))


def _code(folder: str) -> dict[str, tuple[str, ...]]:
    return {
        "darwin": (f"{{home}}/Library/Application Support/{folder}/User/mcp.json",),
        "win32": (f"{{roaming}}/{folder}/User/mcp.json",),
        "linux": (f"{{config}}/{folder}/User/mcp.json",),
    }


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-desktop",
        "Claude Desktop",
        {
            "darwin": ("{home}/Library/Application Support/Claude/claude_desktop_config.json",),
            # The packaged form (Store, and the installer since 2026) reads its own copy of %APPDATA% only.
            "win32": (
                "{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
                "{roaming}/Claude/claude_desktop_config.json",
            ),
            "linux": ("{config}/Claude/claude_desktop_config.json",),
        },
        then="Quit Claude Desktop and start it again.",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        note="Its `PATH` is short, so that a command without a path is not found. On Windows, the packaged form reads "
        "a copy of its own, which install finds.",
    ),
    Client(
        "claude-code",
        "Claude Code",
        _everywhere("{claude_json}"),
        project=".mcp.json",
        form={"type": "stdio"},
        locked=True,
        hooks={"user": "{claude}/settings.json", "project": ".claude/settings.local.json"},
        then="Start a new session; /mcp shows it.",
        source="https://code.claude.com/docs/en/mcp",
        note="It asks before it uses the servers of a project. The file of the user is also its memory, which it "
        "writes while it runs: install holds Claude Code's own lock for that moment. `$CLAUDE_CONFIG_DIR` moves it.",
    ),
    Client(
        "cursor",
        "Cursor",
        _everywhere("{home}/.cursor/mcp.json"),
        project=".cursor/mcp.json",
        then="Switch it on under Settings, MCP, if it is not.",
        source="https://cursor.com/docs/mcp",
    ),
    Client(
        "vscode",
        "VS Code",
        _code("Code"),
        project=".vscode/mcp.json",
        key=("servers",),
        form={"type": "stdio"},
        comments=True,
        then="Run the command MCP: List Servers, and start it.",
        source="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        note="Comments in the file stay. A profile other than the default has a file of its own: the command MCP: Open "
        "User Configuration shows it, `--file` names it.",
    ),
    Client(
        "vscode-insiders",
        "VS Code Insiders",
        _code("Code - Insiders"),
        project=".vscode/mcp.json",
        key=("servers",),
        form={"type": "stdio"},
        comments=True,
        then="Run the command MCP: List Servers, and start it.",
        source="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    ),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What places depend on."""

    system: str
    home: Path
    environment: Mapping[str, str]
    current: Path

    @classmethod
    def here(cls) -> "Machine":
        system = sys.platform if sys.platform in SYSTEMS else "linux"
        return cls(system, Path.home(), os.environ, Path.cwd())

    def place(self, pattern: str) -> Path:
        """The path that a pattern stands for here; one within a project is below the current folder."""
        home, environment = self.home, self.environment
        claude = environment.get("CLAUDE_CONFIG_DIR")
        named = {
            "home": home,
            "config": environment.get("XDG_CONFIG_HOME") or home / ".config",
            "roaming": environment.get("APPDATA") or home / "AppData" / "Roaming",
            "local": environment.get("LOCALAPPDATA") or home / "AppData" / "Local",
            "claude": claude or home / ".claude",
            "claude_json": Path(claude or home) / ".claude.json",
        }
        return self.current / pattern.format(**named)


def client_named(name: str) -> Client:
    return next(client for client in CLIENTS if client.name == name)


def location(client: Client, scope: Scope, machine: Machine) -> Path:
    """The client's file, whether it is there or not. Raises ToolError where it is not known."""
    if scope == "project":
        if client.project is None:
            raise ToolError(
                "no_such_scope", f"{client.title} has no entries for a single project.", "Leave --scope out."
            )
        return machine.current / client.project
    *packaged, plain = client.user[machine.system]
    for pattern in packaged:
        found = _matching(machine.place(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            raise ToolError(
                "ambiguous",
                f"{client.title} is installed more than once: {', '.join(map(str, found))}.",
                "Name the file with --file.",
            )
    return machine.place(plain)


def _matching(place: Path) -> list[Path]:
    """The places below the folders that the ``*`` stands for; those with a file, if there are any."""
    parts = place.parts
    star = next(n for n, part in enumerate(parts) if "*" in part)
    folders = sorted(folder for folder in Path(*parts[:star]).glob(parts[star]) if folder.is_dir())
    places = [folder.joinpath(*parts[star + 1 :]) for folder in folders]
    return [one for one in places if one.is_file()] or places


def hooks_file(client: Client, scope: Scope, machine: Machine) -> Path:
    """The file of the client's hooks; only for clients that have some."""
    return machine.place(client.hooks[scope])


def clients_table() -> str:
    """For the documentation."""
    rows = ["| client | `--scope user` | `--scope project` | entries under |", "|---|---|---|---|"]
    for client in CLIENTS:
        places = sorted({(place, _systems(client, place)) for one in client.user.values() for place in one})
        user = "<br>".join(f"{where}: `{_plain(place)}`" if where else f"`{_plain(place)}`" for place, where in places)
        project = f"`{client.project}`" if client.project else "–"
        rows.append(f"| {client.title} (`{client.name}`) | {user} | {project} | `{'.'.join(client.key)}` |")
    return "\n".join(rows)


def client_notes() -> str:
    """For the documentation: what is to be done afterwards, and what is to be known."""
    said = [
        f"- **{one.title}.** {one.then} {one.note}".rstrip() + f" ([its documentation]({one.source}))"
        for one in CLIENTS
    ]
    return "\n".join(said)


def _systems(client: Client, place: str) -> str:
    on = [SYSTEMS[system] for system, places in client.user.items() if place in places]
    packaged = " (packaged)" if "*" in place else ""
    return "" if len(on) == len(SYSTEMS) else ", ".join(on) + packaged


def _plain(pattern: str) -> str:
    return pattern.format(
        home="~",
        config="~/.config",
        roaming="%APPDATA%",
        local="%LOCALAPPDATA%",
        claude="~/.claude",
        claude_json="~/.claude.json",
    )
