"""What a conversation's words are worth: every anchor and uncommon word, weighed by who used it and when.

Rules this module keeps:

- Each distinct chunk of text is analysed once; afterwards it is a lookup.
- A weight comes from the conversation itself (who wrote it, how lately, in how many messages), never from a list of
  words of some language or trade.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from watchkeeper.context.core.anchors import CHUNK, Kind, classify, quoted

Term = int
"""Number of a known anchor or word in its lexicon."""

_WORD = re.compile(r"[^\W_]{4,}")
_NON_LATIN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+")
MAX_WORD = 40

KIND_WEIGHT: dict[str, float] = {
    "url": 0.7,
    "email": 1.0,
    "path": 2.0,
    "file": 1.5,
    "host": 0.8,
    "uuid": 0.8,
    "sha": 1.0,
    "ref": 1.2,
    "version": 0.7,
    "date": 0.5,
    "money": 1.0,
    "number": 0.5,
    "id": 0.5,
    "symbol": 1.3,
    "quote": 0.6,
    "word": 0.04,
}
MAX_NUMBERS = 6
AGING = 0.5
LONE = 1.0  # fmt: skip


class Lexicon:
    """Numbers the anchors and words it meets and adds up what each sighting is worth."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[Kind | None] = []
        self.score: list[float] = []
        self.last: list[int] = []
        self._numbers: dict[str, Term] = {}
        self._chunks: dict[str, tuple[Term, ...]] = {}
        self._lines: dict[str, frozenset[Term]] = {}

    def terms(self, line: str) -> frozenset[Term]:
        """The anchors and words of one line."""
        known = self._lines.get(line)
        if known is None:
            chunks = self._chunks
            found: set[Term] = set()
            for chunk in CHUNK.findall(line):
                terms = chunks.get(chunk)
                if terms is None:
                    terms = chunks[chunk] = self._analyse(chunk)
                found.update(terms)
            if MAX_NUMBERS < 99 and len(found) > MAX_NUMBERS:
                numbers = [t for t in found if self.kinds[t] == "number"]
                if len(numbers) > MAX_NUMBERS:
                    found.difference_update(numbers)
            for phrase in quoted(line):
                found.add(self._number(phrase, "quote"))
            known = self._lines[line] = frozenset(found)
        return known

    def _analyse(self, chunk: str) -> tuple[Term, ...]:
        terms = {self._number(text, kind) for text, kind in classify(chunk)}
        if len(chunk) <= 400 and not terms:
            for word in _WORD.findall(chunk):
                if len(word) <= MAX_WORD and not word.isdigit():
                    terms.add(self._number(word, None))
            if not chunk.isascii():
                for run in _NON_LATIN.findall(chunk):
                    terms.update(self._number(run[i : i + 2], None) for i in range(len(run) - 1))
        return tuple(terms)

    def _number(self, text: str, kind: Kind | None) -> Term:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
            self.kinds.append(kind)
            self.score.append(0.0)
            self.last.append(0)
        elif kind is not None and self.kinds[number] is None:
            self.kinds[number] = kind
        return number

    def sight(self, terms: Iterable[Term], worth: float, index: int) -> None:
        """Count a sighting of each term in message `index`."""
        score, last = self.score, self.last
        for term in terms:
            score[term] += worth
            last[term] = index

    def weights(self, now: int) -> list[float]:
        """The worth of every term to one who goes on at message `now`: who used it and how often, how lately, its kind."""
        age = [0.0] + [n**-AGING for n in range(1, now + 1)]
        kind_weight = [KIND_WEIGHT[kind or "word"] for kind in self.kinds]
        out = [score * age[now - last] * kind for score, last, kind in zip(self.score, self.last, kind_weight, strict=True)]
        for t, kind in enumerate(self.kinds):
            if kind == "quote" and self.score[t] < LONE:
                out[t] *= 0.25
        return out
