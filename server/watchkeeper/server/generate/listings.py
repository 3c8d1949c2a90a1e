"""What others are told of this server: the MCP bundle's ``manifest.json`` and the MCP registry's ``server.json``.

Rules: nothing is declared here that is declared elsewhere. Tools and settings come from their declarations; version,
licence and addresses from pyproject.toml. Here is only which settings are worth a question, and how they are called
where there is no room for a name such as ``browser.cdp_url``.

Sources: https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md (and its schema of version 0.4),
https://github.com/modelcontextprotocol/registry/tree/main/docs/reference/server-json
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from ..settings import Setting, Settings, all_settings, shown
from ..tools import ALL_TOOLS
from ..tools.spec import Json

SUMMARY = "A browser that an agent cannot lose sight of, and a context it can shrink without forgetting."
ABOUT = """\
Watchkeeper gives an agent a browser, and three promises:

- **It never hangs.** `alert`, `confirm`, `prompt` and `beforeunload` block a page; every result begins with the open \
dialogs and the call that answers them.
- **It is never blind.** Every tab and every iframe, also of other sites, is in the snapshot and takes commands.
- **It never forgets in silence.** Long conversations are compressed without a model or a network, with a report of \
what was kept.

It needs Chrome, Chromium, Edge or Brave on this computer; the first one found is started with a profile of its own, \
so your own sign-ins are not touched. The first start downloads Watchkeeper's dependencies."""
ICON = "assets/icon.png"
ICON_SIZE = "512x512"
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


@dataclass(frozen=True, slots=True)
class Question:
    """A setting that people are asked for. ``default``: what a form begins with where the setting's own is not set."""

    title: str
    picks: Literal["file", "directory"] | None = None
    default: str | bool = ""


QUESTIONS = {
    "browser.executable": Question("Browser", picks="file"),
    "browser.headless": Question("Without a window", default=False),
    "browser.user_data_dir": Question("Profile folder", picks="directory"),
    "browser.cdp_url": Question("Address of a running browser"),
    "browser.allowed_hosts": Question("Allowed hosts"),
    "browser.allow_private_network": Question("Local addresses", default=True),
    "server.allowed_dirs": Question("Folder for files", picks="directory", default="${DOCUMENTS}"),
}
"""In the order in which they are asked. A form's defaults are those that hold on a desktop when nothing is set."""


def asked() -> list[tuple[Setting, Question]]:
    settings = {setting.name: setting for setting in all_settings()}
    return [(settings[name], question) for name, question in QUESTIONS.items()]


def bundle(project: Json) -> Json:
    """``manifest.json`` of the bundle; ``project`` is that table of pyproject.toml."""
    urls = project["urls"]
    chosen = Settings().server.toolsets
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "Watchkeeper",
        "version": project["version"],
        "description": SUMMARY,
        "long_description": ABOUT,
        "author": {"name": project["authors"][0]["name"], "url": urls["Homepage"]},
        "repository": {"type": "git", "url": urls["Source"]},
        "homepage": urls["Homepage"],
        "documentation": urls["Documentation"],
        "support": urls["Issues"],
        "icon": ICON,
        "icons": [{"src": ICON, "size": ICON_SIZE}],
        "license": project["license"],
        "keywords": project["keywords"],
        "privacy_policies": [f"{urls['Source']}/blob/main/docs/privacy.md"],
        "server": {
            "type": "uv",
            "entry_point": "server/watchkeeper/server/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", project["name"]],
                "env": {setting.variable: f"${{user_config.{_key(setting)}}}" for setting, _ in asked()},
            },
        },
        "tools": [{"name": spec.name, "description": spec.description} for spec in ALL_TOOLS if spec.toolset in chosen],
        "tools_generated": True,  # an engine may bring tools of its own
        "user_config": {_key(setting): _field(setting, question) for setting, question in asked()},
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
    }


def _key(setting: Setting) -> str:
    return setting.name.replace(".", "_")


def _field(setting: Setting, question: Question) -> Json:
    """A field of the form. Its value is always given: an empty one is as if the setting were not set."""
    kind = "boolean" if isinstance(question.default, bool) else question.picks or "string"
    field: Json = {
        "type": kind,
        "title": question.title,
        "description": setting.help,
        "required": False,
        "default": question.default,
    }
    if setting.secret:
        field["sensitive"] = True
    return field


def registry(project: Json) -> Json:
    """``server.json`` for the MCP registry."""
    source = project["urls"]["Source"]
    files = source.replace("//github.com/", "//raw.githubusercontent.com/") + f"/v{project['version']}"
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": registry_name(source),
        "title": "Watchkeeper",
        "description": SUMMARY,
        "version": project["version"],
        "websiteUrl": project["urls"]["Homepage"],
        "repository": {"url": source, "source": "github"},
        "icons": [{"src": f"{files}/{ICON}", "mimeType": "image/png", "sizes": [ICON_SIZE]}],
        "packages": [
            {
                "registryType": "pypi",
                "registryBaseUrl": "https://pypi.org",
                "identifier": project["name"],
                "version": project["version"],
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [_variable(setting, question) for setting, question in asked()],
            }
        ],
    }


def registry_name(source: str) -> str:
    """The name that whoever owns the repository may use. https://modelcontextprotocol.io/registry/authentication"""
    return f"io.github.{urlsplit(source).path.strip('/')}"


def _variable(setting: Setting, question: Question) -> Json:
    kind: Any = "filepath" if question.picks else {bool: "boolean", int: "number", float: "number"}.get(setting.kind)
    variable: Json = {"name": setting.variable, "description": setting.help, "format": kind or "string"}
    if setting.default not in (None, (), {}):
        variable["default"] = shown(setting.default)
    if setting.choices and setting.kind is not tuple:
        variable["choices"] = list(setting.choices)
    if setting.secret:
        variable["isSecret"] = True
    return variable


def described(root: Path) -> Json:
    """The table ``project`` of the repository's pyproject.toml."""
    import tomllib

    table: Json = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return table
