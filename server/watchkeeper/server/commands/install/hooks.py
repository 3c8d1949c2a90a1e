"""The pair of hooks by which Claude Code tells of a compaction.

Rules: ``PreCompact`` keeps the originals and prepares a record; its output counts for nothing there, so it has none.
``SessionStart`` with the matcher ``compact`` comes after it, and is where a hook may add to the context. The commands
are one line for a shell: on Windows that is Git's, so paths are written with ``/``.

Source: https://code.claude.com/docs/en/hooks
"""

import shlex
from typing import Any

from ...errors import ToolError
from .entry import Given
from .launch import Launch, starts_us

TIMEOUT_S = 60
"""After this Claude Code ends the hook; it ends by itself before (compaction_hook.py)."""
EVENTS = (("PreCompact", "", "pre-compact"), ("SessionStart", "compact", "session-start"))
"""The event, the matcher, and our name of it."""


def hooks(launch: Launch, settings: Given, system: str) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Where each belongs in the file of hooks, and what it is. Raises ToolError where a secret would be in it."""
    if settings.secret:
        raise ToolError(
            "secret_in_hook",
            f"{', '.join(settings.secret)} may hold a secret, and a hook's command line is seen by everybody here.",
            "Put it into a YAML file and give --config FILE.",
        )
    made: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for event, matcher, name in EVENTS:
        words = [launch.command, *launch.arguments, "hook", name, *settings.arguments]
        if system == "win32":
            words = [word.replace("\\", "/") for word in words]
        group: dict[str, Any] = {"matcher": matcher} if matcher else {}
        group["hooks"] = [{"type": "command", "command": shlex.join(words), "timeout": TIMEOUT_S}]
        made.append((("hooks", event), group))
    return made


def is_our_hook(group: Any) -> bool:
    """Whether this group of hooks is one of ours, and of nobody else."""
    commands = command_words(group)
    return bool(commands) and all(
        "hook" in words and starts_us(words[0], words[1 : words.index("hook")]) for words in commands
    )


def command_words(group: Any) -> list[list[str]]:
    """The commands of a group, in words; empty where it is not understood."""
    listed = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(listed, list):
        return []
    try:
        return [shlex.split(str(one["command"])) or [""] for one in listed]
    except (ValueError, KeyError, TypeError):
        return []
