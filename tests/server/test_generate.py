"""Files made from declarations: up to date, and what they promise is so."""

import json
from pathlib import Path

import pytest

from watchkeeper.context import tokenizer_for
from watchkeeper.server.generate import documents as generate
from watchkeeper.server.settings import all_settings
from watchkeeper.server.tools import ALL_TOOLS

DEFAULT_SET_TOKENS = 2_000


def test_generated_files_are_up_to_date() -> None:
    assert generate.main(["--check"]) == 0


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(generate, "tools_page", lambda: "something else")
    assert generate.main(["--check"], said.append) == 1
    assert said == ["docs/tools.md is not as it would be generated; run make generate.\n"]


DEFAULT_SETS = next(setting.default for setting in all_settings() if setting.name == "server.toolsets")


def test_the_tools_of_the_default_set_are_cheap() -> None:
    count = tokenizer_for("gpt-4").count
    cost = sum(
        count(
            json.dumps(
                {"name": spec.name, "description": spec.description, "inputSchema": spec.input_schema},
                separators=(",", ":"),
                ensure_ascii=False,
            )
        )
        for spec in ALL_TOOLS
        if spec.toolset in DEFAULT_SETS
    )
    assert cost <= DEFAULT_SET_TOKENS


def test_every_tool_has_what_clients_show_and_every_setting_is_documented() -> None:
    names = [spec.name for spec in ALL_TOOLS]
    assert len(names) == len(set(names))
    for spec in ALL_TOOLS:
        assert spec.title and spec.description.endswith("."), spec.name
        assert set(spec.required) <= set(spec.properties), spec.name
        assert spec.output.get("type") == "object", spec.name
    page = (Path(generate.ROOT) / "docs" / "settings.md").read_text("utf-8")
    assert all(f"`{setting.name}`" in page for setting in all_settings())
