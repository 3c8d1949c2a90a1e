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
        home: dict[Term, Unit] = {}
        bids: list[tuple[float, int, Pick]] = []
        for unit in units:
            if value := sum([left[t] for t in unit.terms]):
                bids.append((-value * factor.get(unit.number, 1.0) / unit.cost, len(bids), Pick(unit, unit.cost)))
                for term in unit.terms:
                    home.setdefault(term, unit)
        for term, unit in home.items():
            if kinds[term] is not None and left[term] > 0:
                cost = estimate(texts[term]) * 1.2 + 1.5
                bids.append((-BARE * left[term] / cost, len(bids), Pick(unit, cost, term)))
        heapq.heapify(bids)
        picks: list[Pick] = []
        while bids and room > 4:
            bid, order, pick = heapq.heappop(bids)
            if pick.cost > room:
                continue
            if pick.anchor is not None:
                if left[pick.anchor] == weights[pick.anchor]:
                    left[pick.anchor] *= 1 - BARE
                    picks.append(pick)
                    room -= pick.cost
                continue
            unit = pick.unit
            now = -sum([left[t] for t in unit.terms]) * factor.get(unit.number, 1.0) / unit.cost
            if now > bid * (1 - 1e-9):  # something chosen since shows a part of it: it bids again for the rest
                if now < 0:
                    heapq.heappush(bids, (now, order, pick))
                continue
            if unit.cost > LONG:
                unit = unit.trimmed([t for t in unit.terms if left[t] > 0 and kinds[t] is not None], self._lexicon)
            for term in unit.terms:
                left[term] = 0.0
            picks.append(Pick(unit, unit.cost))
            room -= unit.cost
        return picks
