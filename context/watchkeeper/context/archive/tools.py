"""The tools with which an agent reads the archive: search, describe, expand.

Rules:
- Schemas are JSON Schema; a call's arguments are checked against what they say before anything is done.
- Every answer is JSON text and bounded; `{"error": …}` says what happened and what helps.
- Numbers out of range are brought into it, and the answer's size follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from watchkeeper.context.errors import ContextError

from .recall import Archive, Found

MAX_HITS = 20
MAX_TOKENS = 20_000
MAX_SECONDS = 10.0

_GREP = (
    "Search everything this conversation ever held, also what was condensed: messages, tool results and tool-call "
    "arguments, word for word. Plain words find the best passages; quote words to keep them together; regex=true takes "
    "a regular expression and gives every match, oldest first. Each hit has an id for {prefix}_expand."
)
_DESCRIBE = (
    "What an id stands for: a message (m…) or a summary (n…), its place, size, children and, for a summary, its text."
)
_EXPAND = (
    "The original messages behind an id, word for word: one message (m…) or all that a summary (n…) covers. Long ones "
    "come in pages: give `next` as `cursor` to go on."
)


class ArchiveTools:
    """Three tools over an archive.

    Args:
        archive: what is read.
        session: the name of the conversation that a search looks in.
        count: tokens of a text, for page sizes.
        prefix: of the tools' names.
    """

    def __init__(
        self, archive: Archive, session: Callable[[], str], count: Callable[[str], int], *, prefix: str = "lcm"
    ) -> None:
        self._archive = archive
        self._session = session
        self._count = count
        self._prefix = prefix
        runs = (self._grep, self._describe, self._expand)
        self._tools = {
            schema["name"]: (schema, run) for schema, run in zip(self.schemas_for(prefix), runs, strict=True)
        }

    @staticmethod
    def schemas_for(prefix: str) -> list[dict[str, Any]]:
        """`{name, description, parameters}` of each tool."""
        return [_schema_grep(prefix), _schema_describe(prefix), _schema_expand(prefix)]

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool; JSON text, `{"error": …}` if it cannot."""
        if name not in self._tools:
            return json.dumps({"error": f"Unknown tool: {name}"})
        schema, run = self._tools[name]
        if problem := _problem(schema["parameters"], arguments):
            return json.dumps({"error": f"{name}: {problem}"}, ensure_ascii=False)
        try:
            return json.dumps(run(arguments), ensure_ascii=False)
        except ContextError as error:
            return json.dumps({"error": f"{error.message}. {error.hint}".rstrip(". ")}, ensure_ascii=False)

    def _grep(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        query = str(arguments["query"])
        everywhere = bool(arguments.get("all_sessions", False))
        offset = max(0, int(arguments.get("offset", 0)))
        limit = int(_within(arguments.get("limit", 5), 1, MAX_HITS))
        if arguments.get("regex"):
            found = self._archive.search_regex(
                query,
                session=self._session(),
                limit=limit,
                offset=offset,
                seconds=_within(arguments.get("seconds", 5), 0.1, MAX_SECONDS),
                ignore_case=bool(arguments.get("ignore_case", False)),
            )
        else:
            found = self._archive.search(
                query, session=None if everywhere else self._session(), limit=limit, offset=offset
            )
        return self._grouped(found, offset + len(found.hits), everywhere)

    def _grouped(self, found: Found, reached: int, everywhere: bool) -> dict[str, Any]:
        groups: dict[str | None, list[dict[str, Any]]] = {}
        for hit in found.hits:
            shown = hit.as_dict()
            shown.pop("node", None)
            if not everywhere:
                shown.pop("session", None)
            groups.setdefault(hit.node, []).append(shown)
        out: dict[str, Any] = {"found": [{"node": node, "hits": hits} for node, hits in groups.items()]}
        if found.more and found.hits:
            out["next_offset"] = reached
        if found.note:
            out["note"] = found.note
        if not found.hits and not found.note:
            out["note"] = "nothing found; try other words, or a regular expression"
        return out

    def _describe(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._archive.describe(str(arguments["id"]))

    def _expand(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        tokens = int(_within(arguments.get("max_tokens", 4_000), 200, MAX_TOKENS))
        page = self._archive.expand(
            str(arguments["id"]), max_tokens=tokens, count=self._count, cursor=str(arguments.get("cursor", ""))
        )
        out: dict[str, Any] = {"id": arguments["id"], "of": page.total}
        if page.messages:
            out["messages"] = [{"id": handle, "message": message} for handle, message in page.messages]
        if page.part:
            out["part"] = {"id": page.part[0], "json": page.part[1]}
            out["note"] = "a part of the JSON text of one message; the parts put together are the message"
        if page.next:
            out["next"] = page.next
        return out


def _within(value: Any, least: float, most: float) -> float:
    return max(least, min(most, float(value)))


def _problem(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    properties = parameters["properties"]
    for name in parameters["required"]:
        if name not in arguments:
            return f"the argument {name!r} is missing"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no argument {name!r}; there are {', '.join(properties)}"
        wanted = properties[name]["type"]
        fits = {
            "string": isinstance(value, str),
            "boolean": isinstance(value, bool),
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "number": isinstance(value, int | float) and not isinstance(value, bool),
        }[wanted]
        if not fits:
            return f"{name!r} must be {'an' if wanted[0] in 'aeiou' else 'a'} {wanted}"
        if wanted == "string" and (not value.strip() and name != "cursor"):
            return f"{name!r} is empty"
    return ""


def _schema(name: str, description: str, required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": [required],
            "additionalProperties": False,
        },
    }


def _schema_grep(prefix: str) -> dict[str, Any]:
    return _schema(
        f"{prefix}_grep",
        _GREP.format(prefix=prefix),
        "query",
        query={"type": "string", "description": "words, or a regular expression"},
        regex={"type": "boolean", "default": False},
        ignore_case={"type": "boolean", "default": False, "description": "for regex"},
        limit={"type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": 5},
        offset={"type": "integer", "minimum": 0, "default": 0, "description": "`next_offset` of the page before"},
        seconds={"type": "number", "maximum": MAX_SECONDS, "default": 5, "description": "time limit for regex"},
        all_sessions={"type": "boolean", "default": False, "description": "words only: search other conversations too"},
    )


def _schema_describe(prefix: str) -> dict[str, Any]:
    return _schema(f"{prefix}_describe", _DESCRIBE, "id", id={"type": "string", "description": "m12 or n3"})


def _schema_expand(prefix: str) -> dict[str, Any]:
    return _schema(
        f"{prefix}_expand",
        _EXPAND,
        "id",
        id={"type": "string", "description": "m12 or n3"},
        max_tokens={"type": "integer", "minimum": 200, "maximum": MAX_TOKENS, "default": 4_000},
        cursor={"type": "string", "default": "", "description": "`next` of the page before"},
    )
