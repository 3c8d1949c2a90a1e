"""What clients, shops and the MCP registry read: manifest.json and server.json.

The rules are those of the published schemas, as facts: nothing is fetched.
"""

import json
import re
import struct
from typing import Any

import pytest
from fakes.distribution import ROOT

from watchkeeper.server.generate import listings
from watchkeeper.server.settings import all_settings
from watchkeeper.server.settings_sources import load
from watchkeeper.server.tools import ALL_TOOLS

PROJECT = listings.described(ROOT)


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / name).read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return read("manifest.json")


@pytest.fixture(scope="module")
def server() -> dict[str, Any]:
    return read("server.json")


def test_the_form_of_the_bundle_asks_for_settings_that_exist_and_what_it_begins_with_is_accepted(
    manifest: dict[str, Any],
) -> None:
    fields, given = manifest["user_config"], manifest["server"]["mcp_config"]["env"]
    assert set(given.values()) == {f"${{user_config.{name}}}" for name in fields}
    environment = {}
    for variable, value in given.items():
        field = fields[value.removeprefix("${user_config.").removesuffix("}")]
        assert field["type"] in {"string", "boolean", "file", "directory"} and field["title"] and field["description"]
        default = field["default"]
        environment[variable] = str(default).lower() if isinstance(default, bool) else default
    settings = load({}, environment).settings
    unset = load({}, {}).settings
    assert settings.browser.executable is None and settings.browser.cdp_url is None
    assert settings.browser.user_data_dir is None and settings.browser.allowed_hosts == ()
    assert settings.browser.dialog_policy == unset.browser.dialog_policy


def test_what_the_form_keeps_secret_is_what_the_settings_keep_secret(
    manifest: dict[str, Any], server: dict[str, Any]
) -> None:
    secret = {setting.variable for setting in all_settings() if setting.secret}
    fields, given = manifest["user_config"], manifest["server"]["mcp_config"]["env"]
    for variable, value in given.items():
        field = fields[value.removeprefix("${user_config.").removesuffix("}")]
        assert field.get("sensitive", False) == (variable in secret)
    for variable in server["packages"][0]["environmentVariables"]:
        assert variable.get("isSecret", False) == (variable["name"] in secret)


def test_the_bundle_promises_the_tools_that_are_offered_by_default(manifest: dict[str, Any]) -> None:
    chosen = next(setting.default for setting in all_settings() if setting.name == "server.toolsets")
    assert [tool["name"] for tool in manifest["tools"]] == [s.name for s in ALL_TOOLS if s.toolset in chosen]


def test_the_bundle_has_what_its_manifest_names(manifest: dict[str, Any]) -> None:
    ignored = [line.rstrip("/") for line in (ROOT / ".mcpbignore").read_text("utf-8").splitlines() if "#" not in line]
    # README.md and LICENSE are named in pyproject.toml, from which the client installs the bundle.
    for name in ("pyproject.toml", "README.md", "LICENSE", manifest["icon"], manifest["server"]["entry_point"]):
        assert (ROOT / name).is_file(), name
        assert not [one for one in ignored if name == one or name.startswith(f"{one}/")], name


def test_the_icon_is_a_small_square_picture(manifest: dict[str, Any]) -> None:
    picture = (ROOT / manifest["icon"]).read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) < 50_000
    width, height = struct.unpack(">II", picture[16:24])
    assert f"{width}x{height}" == manifest["icons"][0]["size"] == listings.ICON_SIZE


def test_the_registry_would_take_the_entry(server: dict[str, Any]) -> None:
    """Schema of 2025-12-11, and what the registry checks beyond it."""
    assert set(server) <= {
        "$schema", "name", "title", "description", "version", "websiteUrl", "repository", "icons", "packages"
    }  # fmt: skip
    assert 3 <= len(server["name"]) <= 200
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["title"]) <= 100 and 1 <= len(server["description"]) <= 100
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", server["repository"]["url"])
    (icon,) = server["icons"]
    assert icon["src"].startswith("https://") and len(icon["src"]) <= 255 and icon["mimeType"] == "image/png"
    (package,) = server["packages"]
    assert (package["registryType"], package["registryBaseUrl"]) == ("pypi", "https://pypi.org")
    assert package["runtimeHint"] == "uvx" and package["transport"] == {"type": "stdio"}
    for version in (server["version"], package["version"]):
        # One version, not a range, and not "latest".
        assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version) and version == PROJECT["version"]


def test_every_variable_of_the_entry_is_a_setting_and_its_default_is_accepted(server: dict[str, Any]) -> None:
    variables = server["packages"][0]["environmentVariables"]
    assert {variable["name"] for variable in variables} <= {setting.variable for setting in all_settings()}
    for variable in variables:
        assert variable["format"] in {"string", "number", "boolean", "filepath"} and variable["description"]
    load({}, {variable["name"]: variable["default"] for variable in variables if "default" in variable})


def test_the_registrys_name_is_the_one_that_the_readme_and_the_image_confess(server: dict[str, Any]) -> None:
    """So the registry sees that the package's owner and the entry's are the same."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"mcp-name:\s*(\S+)", readme) == [server["name"]]
    label = f'io.modelcontextprotocol.server.name="{server["name"]}"'
    assert label in (ROOT / "Dockerfile").read_text("utf-8")
