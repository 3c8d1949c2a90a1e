"""Claude Code session files (JSONL): finding them, and the conversation inside them.

Rules:
- A file is a tree: lines name their parent, an edited prompt starts a branch, subagents are side chains. The
  conversation is the path that ends at the last line, with every result and block that belongs to a message on it.
- Where a parent is missing (a damaged line) the path goes on at the line before, so that damage costs one line.
- An earlier compaction does not end the path: the originals before it are read, and its summary is left out since they
  say more. If they are not in the file the summary is what there is, and it is read.
- One answer of the model may be several lines with one message id; it becomes one message, its results after it.
- Words that a person typed while the agent worked are user messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from watchkeeper.context.core.messages import Message

from .anthropic import from_anthropic, to_anthropic
from .model import ORIGIN, Problem, TranscriptError

PREFIX = "claude-code:"
_SPACE = UUID("6f8a1c52-4c1e-4f0a-9d57-2f0a3f6f3c1b")
_MOST_AFTER = 256  # messages that are held because the answer before them may not be complete
_LINE_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress", "summary", "file-history-snapshot"})


def sessions_folder() -> Path:
    """Where Claude Code keeps its sessions: `$CLAUDE_CONFIG_DIR/projects`, else `~/.claude/projects`."""
    root = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(root) if root else Path.home() / ".claude") / "projects"


def find_session(name: str) -> Path:
    """The file for `claude-code:latest` or `claude-code:<session id>`.

    Raises:
        TranscriptError: there is none; the message names the folder searched.
    """
    wanted = name.removeprefix(PREFIX)
    folder = sessions_folder()
    found: list[tuple[float, Path]] = []
    for path in folder.glob("*/*.jsonl"):
        try:
            status = path.stat()
        except OSError:
            continue  # removed while we looked
        agent = path.name.startswith("agent-")
        if status.st_size and (path.stem == wanted or (wanted == "latest" and not agent)):
            found.append((status.st_mtime, path))
    if not found:
        raise TranscriptError(
            "transcript_not_found",
            f"no Claude Code session {wanted!r} in {folder}",
            "give a path, or set CLAUDE_CONFIG_DIR if Claude Code keeps its files elsewhere",
        )
    return max(found)[1]


def is_line(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a line of a session file."""
    return "role" not in value and (
        "sessionId" in value or "parentUuid" in value or "leafUuid" in value or str(value.get("type")) in _LINE_TYPES
    )


# --- which lines are the conversation -------------------------------------------------------------


@dataclass
class _Seen:
    """What the path needs to know of one line."""

    number: int
    parent: str | None
    type: str
    message_id: str | None
    uses: tuple[str, ...]
    results: tuple[str, ...]
    compaction: bool


