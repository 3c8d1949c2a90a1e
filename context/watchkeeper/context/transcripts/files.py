"""Transcripts as files: finding out the form, reading, writing.

Rules:
- `read_transcript` streams: memory is bounded by the largest message. `load_transcript` holds the messages, and only
  them unless `keep_origin` is asked for.
- A file is written beside its destination and moved into place, readable by its owner alone.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from watchkeeper.context.core.messages import Message

from . import claude_code, reading
from .anthropic import from_anthropic, is_anthropic, to_anthropic
from .model import FORMS, Form, Problem, Transcript, TranscriptError, without_origin

_PEEK = 64 * 1024
_LINE_SUFFIXES = frozenset({".jsonl", ".ndjson"})


def resolve_transcript(name: str | Path) -> Path:
    """The file that a name stands for: a path, `claude-code:latest` or `claude-code:<session id>`.

    Raises:
        TranscriptError: `transcript_not_found`.
    """
    if isinstance(name, str) and name.startswith(claude_code.PREFIX):
        return claude_code.find_session(name)
    path = Path(name).expanduser()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise TranscriptError(
            "transcript_not_found", f"transcript {path} {what}", "give the path of a JSON or JSONL file"
        )
    return path


def load_transcript(name: str | Path, *, keep_origin: bool = False) -> Transcript:
    """Read a whole transcript.

    Args:
        name: see `resolve_transcript`.
        keep_origin: also keep what a Claude Code file holds around its messages, so that `dump_transcript` can give it
            back line for line. Costs the memory of the file.

    Raises:
        TranscriptError: the file is not there, cannot be opened, or holds no transcript at all.
    """
    path = resolve_transcript(name)
    problems: list[Problem] = []
    extra: dict[str, Any] = {}
    source = _Source(path, problems.append, extra, keep_origin)
    messages = list(source.messages())
    if not messages:
        reasons = "; ".join(map(str, problems[:3])) or "it is empty"
        raise TranscriptError(
            "no_messages",
            f"no message in {path}: {reasons}",
            "transcripts are OpenAI JSON or JSONL, Anthropic JSON, or Claude Code session JSONL",
        )
    return Transcript(
        messages, source.form, str(path), tuple(sorted(problems, key=lambda p: p.line)), extra, dict(source.kept)
    )


def read_transcript(name: str | Path, report: Callable[[Problem], None]) -> Iterator[Message]:
    """Stream the messages of a transcript; what cannot be read goes to `report`.

    Raises:
        TranscriptError: the file is not there or cannot be opened.
    """
    yield from _Source(resolve_transcript(name), report, {}, keep_origin=False).messages()


def dump_transcript(
    messages: Sequence[Message],
    path: str | Path,
    form: Form,
    *,
    like: Transcript | None = None,
    timestamp: str | None = None,
) -> tuple[Problem, ...]:
    """Write messages to a file in a form.

    Args:
        like: the transcript they came from: gives the fields around the messages.
        timestamp: ISO 8601, for new Claude Code lines; now if not given.

    Returns:
        What the form could not hold.

    Raises:
        TranscriptError: an unknown form, or the file cannot be written.
    """
    problems: list[Problem] = []
    target = Path(path).expanduser()
    pieces = encode_transcript(messages, form, problems.append, like=like, timestamp=timestamp)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.writelines(pieces)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TranscriptError(
            "transcript_not_written", f"cannot write {target}: {error.strerror}", "choose a folder that can be written"
        ) from error
    return tuple(problems)


def encode_transcript(
    messages: Sequence[Message],
    form: Form,
    report: Callable[[Problem], None],
    *,
    like: Transcript | None = None,
    timestamp: str | None = None,
) -> Iterator[str]:
    """The text of a transcript in a form, in pieces; arguments as for `dump_transcript`."""
    if form not in FORMS:
        raise TranscriptError("unknown_form", f"unknown transcript form {form!r}", f"one of {', '.join(FORMS)}")
    return _encoded(messages, form, report, like, timestamp)


def _encoded(
    messages: Sequence[Message],
    form: Form,
    report: Callable[[Problem], None],
    like: Transcript | None,
    timestamp: str | None,
) -> Iterator[str]:
    extra = dict(like.extra) if like else {}
    if form == "openai-jsonl":
        for message in without_origin(messages):
            yield _json(message) + "\n"
    elif form == "claude-code":
        known = like.lines if like else {}
        whole = like is not None and (messages is like.messages or list(messages) == list(like.messages))
        talk = [m for m in messages if m.get("role") not in ("system", "developer")]
        if len(talk) < len(messages):
            report(
                Problem(
                    0, f"{len(messages) - len(talk)} system message(s) left out: a session file has no place for them"
                )
            )
        now = timestamp or datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for line in claude_code.to_lines(talk, known, unchanged=whole, timestamp=now):
            yield _json(line) + "\n"
    elif form == "anthropic":
        system, turns = to_anthropic(messages)
        around = {**extra, **({} if system is None else {"system": system})}
        yield from _document(around, turns)
    else:
        yield from _document(extra, without_origin(messages))


def _document(around: dict[str, Any], messages: Iterable[Message]) -> Iterator[str]:
    yield "{"
    for key, value in around.items():
        yield f"{_json(key)}: {_json(value)},\n "
    yield '"messages": ['
    for at, message in enumerate(messages):
        yield (",\n" if at else "\n") + _json(message)
    yield "\n]}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Source:
    """One file being read. `form` and `kept` are right once `messages` has ended."""

    def __init__(self, path: Path, report: Callable[[Problem], None], extra: dict[str, Any], keep_origin: bool) -> None:
        self._path = path
        self._report = report
        self._extra = extra
        self._keep = keep_origin
        self.form: Form = "openai"
        self.kept: dict[int, Any] = {}

    def messages(self) -> Iterator[Message]:
        try:
            by_line, session = self._look()
            if session:
                yield from self._session()
            elif by_line:
                yield from self._lines()
            else:
                yield from self._document()
        except OSError as error:
            raise TranscriptError(
                "transcript_unreadable", f"cannot read {self._path}: {error.strerror}", "check the file's permissions"
            ) from error

    def _look(self) -> tuple[bool, bool]:
        """(one value a line, lines of a Claude Code session)"""
        with self._path.open("rb") as stream:
            start = stream.read(_PEEK)
        text = start.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
        if self._path.suffix.lower() not in _LINE_SUFFIXES and not _looks_like_lines(text):
            return False, False
        with self._path.open("rb") as stream:
            for _, value in reading.lines(stream, _ignore):
                if isinstance(value, dict):
                    if "role" in value or "messages" in value:
                        return True, False
                    if claude_code.is_line(value):
                        return True, True
        return True, False

    def _document(self) -> Iterator[Message]:
        with self._path.open("rb") as stream:
            for line, key, value in reading.document(stream, self._report):
                if key is None:
                    yield from self._checked(line, value)
                elif key == "system":
                    self.form = "anthropic"
                    yield {"role": "system", "content": value}
                else:
                    self._extra[key] = value

    def _lines(self) -> Iterator[Message]:
        self.form = "openai-jsonl"
        conversation = 0
        with self._path.open("rb") as stream:
            for line, value in reading.lines(stream, self._report):
                if not (isinstance(value, dict) and isinstance(value.get("messages"), list)):
                    yield from self._checked(line, value)
                elif conversation:
                    self._report(Problem(line, f"another conversation; only the one of line {conversation} was read"))
                else:
                    conversation = line
                    self.form = "openai"
                    self._extra.update({k: v for k, v in value.items() if k not in ("messages", "system")})
                    if "system" in value:
                        self.form = "anthropic"
                        yield {"role": "system", "content": value["system"]}
                    for message in value["messages"]:
                        yield from self._checked(line, message)

    def _checked(self, line: int, value: Any) -> Iterator[Message]:
        if not isinstance(value, dict) or not isinstance(value.get("role"), str):
            self._report(Problem(line, "not a message (an object with a role); passed over"))
            return
        if is_anthropic(value):
            self.form = "anthropic"
        yield from from_anthropic(value)

    def _session(self) -> Iterator[Message]:
        self.form = "claude-code"
        index = claude_code.Index()
        with self._path.open("rb") as stream:
            for number, value in reading.lines(stream, self._report):
                if isinstance(value, dict):
                    index.add(number, value)
                    if self._keep:
                        self.kept[number] = value
                else:
                    self._report(Problem(number, "not an object; passed over"))
        wanted = index.wanted()
        yield from claude_code.to_messages(self._again(wanted), self._report, keep_origin=self._keep)

    def _again(self, wanted: set[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        if self._keep:
            yield from ((n, self.kept[n]) for n in sorted(wanted))
            return
        with self._path.open("rb") as stream:  # second pass: only the index was held
            for number, value in reading.lines(stream, _ignore):
                if number in wanted:
                    yield number, value


def _looks_like_lines(text: str) -> bool:
    if not text.startswith("{"):
        return False
    first, newline, _ = text.partition("\n")
    if newline:
        try:
            value = json.loads(first)
        except ValueError:
            return False
        return isinstance(value, dict) and "messages" not in value
    return not re.search(r'"messages"\s*:\s*\[', text)


def _ignore(problem: Problem) -> None:
    """For a second look at lines whose problems were or will be told once."""


__all__ = ["dump_transcript", "encode_transcript", "load_transcript", "read_transcript", "resolve_transcript"]
