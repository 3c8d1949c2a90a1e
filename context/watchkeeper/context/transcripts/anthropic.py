"""Anthropic messages to and from OpenAI chat messages.

Rules (https://platform.claude.com/docs/en/api/messages):
- `tool_use` becomes a tool call, `tool_result` a `tool` message, an image with base64 or URL source an `image_url`
  part. Every other block (thinking, documents, server tools, citations, …) stays in the content as it is.
- Keys that a block has in addition (`cache_control`, `is_error`, …) stay on what the block became.
- Going back, neighbours of one role are one turn, and tool results come first in theirs. A list of alternating turns
  in that order comes back equal to what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from watchkeeper.context.core.messages import Message

from .model import ORIGIN

_CONVERTED = frozenset({"tool_use", "tool_result", "image"})


def is_anthropic(message: Message) -> bool:
    """Whether a message uses blocks that only this form has."""
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(b, dict) and b.get("type") in ("tool_use", "tool_result", "thinking", "redacted_thinking", "image")
        for b in content
    )


def from_anthropic(message: Message) -> list[Message]:
    """One Anthropic message as one or more OpenAI messages; a message with nothing to convert comes back itself."""
    content = message.get("content")
    if not isinstance(content, list) or not any(
        isinstance(b, dict) and str(b.get("type")) in _CONVERTED for b in content
    ):
        return [message]
    if message.get("role") == "assistant":
        return [_assistant_from(message, content)]
    return _user_from(message, content)


def to_anthropic(messages: Iterable[Message]) -> tuple[str | list[Any] | None, list[Message]]:
    """(system, messages) as the Messages API takes them. Nothing is dropped but empty text."""
    system: list[Any] = []
    turns: list[Message] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer") and not turns:
            system.append(message.get("content"))
            continue
        turn = _assistant_to(message) if role == "assistant" else _user_to(message)
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1] = _merged(turns[-1], turn)
        else:
            turns.append(turn)
    if not system:
        return None, turns
    return (system[0] if len(system) == 1 else [b for s in system for b in _as_blocks(s)]), turns


# --- in -------------------------------------------------------------------------------------------


def _assistant_from(message: Message, content: Sequence[Any]) -> Message:
    parts: list[Any] = []
    calls: list[dict[str, Any]] = []
    order = ""
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            calls.append(_call_from(block))
            order += "c"
        else:
            parts.append(_part_from(block))
            order += "p"
    out = {**message, "content": parts or None}
    if calls:
        out["tool_calls"] = calls
    if "cp" in order:  # a call before other content: remembered, because OpenAI messages keep the two apart
        out[ORIGIN] = {**message.get(ORIGIN, {}), "order": order}
    return out


def _call_from(block: dict[str, Any]) -> dict[str, Any]:
    extra = {k: v for k, v in block.items() if k not in ("type", "id", "name", "input")}
    arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
    function = {"name": str(block.get("name", "")), "arguments": arguments}
    return {"id": str(block.get("id", "")), "type": "function", "function": function, **extra}


def _user_from(message: Message, content: Sequence[Any]) -> list[Message]:
    out: list[Message] = []
    parts: list[Any] = []

    def flush() -> None:
        if parts:
            out.append({"role": message.get("role", "user"), "content": list(parts)})
            parts.clear()

    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            flush()
            out.append(_result_from(block))
        else:
            parts.append(_part_from(block))
    flush()
    around = {k: v for k, v in message.items() if k not in ("role", "content", ORIGIN)}
    origin = dict(message.get(ORIGIN, {}))
    if len(out) == 1 and out[0]["role"] != "tool":
        out[0].update(around)
    elif around:
        origin["message"] = around
    if origin:
        out[0][ORIGIN] = origin
    return out


def _result_from(block: dict[str, Any]) -> Message:
    extra = {k: v for k, v in block.items() if k not in ("type", "tool_use_id", "content")}
    content = block.get("content")
    if isinstance(content, list):
        content = [_part_from(b) for b in content]
    return {
        "role": "tool",
        "tool_call_id": str(block.get("tool_use_id", "")),
        "content": "" if content is None else content,
        **extra,
    }


def _part_from(block: Any) -> Any:
    if not isinstance(block, dict) or block.get("type") != "image" or not isinstance(block.get("source"), dict):
        return block
    source = block["source"]
    if source.get("type") == "base64" and set(source) == {"type", "media_type", "data"}:
        url = f"data:{source['media_type']};base64,{source['data']}"
    elif source.get("type") == "url" and set(source) == {"type", "url"}:
        url = source["url"]
    else:
        return block
    extra = {k: v for k, v in block.items() if k not in ("type", "source")}
    return {"type": "image_url", "image_url": {"url": url}, **extra}


# --- out ------------------------------------------------------------------------------------------


def _assistant_to(message: Message) -> Message:
    origin = message.get(ORIGIN, {})
    calls = [_call_to(c) for c in message.get("tool_calls") or ()]
    extra = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls", ORIGIN)}
    content = message.get("content")
    if not calls:
        return {"role": "assistant", "content": _content_to(content), **extra}
    parts = [_part_to(p) for p in _as_blocks(content)]
    order = origin.get("order", "")
    if order.count("c") == len(calls) and order.count("p") == len(parts):
        pending, said = iter(calls), iter(parts)
        blocks = [next(pending) if kind == "c" else next(said) for kind in order]
    else:
        blocks = parts + calls
    return {"role": "assistant", "content": blocks, **extra}


def _call_to(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    try:
        value = json.loads(arguments) if isinstance(arguments, str) and arguments.strip() else arguments or {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        value = {"arguments": arguments}
    extra = {k: v for k, v in call.items() if k not in ("id", "type", "function")}
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": value, **extra}


def _user_to(message: Message) -> Message:
    origin = message.get(ORIGIN, {})
    content = message.get("content")
    extra = {k: v for k, v in message.items() if k not in ("role", "content", "tool_call_id", ORIGIN)}
    if message.get("role") == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
        result["content"] = [_part_to(p) for p in content] if isinstance(content, list) else content
        extra.pop("name", None)
        return {"role": "user", "content": [{**result, **extra}], **origin.get("message", {})}
    return {"role": "user", "content": _content_to(content), **extra, **origin.get("message", {})}


def _content_to(content: Any) -> Any:
    return [_part_to(p) for p in content] if isinstance(content, list) else content


def _part_to(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "refusal":
        return {"type": "text", "text": part.get("refusal", "")}
    if part.get("type") != "image_url" or not isinstance(part.get("image_url"), dict):
        return part
    url = str(part["image_url"].get("url", ""))
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        media_type = head.removeprefix("data:").removesuffix(";base64")
        source = {"type": "base64", "media_type": media_type, "data": data}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source, **{k: v for k, v in part.items() if k not in ("type", "image_url")}}


def _merged(turn: Message, more: Message) -> Message:
    blocks = _as_blocks(turn["content"]) + _as_blocks(more["content"])
    if turn["role"] == "user":
        blocks.sort(key=lambda b: not (isinstance(b, dict) and b.get("type") == "tool_result"))
    return {**more, **turn, "content": blocks}


def _as_blocks(content: Any) -> list[Any]:
    if content is None or content == "":
        return []
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]
