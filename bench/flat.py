"""Is a series of measurements flat? The criterion of the soak test; pure.

Rules: only the second half counts, for in the first half caches fill. The slope is Theil and Sen's, the median of the
slopes of all pairs, which single outliers do not move; its 95% interval is Sen's, from Kendall's variance. Memory grows
when the interval lies above zero and what it adds in the second half is more than noise: a share of the whole or some
megabytes, whichever is more. Too few samples are no verdict, and no verdict is no pass.

Source: Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63 (1968).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEAST_SAMPLES = 8
"""In the second half."""
GROWTH_SHARE = 0.03
Z_95 = 1.96
Sample = tuple[float, float, int]
"""Time in seconds, value, and group: only samples of one group are compared (one life of a browser, say)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``per_hour``, ``low`` and ``high``: slope and its interval, in units an hour. ``growth``: in the second half."""

    flat: bool
    why: str
    first: float = 0.0
    last: float = 0.0
    per_hour: float = 0.0
    low: float = 0.0
    high: float = 0.0
    growth: float = 0.0
    samples: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def judged(samples: Sequence[Sample], noise: float) -> Verdict:
    """``noise``: what may be added in the second half without being growth, in units."""
    half = samples[len(samples) // 2 :]
    if len(half) < LEAST_SAMPLES:
        return Verdict(False, f"{len(half)} samples in the second half are no verdict", samples=len(half))
    slopes = sorted(
        (later[1] - sooner[1]) / (later[0] - sooner[0])
        for number, sooner in enumerate(half)
        for later in half[number + 1 :]
        if later[2] == sooner[2] and later[0] > sooner[0]
    )
    if not slopes:
        return Verdict(False, "no two samples can be compared", samples=len(half))
    sizes = [sum(sample[2] == group for sample in half) for group in {sample[2] for sample in half}]
    spread = Z_95 * math.sqrt(sum(n * (n - 1) * (2 * n + 5) for n in sizes) / 18)
    low = slopes[max(0, math.floor((len(slopes) - spread) / 2))]
    high = slopes[min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))]
    slope = statistics.median(slopes)
    growth = slope * (half[-1][0] - half[0][0])
    allowed = max(noise, GROWTH_SHARE * statistics.median(sample[1] for sample in half))
    grows = low > 0 and growth > allowed
    why = f"{'+' if growth >= 0 else ''}{growth:.1f} in the second half, {'more' if grows else 'within'} {allowed:.1f}"
    if low <= 0:
        why = f"no growth that is sure (from {low * 3600:.1f} to {high * 3600:.1f} an hour)"
    return Verdict(
        not grows, why, samples[0][1], samples[-1][1], slope * 3600, low * 3600, high * 3600, growth, len(half)
    )


def counts_judged(samples: Sequence[Sample], spare: float) -> Verdict:
    """For counts, such as open files: the last quarter may lie higher than the second one by ``spare`` at most."""
    quarter = len(samples) // 4
    if quarter < LEAST_SAMPLES // 2:
        return Verdict(False, f"{len(samples)} samples are no verdict", samples=len(samples))
    before = statistics.median(sample[1] for sample in samples[quarter : 2 * quarter])
    after = statistics.median(sample[1] for sample in samples[-quarter:])
    flat = after - before <= spare
    why = f"{before:g} in the second quarter, {after:g} in the last"
    return Verdict(flat, why, samples[0][1], samples[-1][1], growth=after - before, samples=len(samples))
