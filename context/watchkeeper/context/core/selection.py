"""Which units to quote and which anchors to list bare: greedy cover, most worth per token first.

Rules this module keeps:

- Worth is counted once: a term that something chosen shows, or that stays visible anyway, adds nothing more.
- A bare anchor is worth a part of what a quoted line with it is worth; the line can still earn the rest.
- Deterministic: equal bids are settled by place in the source.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from watchkeeper.context.core.lexicon import Lexicon, Term
from watchkeeper.context.core.units import Unit, estimate

BARE: Final = 0.7
"""Share of an anchor's worth that its bare name has."""
LONG: Final = 30
"""Estimated tokens from which a unit is trimmed to what is new in it."""


_NO_FACTORS: Final[Mapping[int, float]] = {}


@dataclass(frozen=True, slots=True)
class Pick:
    """A unit to quote, or an `anchor` of it to list bare. `cost` is in estimated tokens."""

    unit: Unit
    cost: float
    anchor: Term | None = None


class Chooser:
    """Chooses from units within rooms, remembering between calls what is shown already."""

    def __init__(self, lexicon: Lexicon, weights: Sequence[float], covered: Iterable[Term]) -> None:
        self._lexicon = lexicon
        self._weights = weights
        self._left = list(weights)
        for term in covered:
            self._left[term] = 0.0

    def choose(self, units: Sequence[Unit], room: float, factor: Mapping[int, float] = _NO_FACTORS) -> list[Pick]:
        """Picks in the order chosen; `factor` raises or lowers single units, by their number."""
        left, weights, texts, kinds = self._left, self._weights, self._lexicon.texts, self._lexicon.kinds
        worth = left.__getitem__
        listable = [kind is not None and rest > 0 for kind, rest in zip(kinds, left, strict=True)].__getitem__
        home: dict[Term, Unit] = {}
        # What is bid for its tokens, its place among equal bids, and what it is: a unit, or an anchor of it; the cost.
        bids: list[tuple[float, int, Unit, Term | None, float]] = []
        for unit in units:
            if value := sum(map(worth, unit.terms)):
                bid = -value * factor.get(unit.number, 1.0) / unit.cost
                bids.append((bid, len(bids), unit, None, unit.cost))
                for term in filter(listable, unit.terms):
                    home.setdefault(term, unit)
        for term, unit in home.items():
            cost = estimate(texts[term]) * 1.2 + 1.5
            bids.append((-BARE * left[term] / cost, len(bids), unit, term, cost))
        heapq.heapify(bids)
        picks: list[Pick] = []
        while bids and room > 4:
            bid, order, unit, anchor, cost = heapq.heappop(bids)
            if cost > room:
                continue
            if anchor is not None:
                if left[anchor] == weights[anchor]:
                    left[anchor] *= 1 - BARE
                    picks.append(Pick(unit, cost, anchor))
                    room -= cost
                continue
            now = -sum(map(worth, unit.terms)) * factor.get(unit.number, 1.0) / unit.cost
            if now > bid * (1 - 1e-9):  # something chosen since shows a part of it: it bids again for the rest
                if now < 0:
                    heapq.heappush(bids, (now, order, unit, None, cost))
                continue
            if unit.cost > LONG:
                unit = unit.trimmed([t for t in unit.terms if left[t] > 0 and kinds[t] is not None], self._lexicon)
            for term in unit.terms:
                left[term] = 0.0
            picks.append(Pick(unit, unit.cost))
            room -= unit.cost
        return picks
