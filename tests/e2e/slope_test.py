import random

import pytest
from slope import fit


def samples(per_hour: float, noise: float, hours: float = 2, seed: int = 1):
    """1000 samples, one every ten seconds."""
    chance = random.Random(seed)
    seconds = [10.0 * i for i in range(int(360 * hours))]
    return seconds, [1000 * (1 + per_hour * s / 3600) + chance.gauss(0, noise) for s in seconds]


@pytest.mark.parametrize("per_hour", [-0.1, 0, 0.01, 0.05])
def test_interval_contains_the_slope(per_hour):
    held = 0
    for seed in range(100):
        slope = fit(*samples(per_hour, noise=30, seed=seed))
        relative = per_hour / (
            1 + per_hour
        )  # relative to the mean, which is reached after one hour
        assert slope.low < slope.per_hour < slope.high
        held += slope.low <= relative <= slope.high
    assert held >= 88  # 95 of 100 minus three standard deviations


def test_exact_line_has_a_zero_interval():
    slope = fit(*samples(0.05, noise=0))
    assert slope.low == pytest.approx(slope.high)
    assert slope.per_hour == pytest.approx(0.05 / 1.05, rel=0.01)


def test_rejects_too_few_samples():
    with pytest.raises(AssertionError):
        fit([1.0] * 5, [1.0] * 5)
