"""What a conversation's words are worth: every anchor and plain word, weighed by who used it, how often and how lately.

Rules this module keeps:

- Each distinct chunk of text is analysed once; afterwards it is a lookup.
- A weight comes from the conversation itself and from the shape of the text, never from a list of words.
- Weights are proportional to the chance that a term is needed again. Measured on agent sessions, the chance grows with
  the number of messages that have it, is several times higher once the agent itself wrote it, and falls with the number
  of messages since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final

from watchkeeper.context.core.anchors import CHUNK, MAX_CHUNK, Kind, classify, quoted

Term = int
"""Number of a known anchor or word in its lexicon."""

KIND_WEIGHT: Final[dict[Kind | None, float]] = {
    "url": 0.7, "email": 1.0, "path": 2.0, "file": 1.5, "host": 0.8, "uuid": 0.8, "sha": 1.0, "ref": 1.2,
    "version": 0.7, "date": 0.5, "money": 1.0, "number": 0.5, "id": 0.5, "symbol": 1.3, "quote": 0.6, None: 0.04,
}  # fmt: skip
"""None is a plain word. Rarely needed kinds that come in masses (numbers, words) weigh less."""
LONE_QUOTE: Final = 0.25
"""Factor of a quoted phrase that only one tool result shows: most are strings of code."""
AGING: Final = 0.5
"""A term last seen n messages ago weighs n to the minus this."""
MAX_NUMBERS: Final = 6
"""A line with more numbers is a row of data; its numbers are not anchors of their own."""

_SHORTEST, _LONGEST = 4, 40
_WORD: Final = re.compile(rf"[^\W_]{{{_SHORTEST},{_LONGEST}}}")
_UNSPACED: Final = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]+")


class _Chunks(dict[str, tuple[Term, ...]]):
    """Chunk -> its terms, analysed when first asked for."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def __missing__(self, chunk: str) -> tuple[Term, ...]:
        terms = self[chunk] = self._lexicon.analyse(chunk)
        return terms


class Lexicon:
    """Numbers the anchors and words it meets and adds up what each sighting is worth."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[Kind | None] = []
        self.plain: list[bool] = []
        """Whether the term is a plain word: its kind is None."""
        self._worth: list[float] = []
        self._last: list[int] = []
        self._numbers: dict[str, Term] = {}
        self._lines: dict[str, frozenset[Term]] = {}
        self._chunk = _Chunks(self).__getitem__

    def terms(self, line: str) -> frozenset[Term]:
        """The anchors and plain words of one line."""
        known = self._lines.get(line)
        if known is None:
            found = frozenset(chain.from_iterable(map(self._chunk, CHUNK.findall(line))))
            if len(found) > MAX_NUMBERS:
                numbers = [t for t in found if self.kinds[t] == "number"]
                if len(numbers) > MAX_NUMBERS:
                    found = found.difference(numbers)
            if phrases := quoted(line):
                found = found.union([self._number(phrase, "quote") for phrase in phrases])
            known = self._lines[line] = found
        return known

    def analyse(self, chunk: str) -> tuple[Term, ...]:
        """The terms of one chunk: its anchors, else its words; text without spaces between words counts in pairs."""
        if len(chunk) <= _LONGEST and chunk.isascii() and chunk.isalpha() and chunk[1:].islower():
            return (self._number(chunk, None),) if len(chunk) >= _SHORTEST else ()  # one plain word, as most are
        if anchors := classify(chunk):
            if len(anchors) == 1:
                return (self._number(*anchors[0]),)
            return tuple({self._number(text, kind) for text, kind in anchors})
        if len(chunk) > MAX_CHUNK:
            return ()
        words = [self._number(word, None) for word in _WORD.findall(chunk) if not word.isdigit()]
        if chunk.isascii():
            return tuple(words) if len(words) < 2 else tuple(set(words))
        terms = set(words)
        for run in _UNSPACED.findall(chunk):
            terms.update(self._number(run[i : i + 2], None) for i in range(len(run) - 1))
        return tuple(terms)

    def _number(self, text: str, kind: Kind | None) -> Term:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
            self.kinds.append(kind)
            self.plain.append(kind is None)
            self._worth.append(0.0)
            self._last.append(0)
        elif kind is not None and self.kinds[number] is None:
            self.kinds[number] = kind
            self.plain[number] = False
        return number

    def sight(self, terms: Iterable[Term], worth: float, index: int) -> None:
        """Count a sighting of each term in message `index`."""
        total, last = self._worth, self._last
        for term in terms:
            total[term] += worth
            last[term] = index

    def is_known(self, term: Term) -> bool:
        """Whether the term was sighted: terms of text that was only looked up were not."""
        return self._worth[term] > 0

    def weights(self, now: int) -> list[float]:
        """The worth of every term to one who goes on at message `now`; zero for terms never sighted."""
        age = [1.0] + [n**-AGING for n in range(1, now + 1)]
        out = []
        for worth, last, kind in zip(self._worth, self._last, self.kinds, strict=True):
            weight = worth * age[max(0, now - last)] * KIND_WEIGHT[kind]
            out.append(weight * LONE_QUOTE if kind == "quote" and worth < 1 else weight)
        return out