@dataclass
class Index:
    """Built in one pass over the lines; then `wanted()` says which make up the conversation. Holds no content."""

    _lines: dict[str, _Seen] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)

    def add(self, number: int, line: Mapping[str, Any]) -> None:
        uuid = line.get("uuid")
        if not isinstance(uuid, str) or line.get("isSidechain"):
            return
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        if uuid not in self._lines:
            self._order.append(uuid)
        self._lines[uuid] = _Seen(
            number,
            line.get("parentUuid") or line.get("logicalParentUuid"),
            str(line.get("type")),
            _message_id(line) if line.get("type") == "assistant" else None,
            tuple(str(b.get("id")) for b in blocks if b.get("type") == "tool_use"),
            tuple(str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"),
            bool(line.get("isCompactSummary")),
        )

    def wanted(self) -> set[int]:
        """Line numbers of the conversation."""
        path = self._path()
        ids = {s.message_id for s in path if s.message_id}
        uses = {u for s in self._lines.values() if s.message_id in ids for u in s.uses}
        first_typed = next((s.number for s in path if s.type in ("user", "assistant") and not s.compaction), 0)
        chosen = {s.number for s in path if not (s.compaction and s.number > first_typed > 0)}
        for seen in self._lines.values():
            if seen.message_id in ids or uses.intersection(seen.results):
                chosen.add(seen.number)
        return chosen

    def _path(self) -> list[_Seen]:
        place = {uuid: at for at, uuid in enumerate(self._order)}
        path: list[_Seen] = []
        at = len(self._order) - 1
        while at >= 0:
            seen = self._lines[self._order[at]]
            path.append(seen)
            if seen.parent is None and seen.type != "system" and not seen.compaction:
                break  # the root
            before = place.get(seen.parent, at - 1) if seen.parent else at - 1
            at = before if before < at else at - 1
        return path[::-1]


def _message_id(line: Mapping[str, Any]) -> str:
    message = line.get("message")
    found = message.get("id") if isinstance(message, dict) else None
    return str(found or line.get("uuid"))


# --- lines to messages ----------------------------------------------------------------------------


def to_messages(
    lines: Iterable[tuple[int, Mapping[str, Any]]], report: Callable[[Problem], None], *, keep_origin: bool
) -> Iterator[Message]:
    """Messages of the lines of one conversation, in order."""
    answer: list[tuple[int, dict[str, Any]]] = []
    answer_id = ""
    after: list[Message] = []

    def flush() -> Iterator[Message]:
        if answer:
            yield from _convert(_joined([m for _, m in answer]), [n for n, _ in answer], keep_origin)
        yield from (m for m in after if m.get("role") == "tool")
        yield from (m for m in after if m.get("role") != "tool")
        answer.clear()
        after.clear()

    for number, line in lines:
        message = _message_of(line)
        if message is None:
            continue
        if not isinstance(message.get("role"), str):
            report(Problem(number, "a message without a role; passed over"))
        elif message["role"] == "assistant":
            if not answer or _message_id(line) != answer_id:
                yield from flush()
            answer_id = _message_id(line)
            answer.append((number, message))
        else:
            after.extend(_convert(message, [number], keep_origin))
            if not answer or len(after) > _MOST_AFTER:
                yield from flush()
    yield from flush()


def _message_of(line: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = line.get("type")
    if kind in ("user", "assistant"):
        message = line.get("message")
        return message if isinstance(message, dict) else {}
    attachment = line.get("attachment")
    if kind == "attachment" and isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        prompt = attachment.get("prompt")
        return {"role": "user", "content": prompt} if prompt else None
    return None


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if len(parts) == 1:
        return dict(parts[0])
    blocks: list[Any] = []
    for part in parts:
        content = part.get("content")
        blocks += content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    return {**parts[-1], "content": blocks}


def _convert(message: Mapping[str, Any], numbers: list[int], keep_origin: bool) -> list[Message]:
    out = from_anthropic(dict(message))
    if not keep_origin:
        return [{k: v for k, v in m.items() if k != ORIGIN} for m in out]
    return [{**m, ORIGIN: {**m.get(ORIGIN, {}), "lines": numbers}} for m in out]


# --- messages to lines ----------------------------------------------------------------------------


def to_lines(
    messages: Sequence[Message], known: Mapping[int, Mapping[str, Any]], *, unchanged: bool, timestamp: str
) -> Iterator[Mapping[str, Any]]:
    """Lines of a session file.

    Args:
        messages: the conversation; those that came from a session file know their lines.
        known: the lines of that file by number.
        unchanged: the conversation is the whole of that file's: every line is given back as it was.
        timestamp: ISO 8601, for lines that are new.
    """
    if unchanged and known:
        yield from (known[n] for n in sorted(known))
        return
    pattern = next((line for line in known.values() if line.get("sessionId")), {})
    session = pattern.get("sessionId") or str(uuid5(_SPACE, f"session {timestamp} {len(messages)}"))
    intact = _intact(messages, known)
    written: set[str] = set()
    last: str | None = None
    for at, message in enumerate(messages):
        numbers = _line_numbers(message)
        if numbers in intact:
            fresh = intact[numbers]
            intact[numbers] = []  # a line that became several messages is written once
        else:
            fresh = [_new_line(message, at, session, timestamp, pattern)]
        for line in fresh:
            parent = line.get("parentUuid")
            line = line if parent in written else {**line, "parentUuid": last}
            last = str(line.get("uuid"))
            written.add(last)
            yield line


def _intact(
    messages: Sequence[Message], known: Mapping[int, Mapping[str, Any]]
) -> dict[tuple[int, ...], list[Mapping[str, Any]]]:
    """The lines, by their numbers, of which everything that was read is still there and unchanged."""

    def ignore(_: Problem) -> None:
        """Nothing new can be wrong with lines that were read before."""

    now: dict[tuple[int, ...], list[Message]] = {}
    for message in messages:
        if numbers := _line_numbers(message):
            now.setdefault(numbers, []).append(message)
    out: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
    for numbers, have in now.items():
        if all(n in known for n in numbers):
            lines = [known[n] for n in numbers]
            if list(to_messages(zip(numbers, lines, strict=True), ignore, keep_origin=True)) == have:
                out[numbers] = lines
    return out


def _line_numbers(message: Message) -> tuple[int, ...]:
    return tuple(message.get(ORIGIN, {}).get("lines") or ())


def _new_line(message: Message, at: int, session: str, timestamp: str, pattern: Mapping[str, Any]) -> Mapping[str, Any]:
    _, turns = to_anthropic([message])
    body = dict(turns[0])
    role = body["role"]
    if role == "assistant":
        if isinstance(body["content"], str):
            body["content"] = [{"type": "text", "text": body["content"]}]
        body = {"id": f"msg_{uuid5(_SPACE, f'{session} message {at}').hex}", "type": "message", **body}
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": pattern.get("cwd", ""),
        "sessionId": session,
        "version": pattern.get("version", ""),
        "gitBranch": pattern.get("gitBranch", ""),
        "type": role,
        "message": body,
        "uuid": str(uuid5(_SPACE, f"{session} line {at}")),
        "timestamp": timestamp,
    }
