"""Making one message smaller without breaking it.

Rules:
- A cut keeps the beginning and the end and says in between how much is missing.
- Arguments of a call stay a JSON object: its strings are shortened, never the JSON text.
- Signed thinking, ids, names and unknown keys stay as they are. The input is never changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from watchkeeper.context.core.messages import Message, call_body, calls_of

Count = Callable[[str], int]
IMAGE_PARTS = frozenset({"image_url", "image", "input_image", "input_audio", "audio", "file", "document"})
_LEAST = 24
_HEAD_SHARE = 0.67


def cut_text(text: str, tokens: int, count: Count) -> str:
    """`text` in at most `tokens` tokens, the middle left out; a text that fits comes back as it is."""
    if len(text) <= tokens or (len(text) < tokens * 12 and count(text) <= tokens):
        return text
    low, high = 0, min(len(text) - 1, tokens * 12)
    best = _without_middle(text, 0)
    # The number of characters that fit is found by halving, from a first guess that is nearly right.
    guess = min(high, tokens * 3)
    for _ in range(12):
        candidate = _without_middle(text, guess)
        n = count(candidate)
        if n <= tokens:
            low, best = guess, candidate
            if n >= tokens * 0.96:
                break
        else:
            high = guess - 1
        if low >= high:
            break
        guess = max(low + 1, min(high, int(guess * tokens / max(1, n)))) if n else (low + high + 1) // 2
        if guess in (low, high + 1):
            guess = (low + high + 1) // 2
    return best if count(best) <= tokens else best[: max(0, tokens)]


def _without_middle(text: str, keep: int) -> str:
    keep = min(keep, len(text))
    head = int(keep * _HEAD_SHARE)
    tail = keep - head
    start, end = text[:head], text[len(text) - tail :] if tail else ""
    if "\n" in start[-80:]:
        start = start[: start.rindex("\n")]
    if "\n" in end[:80]:
        end = end[end.index("\n") + 1 :]
    return f"{start}\n[… {len(text) - len(start) - len(end):,} characters cut …]\n{end}"


def cut_message(message: Message, tokens: int, count: Count, *, size: Callable[[Message], int]) -> Message:
    """The message in about `tokens` tokens (as `size` counts a message); the same object if it fits.

    Texts are cut first, then the strings in arguments; media become a marker. What cannot be cut (thinking, names) may
    leave it larger.
    """
    now = size(message)
    if now <= tokens:
        return message
    out = without_media(message)
    now = size(out)
    calls = calls_of(out)
    if now > tokens and calls:
        spoken = sum(map(count, _texts(out)))
        arguments = now - spoken
        if arguments > max(tokens - spoken, tokens // 2):
            room = max(_LEAST, (max(tokens - spoken, tokens // 2)) // len(calls))
            out = {**out, "tool_calls": [cut_call(call, room, count) for call in calls]}
            now = size(out)
    if now > tokens and (texts := _texts(out)):
        room = max(_LEAST, tokens - (now - sum(map(count, texts))))
        out = {**out, "content": _cut_content(out.get("content"), room, count)}
    return out


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str)]


def _cut_content(content: Any, room: int, count: Count) -> Any:
    if isinstance(content, str):
        return cut_text(content, room, count)
    sizes = [count(p["text"]) if isinstance(p, dict) and isinstance(p.get("text"), str) else 0 for p in content]
    total = max(1, sum(sizes))
    parts = []
    for part, n in zip(content, sizes, strict=True):
        share = max(_LEAST, room * n // total)
        parts.append({**part, "text": cut_text(part["text"], share, count)} if n > share else part)
    return parts


def cut_call(call: Mapping[str, Any], tokens: int, count: Count) -> dict[str, Any]:
    """A call whose arguments have about `tokens` tokens, still a JSON object with the same keys."""
    body = call_body(call)
    key = "function" if "function" in call else "custom"
    if key == "custom":
        text = body.get("input")
        return {**call, key: {**body, "input": cut_text(text, tokens, count)}} if isinstance(text, str) else dict(call)
    arguments = body.get("arguments")
    if not isinstance(arguments, str) or count(arguments) <= tokens:
        return dict(call)
    return {**call, key: {**body, "arguments": cut_arguments(arguments, tokens, count)}}


def cut_arguments(arguments: str, tokens: int, count: Count) -> str:
    """The text of a JSON object in about `tokens` tokens: long strings lose their middle, long lists their end."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = {"raw": arguments}
    longest = max(64, tokens * 4)
    text = arguments
    while longest >= 16:
        text = json.dumps(_shortened(value, longest), ensure_ascii=False)
        if count(text) <= tokens:
            return text
        longest //= 2
    if count(text) > tokens:
        return json.dumps({"cut": f"{len(arguments):,} characters of arguments"}, ensure_ascii=False)
    return text


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        if len(value) <= longest:
            return value
        head = int(longest * _HEAD_SHARE)
        end = value[len(value) - (longest - head) :]
        return f"{value[:head]} [… {len(value) - longest:,} characters cut …] {end}"
    if isinstance(value, dict):
        return {k: _shortened(v, longest) for k, v in value.items()}
    if isinstance(value, list):
        most = max(2, longest // 8)
        kept = [_shortened(v, longest) for v in value[:most]]
        return [*kept, f"[… {len(value) - most} more items cut …]"] if len(value) > most else kept
    return value


def without_media(message: Message) -> Message:
    """The message with images and other media replaced by a marker that tells kind and size."""
    content = message.get("content")
    if not isinstance(content, list) or not any(isinstance(p, dict) and p.get("type") in IMAGE_PARTS for p in content):
        return message
    parts = [
        {"type": "text", "text": media_marker(p)} if isinstance(p, dict) and p.get("type") in IMAGE_PARTS else p
        for p in content
    ]
    return {**message, "content": parts}


def media_marker(part: Mapping[str, Any]) -> str:
    """What stands for a part that is not text: `[image: image/png, 48,231 bytes of base64, cleared]`."""
    kind = str(part.get("type", "media")).removeprefix("input_").removesuffix("_url")
    source = part.get("image_url") or part.get("source") or part.get("input_audio") or part.get("file") or {}
    url = source.get("url") if isinstance(source, Mapping) else source
    data = source.get("data") or source.get("file_data") if isinstance(source, Mapping) else None
    about = []
    if isinstance(url, str) and url.startswith("data:"):
        about += [url[5 : url.index(",")].split(";")[0] if "," in url else "", f"{len(url):,} bytes of base64"]
    elif isinstance(url, str) and url:
        about.append(url[:200])
    if isinstance(data, str):
        about += [str(source.get("media_type") or source.get("format") or ""), f"{len(data):,} bytes of base64"]
    return f"[{kind}: {', '.join([*filter(None, about), 'cleared'])}]"


__all__ = [
    "IMAGE_PARTS",
    "Count",
    "cut_arguments",
    "cut_call",
    "cut_message",
    "cut_text",
    "media_marker",
    "without_media",
]
