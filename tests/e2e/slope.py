"""The growth rate of a series, with a confidence interval."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

# The samples of a block are averaged, because consecutive samples are not independent.
BLOCKS = 24
# Student's t for 22 degrees of freedom, one-sided at 97.5 %.
T = 2.074


@dataclass(frozen=True)
class Slope:
    """Growth per hour as a share of the mean, with the bounds of its 95 % interval."""

    per_hour: float
    low: float
    high: float


def fit(seconds: list[float], values: list[float]) -> Slope:
    """Fits the means of BLOCKS equal parts of the samples by least squares."""
    size = len(values) // BLOCKS
    assert size > 0, f"{len(values)} samples are fewer than {BLOCKS}"
    x = [statistics.mean(seconds[i * size : (i + 1) * size]) / 3600 for i in range(BLOCKS)]
    y = [statistics.mean(values[i * size : (i + 1) * size]) for i in range(BLOCKS)]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    rest = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    half = T * math.sqrt(rest / (BLOCKS - 2) / spread)
    return Slope(*(part / mean_y for part in (slope, slope - half, slope + half)))
