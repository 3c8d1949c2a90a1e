"""What people typed, word for word, within a budget.

Rules this module keeps:

- A person's words are copied, never rephrased; what is cut is replaced by a visible mark.
- Text a host put into a user turn (tagged blocks, notices in brackets, documents loaded between a tool result and the
  model's next step) is told apart by its shape, not by the phrases of any vendor.
- Short messages are kept whole before long ones get more room; the first and the newest have twice the room of those
  between them; if messages must go, those in the middle go, and their number is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_QUOTE = 4_000
"""Characters of one message that are ever quoted."""
LEAST_QUOTE = 160
"""Below this many characters a cut quote says too little: whole messages are left out instead."""
LOADED_DOCUMENT = 1_500
"""Characters from which text that follows a tool result directly is a loaded document, not an interjection."""

_BLOCK = re.compile(r"^[ \t]*<([A-Za-z][\w:-]*)(?: [^<>\n]*)?>.*?</\1>[ \t]*", re.S | re.M)
_NOTICE = re.compile(r"\s*\[[^\[\]\n]{1,160}\]\s*")
_HTML_TAGS = (
    "a b body br button code div em form h1 h2 h3 h4 head html i img input label li ol option p pre script select span "
    "strong style svg table tbody td template textarea th thead tr ul"
)
_HTML = frozenset(_HTML_TAGS.split())


@dataclass(frozen=True, slots=True)
class Quote:
    """One message a person typed: its place in the messages, the text kept, and how many characters were cut."""

    index: int
    text: str
    cut: int = 0


def typed_text(text: str, *, after_tool: bool = False) -> str:
    """The part of a user message that a person typed; empty when a host wrote all of it.

    `after_tool` says that the message directly follows a tool result, where hosts load documents.
    """
    if after_tool and len(text) > LOADED_DOCUMENT:
        return ""
    if "<" in text:
        rest = _BLOCK.sub(lambda block: block[0] if block[1].lower() in _HTML else "", text)
        if len(rest) < len(text):
            rest = rest.strip()
            # A lone heading over a tagged block belongs to the block.
            text = "" if len(rest) < 120 and rest.startswith("#") else rest
    if _NOTICE.fullmatch(text):
        return ""
    return text.strip()


def abridge(text: str, limit: int) -> str:
    """The text, or its beginning and a little of its end around a mark that says how much is missing."""
    if len(text) <= limit:
        return text
    tail = limit // 6
    head = limit - tail
    start, end = text[:head], text[len(text) - tail :]
    if " " in start[-40:]:
        start = start[: start.rindex(" ")]
    if " " in end[:40]:
        end = end[end.index(" ") + 1 :]
    return f"{start} […{len(text) - len(start) - len(end)} characters…] {end}"


def choose_quotes(typed: Sequence[tuple[int, str]], room: int) -> tuple[list[Quote], int]:
    """Quotes in order that together hold about `room` characters, and how many messages were left out.

    `typed` is (index of the message, what was typed), in order.
    """
    # How many messages stay is halved towards: one at a time would be quadratic in a conversation of short messages.
    low, high = 0, len(typed)
    while low < high:
        kept_count = (low + high + 1) // 2
        if _fair_limit([len(text) for _, text in _outer(typed, kept_count)], room) >= LEAST_QUOTE:
            low = kept_count
        else:
            high = kept_count - 1
    texts = _outer(typed, low)
    omitted = len(typed) - low
    if not texts:
        return [], omitted
    limit = _fair_limit([len(text) for _, text in texts], room)
    quotes = []
    for place, (index, text) in enumerate(texts):
        bound = min(MAX_QUOTE, limit * 2 if place in (0, len(texts) - 1) else limit)
        kept = abridge(text, bound)
        quotes.append(Quote(index, kept, len(text) - bound if len(text) > bound else 0))
    return quotes, omitted


def _outer(typed: Sequence[tuple[int, str]], count: int) -> list[tuple[int, str]]:
    """The first and the last ones, `count` together."""
    first = (count + 1) // 2
    return [*typed[:first], *typed[len(typed) - (count - first) :]] if count < len(typed) else list(typed)


def _fair_limit(lengths: list[int], room: int) -> int:
    """The largest limit so that every message cut to it (the first and last to twice it) fits the room."""
    if sum(min(n, MAX_QUOTE) for n in lengths) <= room:
        return MAX_QUOTE
    low, high = 0, MAX_QUOTE
    while low < high:
        middle = (low + high + 1) // 2
        edge = len(lengths) - 1
        total = sum(min(n, MAX_QUOTE, middle * 2 if place in (0, edge) else middle) for place, n in enumerate(lengths))
        if total <= room:
            low = middle
        else:
            high = middle - 1
    return low
