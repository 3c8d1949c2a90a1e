"""Which form of a result reaches a client's model.

Rules: clients that are known to put a model behind the connection get text only, and no output schemas: all of them
pass text on, and it is paid for once. Everybody else (SDKs, the Inspector, programs) gets both forms. The name is what
the client calls itself, in ``initialize`` or in each request's ``_meta``; spaces and capitals vary between versions.
A client whose revision of the protocol has no structured results gets text, whatever is set: it would see nothing.
"""

from typing import TYPE_CHECKING, Literal

from .revisions import STRUCTURED

if TYPE_CHECKING:
    from ..settings import Results

Form = Literal["text", "structured", "both"]

# The names that clients give as clientInfo.name, as two public registries list them (github.com/apify/
# mcp-client-capabilities, github.com/TianqiZhang/mcp-client-registry) and, where another source is named, as it shows.
WITH_MODEL = (
    "amp-mcp-client",
    "antigravity-client",
    "chatgpt",
    "cherry-studio",
    "claude-ai",  # Claude Desktop
    "claude-code",
    "cline",
    "codex",  # also codex-mcp-client
    "continue",  # continue-client, continue-cli-client
    "crush",
    "cursor",  # cursor-vscode
    "factory-cli",
    "gemini-cli",  # gemini-cli-mcp-client, with the server's name behind it in newer versions
    "github-copilot",
    "goose",
    "jetbrains",  # JetBrains-IU/copilot-intellij, jetbrains-ai-assistant-client
    "kilo-code",
    "@librechat/api-client",
    "opencode",
    "q-dev-cli",
    "roo-code",
    "visual-studio-code",  # also with " - Insiders"
    "warp",
    "windsurf",
    "xcode-copilot",
    "zed",
)


def form(setting: "Results", client: str | None, revision: str = STRUCTURED) -> Form:
    """The form for a client of this name that speaks this revision; ``setting`` is ``server.results``."""
    if revision < STRUCTURED:
        return "text"
    if setting != "auto":
        return setting
    name = (client or "").casefold().replace(" ", "-").replace("_", "-")
    known = any(name == known or name.startswith((f"{known}-", f"{known}/")) for known in WITH_MODEL)
    return "text" if known else "both"
