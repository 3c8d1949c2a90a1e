"""What a transcript is: messages in one vocabulary, and what else its file held.

Rules:
- Messages are OpenAI chat dicts whatever the file's form was. Blocks and keys without an OpenAI equivalent stay where
  they were.
- A part that cannot be read is a `Problem` with its line number; the rest of the file is still there.
- What ties a message to its place in a file is under one private key, `ORIGIN`; `without_origin` removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from watchkeeper.context.core.messages import Message
from watchkeeper.context.errors import ContextError

Form = Literal["openai", "openai-jsonl", "anthropic", "claude-code"]
FORMS: tuple[Form, ...] = get_args(Form)
ORIGIN = "_origin"


class TranscriptError(ContextError):
    """A transcript that cannot be found, read or written at all; `code` says what happened."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint, code=code)


@dataclass(frozen=True)
class Problem:
    """Something in the file that could not be taken as it stood. `line` counts from 1; 0 means no single line."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True)
class Transcript:
    """A transcript in memory.

    Attributes:
        messages: OpenAI chat dicts in order.
        form: the form the file had; the default when it is written again.
        source: where it came from, for people.
        problems: what could not be read, in order.
        extra: fields of the document around the messages (model, tools, …), untouched.
        lines: Claude Code only: every readable line of the file by number, so that it can be written again.
    """

    messages: Sequence[Message]
    form: Form
    source: str = ""
    problems: tuple[Problem, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def without_origin(messages: Iterable[Message]) -> list[Message]:
    """The same messages without the private key; messages that do not have it are not copied."""
    return [{k: v for k, v in m.items() if k != ORIGIN} if ORIGIN in m else m for m in messages]
