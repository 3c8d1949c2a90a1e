"""Files that are made from the declarations of tools and settings.

    python -m watchkeeper.server.generate           write them
    python -m watchkeeper.server.generate --check   fail where one is not as it would be written

Rules: run in the repository. A file that people write too has its generated part between two marks; everything else in
it is left alone.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ..commands.install.clients import client_notes, clients_table
from ..settings import Settings, all_settings, shown
from ..tools import ALL_TOOLS
from ..tools.spec import Json, ToolSpec
from . import boot_snapshot, error_codes, listings, protocol_tables

ROOT = Path(__file__).resolve().parents[4]
BEGIN, END = "<!-- generated: {} -->", "<!-- end of generated: {} -->"


def files(root: Path = ROOT) -> dict[Path, str]:
    """Each generated file and what belongs in it."""
    project = listings.described(root)
    return {
        root / "server" / "watchkeeper" / "server" / "startup" / "boot_snapshot.json": boot_snapshot.build(),
        root / "manifest.json": _json(listings.bundle(project)),
        root / "server.json": _json(listings.registry(project)),
        root / "docs" / "settings.md": settings_page(),
        root / "docs" / "tools.md": tools_page(),
        root / "docs" / "clients.md": _between(
            root / "docs" / "clients.md", {"clients": clients_table(), "client notes": client_notes()}
        ),
        root / "docs" / "protocol.md": _between(root / "docs" / "protocol.md", protocol_tables.tables()),
        root / "docs" / "troubleshooting.md": _between(
            root / "docs" / "troubleshooting.md", {"error codes": error_codes.table()}
        ),
        root / "README.md": _between(root / "README.md", {"tools": tools_table()}),
    }


def _json(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def tools_table() -> str:
    rows = ["| tool | what for |", "|---|---|"]
    for spec in ALL_TOOLS:
        chosen = "" if _by_default(spec) else f" *With the toolset `{spec.toolset}`.*"
        rows.append(f"| `{spec.name}` | {spec.description}{chosen} |")
    return "\n".join(rows)


def _by_default(spec: ToolSpec) -> bool:
    return spec.toolset in Settings().server.toolsets


def tools_page() -> str:
    parts = [
        "# Tools",
        _note(),
        "Arguments in **bold** are required. Times are seconds. `task_id` names whose browser a call is for; it is "
        "`default` where it is left out.",
    ]
    for spec in ALL_TOOLS:
        parts += [f"## {spec.name}", f"*{spec.title}.* {spec.description}", _hints(spec), _arguments(spec)]
    return "\n\n".join(parts) + "\n"


def _hints(spec: ToolSpec) -> str:
    hints = spec.annotations
    said = (
        ["reads only"]
        if hints.read_only
        else ["may change or destroy things" if hints.destructive else "changes things"]
    )
    said += ["calling it again changes nothing more"] if hints.idempotent and not hints.read_only else []
    said += [] if hints.open_world else ["reaches nothing outside"]
    needs = f" Offered where the backend can do {', '.join(sorted(spec.needs))}." if spec.needs else ""
    return f"Hints: {', '.join(said)}. Toolset `{spec.toolset}`.{needs}"


def _arguments(spec: ToolSpec) -> str:
    rows = ["| argument | expects | |", "|---|---|---|"]
    for name, schema in spec.properties.items():
        shown_name = f"**`{name}`**" if name in spec.required else f"`{name}`"
        rows.append(f"| {shown_name} | {_expects(schema)} | {schema.get('description', '')} |")
    return "\n".join(rows)


def _expects(schema: Json) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "anything")
    low, high = schema.get("minimum"), schema.get("maximum")
    return f"{kind}, {low:,} to {high:,}" if low is not None and high is not None else str(kind)


def settings_page() -> str:
    parts = [
        "# Settings",
        _note(),
        "The command line wins over the environment, the environment over the file, the file over the default. Each "
        "setting below is an option (`--browser.headless true`), a variable (`WATCHKEEPER_BROWSER__HEADLESS=true`) and "
        "a key of the YAML file that `--config` or `WATCHKEEPER_CONFIG` names:",
        '```yaml\nbrowser:\n  headless: true\n  allowed_hosts: [example.com, "*.example.com"]\n```',
        "`watchkeeper config` prints what is set, and by whom. Unknown names are errors. Lists can be written with "
        "commas, mappings as JSON, or key by key (`WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE=…`).",
    ]
    section = ""
    for setting in all_settings():
        head, _, _ = setting.name.rpartition(".")
        if head != section:
            section = head
            parts.append(f"## {head}\n\n| setting | default | expects | |\n|---|---|---|---|")
        secret = " Never shown." if setting.secret else ""
        default = "" if setting.default in (None, (), {}) else f"`{shown(setting.default)}`"
        parts[-1] += f"\n| `{setting.name}` | {default} | {setting.expects} | {setting.help}{secret} |"
    return "\n\n".join(parts) + "\n"


def _note() -> str:
    return "<!-- Made by `make generate` from the declarations in server/; edit those. -->"


def _between(path: Path, parts: Mapping[str, str]) -> str:
    """The file with its generated parts as they should be."""
    text = path.read_text("utf-8")
    for name, part in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise SystemExit(f"{path.name} needs the lines {begin} and {end}, once each, in this order.")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"
    return text


def main(arguments: list[str], say: Callable[[str], object] = sys.stdout.write) -> int:
    """The exit status: 1 where ``--check`` found a difference."""
    different = [path for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in different:
        if "--check" in arguments:
            say(f"{path.relative_to(ROOT)} is not as it would be generated; run make generate.\n")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files()[path], "utf-8")
            say(f"{path.relative_to(ROOT)} written.\n")
    return int(bool(different) and "--check" in arguments)
