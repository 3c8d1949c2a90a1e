"""Mending a well-formed message list that a provider would refuse.

Rules:
- What is in order comes back as the same list object, and every message that needs nothing as the same message object.
- Nothing a person or a tool said is invented or rewritten. What was moved, joined, dropped or put in is named, with
  its index in the list that came in.
- A repaired list breaks no rule of `validity`, and repairing it again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from watchkeeper.context.core.messages import INSTRUCTION_ROLES, Message, calls_of, content_text
from watchkeeper.context.core.validity import (
    MAX_CACHE_MARKS,
    THINKING,
    blank_text,
    ends_with_thinking,
    has_content,
    is_json_object,
)

OPENING = "[The conversation begins here.]"
NO_RESULT = "[No result of this call was recorded.]"
NO_OUTPUT = "[no output]"
SEE_ATTACHED = "[See the attached content.]"


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to the message at `index` of the list that came in."""

    index: int
    what: str

    def __str__(self) -> str:
        return f"messages[{self.index}]: {self.what}"


@dataclass(frozen=True, slots=True)
class Repaired:
    """The list that all providers take, what was done for it, and where each message stood in the list that came in."""

    messages: list[Message]
    repairs: tuple[Repair, ...]
    origin: tuple[int, ...]


@dataclass(slots=True)
class _Item:
    index: int
    message: Message


def repair(messages: list[Message]) -> tuple[list[Message], tuple[Repair, ...]]:
    """A list that all providers take, and what was done for it; the same list when nothing had to be done."""
    done = repaired(messages)
    return done.messages, done.repairs


def repaired(messages: list[Message]) -> Repaired:
    """`repair`, with the place each message had before."""
    if not messages:
        return Repaired(messages, (), ())
    repairs: list[Repair] = []
    items = [_Item(i, _tidied(i, m, repairs)) for i, m in enumerate(messages)]
    items = _without_blank(items, repairs)
    items = _system_first(items, repairs)
    items = _paired(items, repairs)
    items = _alternating(items, repairs)
    items = _opened(items, repairs)
    items = _marks_limited(items, repairs)
    _final_blanks(items, repairs)
    if not repairs:
        return Repaired(messages, (), tuple(range(len(messages))))
    return Repaired(
        [item.message for item in items],
        tuple(sorted(repairs, key=lambda r: r.index)),
        tuple(item.index for item in items),
    )


# --- one message --------------------------------------------------------------------------------------


def _tidied(index: int, message: Message, repairs: list[Repair]) -> Message:
    """The message with parts, texts and calls in order."""

    def note(what: str) -> None:
        repairs.append(Repair(index, what))

    out = message
    content = message.get("content")
    if isinstance(content, tuple):
        content = list(content)
        out = {**out, "content": content}
        note("content made a list")
    if isinstance(content, list) and any(not isinstance(p, dict) or "type" not in p for p in content):
        content = [{"type": "text", "text": p} if isinstance(p, str) else {"type": "text", **p} for p in content]
        out = {**out, "content": content}
        note("content parts got their type")
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        out = {k: v for k, v in out.items() if k != "tool_calls"}
        note("empty tool_calls left out")
    elif calls:
        tidy = [_tidied_call(call) for call in calls]
        if not isinstance(calls, list) or any(a is not b for a, b in zip(tidy, calls, strict=True)):
            out = {**out, "tool_calls": tidy}
            note("call arguments made a JSON object")
    if blank_text(out) and (out.get("tool_calls") or has_content(out) or out["role"] == "tool"):
        parts = [p for p in content if not _blank(p)] if isinstance(content, list) else []
        out = {**out, "content": parts or None}
        if out["role"] != "tool":
            note("blank text left out")
    if out["role"] == "tool" and not has_content(out):
        out = {**out, "content": NO_OUTPUT}
        note("an empty result says that it is empty")
    if out["role"] == "assistant" and not has_content(out) and not out.get("tool_calls"):
        said = out.get("refusal")
        if isinstance(said, str) and said.strip():
            out = {**out, "content": said}
            note("the refusal became the content")
        elif isinstance(audio := out.get("audio"), dict):
            transcript = audio.get("transcript")
            out = {
                **out,
                "content": transcript if isinstance(transcript, str) and transcript.strip() else "[audio answer]",
            }
            note("the transcript of the audio became the content")
    if out["role"] == "assistant" and has_content(out) and ends_with_thinking(out):
        parts = list(out["content"])
        while parts and isinstance(parts[-1], dict) and parts[-1].get("type") in THINKING:
            parts.pop()
        out = {**out, "content": parts}
        note("thinking after the last text left out")
    content = out.get("content")
    if isinstance(content, list) and any(p.get("type") in THINKING and "cache_control" in p for p in content):
        parts = [
            {k: v for k, v in p.items() if k != "cache_control"} if p.get("type") in THINKING else p for p in content
        ]
        out = {**out, "content": parts}
        note("cache mark taken off a thinking block")
    return out


