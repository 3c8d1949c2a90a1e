"""The tables of docs/protocol.md, from the declarations of resources, prompts and questions, and from the SDK."""

from collections.abc import Mapping

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from ..protocol.prompts import PROMPTS, Prompt
from ..protocol.resources import RESOURCES, Part
from ..protocol.subscriptions import EVERY_S, MAX_RESOURCES, MAX_STREAMS
from ..questions import ASKED

WHEN: Mapping[Part, str] = {
    "snapshot": "when it loads, goes elsewhere or loses its frames; when tabs or dialogs come and go",
    "dialogs": "when one opens, is being answered or closes",
    "console": "when something is logged",
}


def tables() -> Mapping[str, str]:
    """By the name of their marks."""
    return {"revisions": _revisions(), "resources": _resources(), "prompts": _prompts(), "asked": _asked()}


def _revisions() -> str:
    rows = ["| revision | a connection begins with | changes are told | a person is asked |", "|---|---|---|---|"]
    rows += [
        f"| {version} | any request; there is no handshake | on `subscriptions/listen` streams (at most {MAX_STREAMS}) "
        "| by a result that asks for input, then another call |"
        for version in reversed(MODERN_PROTOCOL_VERSIONS)
    ]
    rows += [
        f"| {version} | `initialize` | to the connection | "
        + ("by `elicitation/create` |" if version >= "2025-06-18" else "not at all |")
        for version in reversed(HANDSHAKE_PROTOCOL_VERSIONS)
    ]
    return "\n".join(rows)


def _resources() -> str:
    rows = ["| address | form | what | told |", "|---|---|---|---|"]
    for resource in RESOURCES:
        every = EVERY_S[resource.part] if resource.part else None
        told = "never changes" if "archive" in resource.uri else "when a task begins or ends"
        if resource.part and every is not None:
            told = f"{WHEN[resource.part]}, at most every {every:g} s" if every else f"{WHEN[resource.part]}, at once"
        rows.append(f"| `{resource.uri}` | {resource.mime} | {resource.title}. {resource.description} | {told} |")
    return "\n".join([*rows, "", f"At most {MAX_RESOURCES} resources for each connection or stream."])


def _prompts() -> str:
    rows = ["| prompt | for | arguments |", "|---|---|---|"]
    rows += [f"| `{prompt.name}` | {prompt.title}. {prompt.description} | {_arguments(prompt)} |" for prompt in PROMPTS]
    return "\n".join(rows)


def _arguments(prompt: Prompt) -> str:
    return "; ".join(f"{f'**`{a.name}`**' if a.required else f'`{a.name}`'} {a.description}" for a in prompt.arguments)


def _asked() -> str:
    rows = ["| `server.ask_person` | asks before | the person sees |", "|---|---|---|"]
    return "\n".join([*rows, *(f"| `{name}` | {before} | {sees} |" for name, (before, sees) in ASKED.items())])
