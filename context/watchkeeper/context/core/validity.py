"""The rules of OpenAI, Anthropic and Gemini for a message list, as checks.

Rules are checked on OpenAI chat messages. For Anthropic and Gemini they are what holds after the usual translation:
leading system messages lifted out, tool results put into the user turn that follows the calls, neighbours in one turn.
A check never raises on a list of the right shape and never changes it; `repair` is the module that mends.

A list may end with calls that are still running: the newest assistant message, whose results are about to follow.

Sources: https://platform.openai.com/docs/guides/function-calling
https://platform.claude.com/docs/en/api/messages and .../build-with-claude/extended-thinking
https://ai.google.dev/gemini-api/docs/function-calling and .../thought-signatures
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from watchkeeper.context.core.messages import INSTRUCTION_ROLES, call_body, calls_of, content_text

Provider = Literal["openai", "anthropic", "gemini"]
MAX_CACHE_MARKS = 4
THINKING = frozenset({"thinking", "redacted_thinking"})
_Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. `index` is the message, -1 the whole list."""

    provider: Provider
    index: int
    rule: str

    def __str__(self) -> str:
        return f"{self.provider}: " + (f"messages[{self.index}]: {self.rule}" if self.index >= 0 else self.rule)


def check(messages: _Messages) -> list[Violation]:
    """Every broken rule of the three providers; empty for a list that all of them take."""
    return [*check_openai(messages), *check_anthropic(messages), *check_gemini(messages)]


def check_openai(messages: _Messages) -> list[Violation]:
    """Calls and results pair up, and every message says something."""
    bad: list[Violation] = []

    def wrong(index: int, rule: str) -> None:
        bad.append(Violation("openai", index, rule))

    if not messages:
        wrong(-1, "the list is empty")
    waiting: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                wrong(index, "this result answers no call of the assistant message before it")
            waiting.discard(message["tool_call_id"])
            if message.get("content") is None:
                wrong(index, "the content of a result is null")
            continue
        if waiting:
            wrong(index, f"a {role} message stands before the results of {len(waiting)} calls")
            waiting = set()
        calls = calls_of(message)
        if not calls and isinstance(message.get("tool_calls"), list | tuple):
            wrong(index, "tool_calls is empty; it must be absent")
        for call in calls:
            if call["id"] in seen:
                wrong(index, "a call id is used twice")
            seen.add(call["id"])
            waiting.add(call["id"])
            body = call_body(call)
            if call.get("type") != "custom" and not isinstance(body.get("arguments"), str):
                wrong(index, "the arguments of a call are not text")
        if not calls and not has_content(message):
            wrong(index, f"this {role} message is empty")
        content = message.get("content")
        if isinstance(content, list | tuple) and any(not isinstance(p, dict) or "type" not in p for p in content):
            wrong(index, "a content part has no type")
    if messages and not any(m["role"] == "user" and content_text(m.get("content")).strip() for m in messages):
        wrong(-1, "no user message has text")
    return bad


def check_anthropic(messages: _Messages) -> list[Violation]:
    """Turns alternate from a plain user message on, nothing is blank, thinking and cache marks are in order."""
    bad: list[Violation] = []

    def wrong(index: int, rule: str) -> None:
        bad.append(Violation("anthropic", index, rule))

    _check_turns(messages, wrong)
    marks = 0
    for index, message in enumerate(messages):
        content = message.get("content")
        if blank_text(message):
            wrong(index, "a text block is blank")
        for call in calls_of(message):
            if call.get("type") != "custom" and not is_json_object(call_body(call).get("arguments")):
                wrong(index, "the input of a call is not a JSON object")
        marks += "cache_control" in message
        for part in content if isinstance(content, list | tuple) else ():
            if isinstance(part, Mapping) and "cache_control" in part:
                marks += 1
                if part.get("type") in THINKING:
                    wrong(index, "a thinking block carries cache_control")
        if message["role"] == "assistant" and ends_with_thinking(message):
            wrong(index, "an assistant turn ends with a thinking block")
    if marks > MAX_CACHE_MARKS:
        wrong(-1, f"{marks} cache_control marks; at most {MAX_CACHE_MARKS} are taken")
    if messages and messages[-1]["role"] == "assistant" and not calls_of(messages[-1]):
        text = content_text(messages[-1].get("content"))
        if text != text.rstrip():
            wrong(len(messages) - 1, "the final assistant text ends with blanks")
    return bad


