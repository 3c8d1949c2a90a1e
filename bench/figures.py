"""Figures with their spread, and how a cost grows."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """Values of one thing measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_dict(self) -> dict[str, float]:
        """``median``, the quartiles ``q1`` and ``q3``, ``min``, ``max`` and ``n``."""
        ordered = sorted(self.values)
        q1, _, q3 = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
        told = {"median": self.median, "q1": q1, "q3": q3, "min": ordered[0], "max": ordered[-1]}
        return {name: _rounded(value) for name, value in told.items()} | {"n": len(ordered)}

    def __str__(self) -> str:
        """Median, and in brackets least and most."""
        if len(self.values) == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(min(self.values))}–{number(max(self.values))})"


def number(value: float) -> str:
    """With three digits that count, and commas; whole numbers whole."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """``k`` of cost = a · size^k, by least squares over the upper half of the points on logarithmic axes, where fixed
    costs no longer hide it. 1 is proportional, 2 quadratic, 0 does not grow. None where there are too few points."""
    upper = [(math.log(x), math.log(y)) for x, y in sorted(points)[len(points) // 2 - 1 :] if x > 0 and y > 0]
    if len(points) < 4 or len(upper) < 3:
        return None
    return statistics.linear_regression(*zip(*upper, strict=True)).slope
