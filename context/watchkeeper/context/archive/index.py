"""What search sees of a message, and how a question is put to the index. Pure.

Rules:
- A message's searchable text is its content and the values of its tool-call arguments, unescaped and without JSON keys.
- It is cut at line ends into pieces of about `PIECE` characters. A piece of an argument or a result carries, as its
  head, the call it belongs to: what a result says rarely names the file that it came from.
- Words are runs of letters, digits and underscores. Scripts written without spaces are indexed by pairs of characters.
- A question is words, any of which may match, and neighbouring pairs of them, which weigh more; a piece with more of
  the different words goes before one with many of the same. Pieces that mostly repeat a better one are left out.

Measured (words around an identifier that the last 8,000 tokens no longer show; share found among five pieces): plain
bm25 .56; with heads .64; forty words instead of sixteen, and pairs, .66; coverage, and no repeats, .67 to .68.
Stemming, splitting compound names and preferring recent pieces did not help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..store import Candidate, Chunk, Query

PIECE = 1200
OVERLAP = 200
_HEAD = 240
_SHORT_ARGUMENT = 200
_MAX_WORDS = 40

WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f\uac00-\ud7af]+")
_PHRASE = re.compile(r'"([^"]{2,200})"')
_STOP = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you all any can had her was one our out has him his how its let may new now old see "
        "two way who did get got use this that with from have will need should would could there then than when what "
        "which your into also just only some them they were been being about after before because these those here "
        "make sure does done like know want using used next first",
    )
)


# --- messages to pieces -----------------------------------------------------------------------------


def content_text(content: Any) -> str:
    """The text of a message's content, whatever its shape; of parts that are not text, their strings, no image data."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_text, content)))
    return ""


def arguments_text(arguments: Any) -> str:
    """Tool-call arguments as text: the values, unescaped."""
    return "\n".join(_strings(_decoded(arguments)))


def searchable_text(message: Mapping[str, Any]) -> str:
    """All of a message that can be found."""
    return "\n".join(text for _, text in _sections(message, {}))


def chunks_of(message: Mapping[str, Any], heads: Mapping[str, str]) -> tuple[Chunk, ...]:
    """The pieces of a message. `heads` gives the head of each tool call by its id, for results."""
    out: list[Chunk] = []
    at = 0
    for head, text in _sections(message, heads):
        for start, piece in _pieces(text):
            if piece.strip():
                out.append(Chunk(at + start, head, piece, _character_pairs(piece)))
        at += len(text) + 1
    return tuple(out)


def call_heads(message: Mapping[str, Any]) -> dict[str, str]:
    """For each tool call of a message, by id: its name and short arguments on one line."""
    return {str(call.get("id")): _call_head(call) for call in message.get("tool_calls") or ()}


def _sections(message: Mapping[str, Any], heads: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    content = content_text(message.get("content"))
    if content:
        yield heads.get(str(message.get("tool_call_id")), "") if message.get("role") == "tool" else "", content
    for call in message.get("tool_calls") or ():
        text = arguments_text((call.get("function") or {}).get("arguments"))
        if text:
            yield _call_head(call), text


def _call_head(call: Mapping[str, Any]) -> str:
    function = call.get("function") or {}
    short = [s for s in _strings(_decoded(function.get("arguments"))) if len(s) <= _SHORT_ARGUMENT]
    return " ".join(" ".join([str(function.get("name", "")), *short]).split())[:_HEAD]


def _decoded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    for key in ("text", "thinking", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return "\n".join(s for s in _strings(part) if not s.startswith("data:") and len(s) < 20_000)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            cut = text.rfind("\n", start + PIECE // 2, end)
            end = cut + 1 if cut >= 0 else end
        yield start, text[start : end + OVERLAP if end < len(text) else end]
        start = end


def _character_pairs(text: str) -> str:
    return " ".join(pair for run in _UNSPACED.findall(text) for pair in _pairs_of(run))


def _pairs_of(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for a, b in pairwise(run):
        yield a + b


# --- questions --------------------------------------------------------------------------------------


def parse_query(text: str) -> Query:
    """A question in plain words; "quoted words" are kept together."""
    found = [w.lower() for w in WORD.findall(_UNSPACED.sub(" ", text))]
    words = [w for w in found if w not in _STOP and (len(w) > 2 or w.isdigit() or not w.isascii())]
    pairs = [p for run in _UNSPACED.findall(text) for p in _pairs_of(run)]
    if not words and not pairs:
        words = found  # nothing but small words: better they than nothing
    quoted = [tuple(w.lower() for w in WORD.findall(q)) for q in _PHRASE.findall(text)]
    phrases = [q for q in quoted if len(q) > 1] + [p for p in pairwise(found) if not _STOP.issuperset(p)]
    stems = [w[: len(w) - 2] for w in words if not w.isascii() and len(w) > 5]
    return Query(
        tuple(dict.fromkeys(words + pairs))[:_MAX_WORDS],
        tuple(dict.fromkeys(phrases))[:_MAX_WORDS],
        tuple(dict.fromkeys(stems))[:_MAX_WORDS],
    )


def rank(query: Query, candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """The best `limit` candidates: more of the different words first, repetitions left out."""
    scored: list[Candidate] = []
    for found in candidates:
        low = f"{found.head}\n{found.text}".lower()
        share = sum(word in low for word in query.words) / max(1, len(query.words))
        scored.append(replace(found, score=found.score * (1 + share)))
    scored.sort(key=lambda c: (-c.score, -c.message_id, c.start))
    kept: list[Candidate] = []
    shown: list[frozenset[str]] = []
    for found in scored:
        lines = frozenset(line for raw in found.text.split("\n") if len(line := raw.strip()) > 12)
        if lines and any(len(lines & seen) > 0.3 * min(len(lines), len(seen)) for seen in shown if seen):
            continue
        shown.append(lines)
        kept.append(found)
        if len(kept) == limit:
            break
    return kept


def excerpt(text: str, start: int, length: int) -> str:
    """`length` characters of a message's searchable text around the piece at `start`."""
    begin = max(0, min(start - (length - PIECE) // 2, len(text) - length))
    return text[begin : begin + length]