def check_gemini(messages: _Messages) -> list[Violation]:
    """Strict alternation; the responses of parallel calls stand together, before anything else."""
    bad: list[Violation] = []

    def wrong(index: int, rule: str) -> None:
        bad.append(Violation("gemini", index, rule))

    _check_turns(messages, wrong)
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            wrong(index, "the responses of parallel calls are not in one turn")
        waiting = {call["id"] for call in calls_of(message)}
    return bad


def signed_thinking(messages: _Messages) -> list[Any]:
    """The thinking blocks and thought signatures of the newest turn, in order: what must come back unmodified."""
    out: list[Any] = []
    for message in messages[newest_turn(messages) :]:
        if message["role"] != "assistant":
            continue
        content = message.get("content")
        if isinstance(content, list | tuple):
            out += [p for p in content if isinstance(p, Mapping) and p.get("type") in THINKING]
        out += [call["extra_content"] for call in calls_of(message) if "extra_content" in call]
    return out


def newest_turn(messages: _Messages) -> int:
    """The index after the last user message: where the agent's newest turn begins."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user":
            return index + 1
    return 0


def has_thinking(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list | tuple) and any(
        isinstance(part, Mapping) and part.get("type") in THINKING for part in content
    )


def has_content(message: Mapping[str, Any]) -> bool:
    """Whether a message has text, or a part that is neither text nor thinking."""
    content = message.get("content")
    if isinstance(content, str):
        return bool(content.strip())
    if not isinstance(content, list | tuple):
        return False
    for part in content:
        if isinstance(part, str):
            if part.strip():
                return True
        elif part.get("type", "text") == "text":
            if (part.get("text") or "").strip():
                return True
        elif part.get("type") not in THINKING:
            return True
    return False


def blank_text(message: Mapping[str, Any]) -> bool:
    """Whether a text of the message is blank: a string of blanks, or a text part without any other character."""
    content = message.get("content")
    if isinstance(content, str):
        # An assistant that only calls may have the empty string; a translation leaves it out.
        return not content.strip() and not (content == "" and bool(calls_of(message)))
    if not isinstance(content, list | tuple):
        return False
    return not content or any(
        not part.strip()
        if isinstance(part, str)
        else part.get("type", "text") == "text" and not (part.get("text") or "").strip()
        for part in content
    )


def ends_with_thinking(message: Mapping[str, Any]) -> bool:
    """Whether an assistant message without calls ends with a thinking block."""
    content = message.get("content")
    return (
        not calls_of(message)
        and isinstance(content, list | tuple)
        and bool(content)
        and isinstance(content[-1], Mapping)
        and content[-1].get("type") in THINKING
    )


def is_json_object(arguments: object) -> bool:
    """Whether arguments are the text of a JSON object."""
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _check_turns(messages: _Messages, wrong: Any) -> None:
    before = ""
    for index, message in enumerate(messages):
        role = message["role"]
        if role in INSTRUCTION_ROLES:
            if before:
                wrong(index, "a system message stands after the conversation began")
            continue
        if not before and role != "user":
            wrong(index, f"the first message must be a plain user message, not {role}")
        if before == role == "assistant" or before == role == "user":
            wrong(index, f"two {role} turns in a row")
        before = role
    if not before:
        wrong(-1, "there is neither a user nor an assistant message")


__all__ = [
    "MAX_CACHE_MARKS",
    "THINKING",
    "Provider",
    "Violation",
    "blank_text",
    "check",
    "check_anthropic",
    "check_gemini",
    "check_openai",
    "ends_with_thinking",
    "has_content",
    "has_thinking",
    "is_json_object",
    "newest_turn",
    "signed_thinking",
]