def _blank(part: dict[str, Any]) -> bool:
    return part.get("type") == "text" and not (part.get("text") or "").strip()


def _tidied_call(call: dict[str, Any]) -> dict[str, Any]:
    if call.get("type") == "custom":
        return call
    body = call["function"]
    arguments = body.get("arguments")
    if is_json_object(arguments):
        return call
    return {**call, "function": {**body, "arguments": _as_object(arguments)}}


def _as_object(arguments: object) -> str:
    """Arguments as the text of an object; what is none stands under `value`, what is no JSON under `raw`."""
    value: object = arguments
    if isinstance(arguments, str):
        if not arguments.strip():
            return "{}"
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return json.dumps({"raw": arguments}, ensure_ascii=False)
    if value is None:
        return "{}"
    try:
        return json.dumps(value if isinstance(value, dict) else {"value": value}, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return json.dumps({"raw": arguments if isinstance(arguments, str) else repr(arguments)}, ensure_ascii=False)


# --- the list -----------------------------------------------------------------------------------------


def _without_blank(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    kept = []
    for item in items:
        if item.message["role"] == "tool" or item.message.get("tool_calls") or has_content(item.message):
            kept.append(item)
        else:
            repairs.append(Repair(item.index, f"an empty {item.message['role']} message left out"))
    return kept


def _system_first(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    head: list[_Item] = []
    rest: list[_Item] = []
    for item in items:
        if item.message["role"] in INSTRUCTION_ROLES:
            if rest:
                repairs.append(Repair(item.index, "a system message moved to the others at the beginning"))
            head.append(item)
        else:
            rest.append(item)
    return head + rest


def _paired(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    """Each result directly after its call, each call with a result unless it is still running, each id once."""
    used: set[str] = {call["id"] for item in items for call in calls_of(item.message)}
    taken: set[str] = set()
    out: list[list[_Item]] = []
    slots: dict[str, list[tuple[int, str]]] = {}  # id in the list that came in -> (group, id now) waiting for a result
    answered: dict[int, set[str]] = {}
    last_spoken = 0
    for item in items:
        message = item.message
        if message["role"] == "tool":
            waiting = slots.get(message["tool_call_id"])
            if not waiting:
                repairs.append(Repair(item.index, "a result that answers no call left out"))
                continue
            group, call_id = waiting.pop(0)
            if group != last_spoken:
                repairs.append(Repair(item.index, "a result moved to its call"))
            if call_id != message["tool_call_id"]:
                item = _Item(item.index, {**message, "tool_call_id": call_id})
            answered[group].add(call_id)
            out[group].append(item)
            continue
        calls = calls_of(message)
        last_spoken = len(out)
        if calls:
            fresh: dict[str, list[tuple[int, str]]] = {}
            renamed = []
            for call in calls:
                call_id = call["id"]
                if call_id in taken:
                    call_id = _free_id(call_id, used)
                    repairs.append(Repair(item.index, "a call id that was used twice got its own"))
                taken.add(call_id)
                renamed.append(call if call_id == call["id"] else {**call, "id": call_id})
                fresh.setdefault(call["id"], []).append((len(out), call_id))
            slots.update(fresh)
            answered[len(out)] = set()
            if any(a is not b for a, b in zip(renamed, calls, strict=True)):
                item = _Item(item.index, {**message, "tool_calls": renamed})
        out.append([item])
    for number, group_items in enumerate(out[:-1]):
        for call in calls_of(group_items[0].message):
            if call["id"] not in answered[number]:
                stub = {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
                group_items.append(_Item(group_items[0].index, stub))
                repairs.append(Repair(group_items[0].index, "a call without a result got a stub"))
    return [item for group_items in out for item in group_items]


def _free_id(call_id: str, used: set[str]) -> str:
    number = 2
    while f"{call_id}_{number}" in used:
        number += 1
    used.add(f"{call_id}_{number}")
    return f"{call_id}_{number}"


def _alternating(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    """Neighbours of one role as one message."""
    out: list[_Item] = []
    for item in items:
        role = item.message["role"]
        if out and role in ("user", "assistant") and out[-1].message["role"] == role:
            out[-1] = _Item(out[-1].index, joined(out[-1].message, item.message))
            repairs.append(Repair(item.index, f"joined to the {role} message before it"))
        else:
            out.append(item)
    return out


def joined(first: Message, second: Message) -> Message:
    """Two messages of one role as one: texts as paragraphs, parts and calls one after the other; keys of both."""
    a, b = first.get("content"), second.get("content")
    content: Any
    if isinstance(a, str) and isinstance(b, str):
        content = f"{a}\n\n{b}" if a.strip() and b.strip() else (a if a.strip() else b)
    elif not a or not b:
        content = a or b
    else:
        content = [*_as_parts(a), *_as_parts(b)]
    out = {**second, **first, "content": content}
    if calls := [*calls_of(first), *calls_of(second)]:
        out["tool_calls"] = calls
    return out


def _as_parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _opened(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    """A plain user message first, and text in at least one."""
    start = next((n for n, item in enumerate(items) if item.message["role"] not in INSTRUCTION_ROLES), len(items))
    if start == len(items) or items[start].message["role"] != "user":
        index = items[start].index if start < len(items) else (items[-1].index if items else 0)
        items = [*items[:start], _Item(index, {"role": "user", "content": OPENING}), *items[start:]]
        repairs.append(Repair(index, "a note put in as the first user message"))
    users = [item for item in items if item.message["role"] == "user"]
    if not any(content_text(item.message.get("content")).strip() for item in users):
        first = users[0]
        first.message = {
            **first.message,
            "content": [*first.message["content"], {"type": "text", "text": SEE_ATTACHED}],
        }
        repairs.append(Repair(first.index, "a note put beside attachments without text"))
    return items


def _marks_limited(items: list[_Item], repairs: list[Repair]) -> list[_Item]:
    """The newest four cache marks; earlier ones go."""
    left = MAX_CACHE_MARKS
    for item in reversed(items):
        message = item.message
        content = message.get("content")
        parts = list(content) if isinstance(content, list) else []
        dropped = False
        for at in range(len(parts) - 1, -1, -1):
            if isinstance(parts[at], dict) and "cache_control" in parts[at]:
                if left:
                    left -= 1
                else:
                    parts[at] = {k: v for k, v in parts[at].items() if k != "cache_control"}
                    dropped = True
        if dropped:
            message = {**message, "content": parts}
        if "cache_control" in message:
            if left:
                left -= 1
            else:
                message = {k: v for k, v in message.items() if k != "cache_control"}
                dropped = True
        if dropped:
            item.message = message
            repairs.append(Repair(item.index, "a cache mark above the limit taken off"))
    return items


def _final_blanks(items: Sequence[_Item], repairs: list[Repair]) -> None:
    """No blanks at the end of a final assistant text."""
    if not items or items[-1].message["role"] != "assistant" or calls_of(items[-1].message):
        return
    last = items[-1]
    content = last.message.get("content")
    if content_text(content) == content_text(content).rstrip():
        return
    if isinstance(content, str):
        content = content.rstrip()
    elif isinstance(content, list):
        content = list(content)
        for at in range(len(content) - 1, -1, -1):
            part = content[at]
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                content[at] = {**part, "text": part["text"].rstrip()}
                break
    last.message = {**last.message, "content": content}
    repairs.append(Repair(last.index, "blanks at the end of the final assistant text left out"))


__all__ = ["NO_OUTPUT", "NO_RESULT", "OPENING", "SEE_ATTACHED", "Repair", "Repaired", "joined", "repair", "repaired"]
