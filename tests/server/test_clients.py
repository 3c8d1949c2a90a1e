"""Which form of a result a client gets."""

import pytest

from watchkeeper.server.dispatch import Reply
from watchkeeper.server.protocol.app import listed, result
from watchkeeper.server.protocol.clients import form
from watchkeeper.server.tools import ALL_TOOLS


@pytest.mark.parametrize(
    "name",
    [
        "claude-ai",
        "claude-code",
        "cursor-vscode",
        "Visual Studio Code",
        "Visual Studio Code - Insiders",
        "Visual-Studio-Code",
        "codex-mcp-client",
        "Codex",
        "gemini-cli-mcp-client",
        "gemini-cli-mcp-client-watchkeeper",
        "Cline",
        "Roo Code",
        "Roo-Code",
        "goose",
        "Zed",
        "@librechat/api-client",
        "JetBrains-IU/copilot-intellij",
    ],
)
def test_clients_that_put_a_model_behind_it_get_text(name: str) -> None:
    assert form("auto", name) == "text"


@pytest.mark.parametrize("name", [None, "", "mcp", "inspector-client", "my-agent", "codexify", "gooseberry", "zedd"])
def test_everybody_else_gets_both_forms(name: str | None) -> None:
    assert form("auto", name) == "both"


def test_the_setting_wins() -> None:
    assert [form(choice, "claude-code") for choice in ("text", "structured", "both")] == ["text", "structured", "both"]  # type: ignore[arg-type]


def test_each_form_alone_suffices_and_an_error_is_whole_in_its_text() -> None:
    fine = Reply("all of it", {"all": "of it"})
    assert result(fine, "text").structured_content is None
    assert "all of it" not in str(result(fine, "structured").content)
    assert result(fine, "structured").structured_content == {"all": "of it"}
    failed = Reply("Error (x): what\nWhat to do: that", {"error": {}}, is_error=True)
    for choice in ("text", "structured", "both"):
        assert "What to do: that" in str(result(failed, choice).content)  # type: ignore[arg-type]


def test_output_schemas_are_listed_only_to_those_who_get_structured_content() -> None:
    assert listed(ALL_TOOLS[0], "text").output_schema is None
    assert listed(ALL_TOOLS[0], "both").output_schema is not None
