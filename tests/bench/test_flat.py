"""The criterion of the soak test: what it calls growth, what it calls noise, and when it does not know."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def flat() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "flat.py"
    spec = importlib.util.spec_from_file_location("flat", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def noisy(slope: float, n: int = 60, noise: float = 2.0) -> list[tuple[float, float, int]]:
    """A sample every 30 seconds, around 130 MB."""
    chance = random.Random(7)
    return [(30.0 * k, 130 + slope * k + chance.gauss(0, noise), 0) for k in range(n)]


def test_a_leak_is_seen_through_noise_and_noise_is_no_leak(flat: ModuleType) -> None:
    leak = flat.judged(noisy(0.5), 3.0)
    assert not leak.flat and leak.low <= 60 <= leak.high, "half a megabyte each 30 s is 60 an hour"
    assert flat.judged(noisy(0.0), 3.0).flat
    assert flat.judged(noisy(-0.5), 3.0).flat


def test_what_fills_in_the_first_half_is_no_leak(flat: ModuleType) -> None:
    filling = [(30.0 * k, min(130.0 + 2 * k, 180) + (k % 3) / 10, 0) for k in range(60)]
    assert flat.judged(filling, 3.0).flat


def test_a_single_outlier_moves_nothing(flat: ModuleType) -> None:
    samples = noisy(0.0, noise=0.1)
    samples[-1] = (samples[-1][0], 900.0, 0)
    assert flat.judged(samples, 3.0).flat


def test_a_small_growth_that_is_sure_is_told_and_not_called_a_leak(flat: ModuleType) -> None:
    verdict = flat.judged([(30.0 * k, 130 + 0.01 * k, 0) for k in range(60)], 3.0)
    assert verdict.flat and verdict.low > 0 and 0.2 < verdict.growth < 0.4


def test_lives_of_browsers_are_compared_each_with_itself(flat: ModuleType) -> None:
    restarts = [(30.0 * k, 200.0 + 10 * (k // 8), k // 8) for k in range(64)]
    assert flat.judged(restarts, 3.0).flat, "each life is flat; that later ones began higher is no growth of one"
    growing = [(30.0 * k, 200.0 + 10 * (k % 8), k // 8) for k in range(64)]
    assert not flat.judged(growing, 3.0).flat


def test_too_few_samples_are_no_verdict_and_no_pass(flat: ModuleType) -> None:
    assert not flat.judged(noisy(0.0, n=10), 3.0).flat
    assert not flat.counts_judged(noisy(0.0, n=10), 1).flat


def test_counts_may_waver_and_not_climb(flat: ModuleType) -> None:
    assert flat.counts_judged([(30.0 * k, 17.0 + k % 3, 0) for k in range(40)], 1).flat
    assert not flat.counts_judged([(30.0 * k, 17.0 + k // 5, 0) for k in range(40)], 1).flat
