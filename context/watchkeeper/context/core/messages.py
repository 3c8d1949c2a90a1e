"""OpenAI chat messages: the one vocabulary of this part, and the check of their shape.

Rules:
- A message is a dict and is never mutated; unknown keys and content parts travel through untouched.
- Shape is checked here, once, at the door: what is wrong is said with the index of the message. What passes can be
  handled without further guards. What is well formed but breaks a provider's rules is `validity`'s business.

Source: https://platform.openai.com/docs/api-reference/chat/create (messages).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from watchkeeper.context.errors import InvalidMessages

Message = dict[str, Any]
ROLES: Final = ("system", "developer", "user", "assistant", "tool")
INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})


def check_messages(value: object) -> list[Message]:
    """`value` as a list of messages; the same message objects in a new list.

    Raises:
        InvalidMessages: not a list of messages; names the index and what is wrong.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise InvalidMessages(
            f"messages must be a list of chat messages, not {_kind(value)}", 'e.g. [{"role": "user", "content": "…"}]'
        )
    out: list[Message] = []
    for index, message in enumerate(value):
        _check(index, message)
        out.append(message)
    return out


def _check(index: int, message: object) -> None:
    if not isinstance(message, dict):
        raise _wrong(index, f"must be an object with a role, not {_kind(message)}")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise _wrong(index, f"role {role!r:.60} is not one of {', '.join(ROLES)}")
    _check_content(index, message.get("content"))
    calls = message.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list | tuple):
            raise _wrong(index, f"tool_calls must be a list, not {_kind(calls)}")
        if calls and role != "assistant":
            raise _wrong(index, f"a {role} message cannot carry tool_calls")
        for number, call in enumerate(calls):
            _check_call(index, number, call)
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            raise _wrong(index, "a tool message needs tool_call_id, the id of the call that it answers")


def _check_content(index: int, content: object) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        raise _wrong(index, f"content must be text, a list of parts or null, not {_kind(content)}")
    for number, part in enumerate(content):
        if isinstance(part, str):
            continue
        if not isinstance(part, dict):
            raise _wrong(index, f"content[{number}] must be a part with a type, not {_kind(part)}")
        if not isinstance(part.get("type", "text"), str):
            raise _wrong(index, f"content[{number}].type must be text, not {_kind(part['type'])}")
        if not isinstance(part.get("text"), str | None):
            raise _wrong(index, f"content[{number}].text must be text, not {_kind(part['text'])}")


def _check_call(index: int, number: int, call: object) -> None:
    where = f"tool_calls[{number}]"
    if not isinstance(call, dict):
        raise _wrong(index, f"{where} must be an object, not {_kind(call)}")
    if not isinstance(call.get("id"), str) or not call["id"]:
        raise _wrong(index, f"{where} needs an id")
    body = call.get("custom") if call.get("type") == "custom" else call.get("function")
    if not isinstance(body, dict):
        raise _wrong(index, f"{where} needs a function with name and arguments")
    if not isinstance(body.get("name"), str) or not body["name"]:
        raise _wrong(index, f"{where}.function needs a name")


def _wrong(index: int, what: str) -> InvalidMessages:
    return InvalidMessages(f"messages[{index}]: {what}", "mend that message and send the list again", index=index)


def _kind(value: object) -> str:
    return {
        "NoneType": "null",
        "str": "text",
        "dict": "an object",
        "list": "a list",
        "int": "a number",
        "float": "a number",
        "bool": "a boolean",
    }.get(type(value).__name__, type(value).__name__)


# --- reading ------------------------------------------------------------------------------------------


def content_text(content: object) -> str:
    """The text of a message's content: parts joined by line breaks; parts without text count for nothing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "\n".join(text for part in content if (text := part_text(part)))


def part_text(part: object) -> str:
    """The text of one content part: `text`, `refusal`, `thinking`, or what a nested `tool_result` holds."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    for key in ("text", "refusal", "thinking"):
        if isinstance(text := part.get(key), str):
            return text
    return content_text(part.get("content"))


def calls_of(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tool calls of a message; empty when there are none."""
    return message.get("tool_calls") or ()


def call_body(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is called: `function` of an ordinary call, `custom` of a free-form one."""
    body: Mapping[str, Any] = call.get("function") or call.get("custom") or {}
    return body


def call_name(call: Mapping[str, Any]) -> str:
    return str(call_body(call).get("name", ""))


def call_arguments(call: Mapping[str, Any]) -> str:
    """The arguments as text, whatever form they have: JSON text, an object, nothing, or free-form input."""
    body = call_body(call)
    value = body.get("arguments", body.get("input"))
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    """All that a model reads of a message: its text, then name and arguments of each call."""
    if text := content_text(message.get("content")):
        yield text
    for call in calls_of(message):
        yield call_name(call)
        yield call_arguments(call)


def is_blank(message: Mapping[str, Any]) -> bool:
    """Whether a message says nothing at all: no text, no other part, no call."""
    content = message.get("content")
    if calls_of(message):
        return False
    if isinstance(content, list | tuple):
        return all(not _says_something(part) for part in content)
    return not (isinstance(content, str) and content.strip())


def _says_something(part: object) -> bool:
    if isinstance(part, str):
        return bool(part.strip())
    if not isinstance(part, Mapping):
        return False
    if part.get("type", "text") == "text":
        return bool((part.get("text") or "").strip())
    return True


__all__ = [
    "INSTRUCTION_ROLES",
    "ROLES",
    "Message",
    "call_arguments",
    "call_body",
    "call_name",
    "calls_of",
    "check_messages",
    "content_text",
    "is_blank",
    "part_text",
    "texts_of",
]
