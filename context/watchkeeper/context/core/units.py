"""Source lines in units that explain themselves: what may be quoted as evidence.

Rules this module keeps:

- A unit is one line, or neighbouring lines joined until an anchor among them has words to explain it.
- A line said twice is one unit, where it was said first.
- Trimming keeps whole words and leaves what is around the named terms; it never joins what was apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from watchkeeper.context.core.lexicon import Lexicon, Term
from watchkeeper.context.core.source_lines import Part, pieces

EXPLAINED: Final = 3
"""Plain words that make a unit explain its anchors."""
MAX_UNIT: Final = 160
"""Characters after which a unit ends, explained or not."""
MARGIN: Final = 50
"""Characters that trimming leaves on both sides of what is wanted."""
_MARK: Final = 1.5
_WORD_END: Final = 24
_WIDE: Final = re.compile("[\u2e80-\U0010ffff]+")


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Lines of one part: their place among all units, their terms, and their estimated tokens."""

    number: int
    part: Part
    text: str
    terms: frozenset[Term]
    cost: float

    def trimmed(self, wanted: Iterable[Term], lexicon: Lexicon) -> Unit:
        """The unit reduced to the surroundings of the wanted terms; itself if that saves little."""
        text = self.text
        spans = [
            (at, at + len(name)) for name in map(lexicon.texts.__getitem__, wanted) if (at := text.find(name)) >= 0
        ]
        if not spans:
            return self
        start = max(0, min(spans)[0] - MARGIN)
        end = min(len(text), max(stop for _, stop in spans) + MARGIN)
        if end - start > len(text) - MARGIN // 2:
            return self
        if start and (blank := text.find(" ", start, start + _WORD_END)) > 0:
            start = blank
        if end < len(text) and (blank := text.rfind(" ", end - _WORD_END, end)) > 0:
            end = blank
        kept = text[start:end].strip()
        terms = frozenset(t for t in self.terms if lexicon.texts[t] in kept)
        return Unit(self.number, self.part, kept, terms, estimate(kept) + _MARK)


class Units:
    """Collects units part by part."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.all: list[Unit] = []
        self._known: set[str] = set()

    def add(self, part: Part) -> set[Term]:
        """Take in a part; all terms it has."""
        plain = self.lexicon.plain.__getitem__
        here: set[Term] = set()
        lines: list[str] = []
        words = length = 0
        terms: frozenset[Term] = frozenset()
        for piece, found in self._lines(part.text):
            here |= found
            if piece in self._known:
                continue
            self._known.add(piece)
            lines.append(piece)
            terms = terms | found if terms else found
            length += len(piece)
            words += sum(map(plain, found))
            if words >= EXPLAINED or length > MAX_UNIT:
                self._append(part, lines, terms)
                lines, terms = [], frozenset()
                words = length = 0
        if lines:
            self._append(part, lines, terms)
        return here

    def _lines(self, text: str) -> Iterator[tuple[str, frozenset[Term]]]:
        for piece in pieces(text):
            if found := self.lexicon.terms(piece):
                yield piece, found

    def _append(self, part: Part, lines: list[str], terms: frozenset[Term]) -> None:
        text = "\n".join(lines)
        self.all.append(Unit(len(self.all), part, text, terms, estimate(text) + _MARK))


def estimate(text: str) -> float:
    """Tokens of a short text, roughly; a caller that needs to be exact counts and corrects."""
    if text.isascii():
        return len(text) / 3.4
    wide = len(text) - len(_WIDE.sub("", text))
    ascii_only = len(text.encode("ascii", "ignore"))
    other = len(text) - ascii_only - wide
    return ascii_only / 3.4 + wide * 0.9 + other * 0.5
