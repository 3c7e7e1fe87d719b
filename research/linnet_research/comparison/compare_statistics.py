"""Groups runs of a comparison by mixer and takes means with intervals, for table and plots."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, median, stdev
from typing import Any

from linnet_model.config import ConfigError


def name_of(results: dict[str, Any]) -> str:
    """Names a comparison by its recipe and device: comparison-cpu."""
    return f"{results['recipe']['bundle']['name']}-{results['device']}"


def by_mixer(results: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    runs = defaultdict(list)
    for run in results["runs"]:
        runs[run["mixer"]].append(run)
    return runs


def ended(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that did not diverge: they have scores."""
    return [run for run in runs if run["scores"]]


def measures_of(results: dict[str, Any]) -> list[str]:
    runs = ended(results["runs"])
    if not runs:
        raise ConfigError(f"all trainings of {name_of(results)} diverged: lower its learning rate")
    return list(runs[0]["scores"])


def ratios(values: dict[str, list[float]]) -> dict[str, float]:
    """Returns mixer -> median over the rounds of its value divided by that of the first mixer."""
    first = values[next(iter(values))]
    return {
        m: median(v / f for v, f in zip(found, first, strict=True)) for m, found in values.items()
    }


# 97.5 % quantiles of Student's t by degrees of freedom; more seeds have that of 10, a little wide.
STUDENT_T = (0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def score_of(runs: list[dict[str, Any]], measure: str) -> tuple[float, float, float]:
    """Returns a score and its 95 % interval: of one run over resampled test sets, of several that
    of the mean over seeds (Student's t)."""
    scores = [run["scores"][measure] for run in runs]
    if len(scores) == 1:
        score, low, high = scores[0]
        return score, low, high
    return mean_of([score[0] for score in scores])


def mean_of(values: list[float]) -> tuple[float, float, float]:
    """Returns the mean of two or more values and its 95 % interval (Student's t)."""
    quantile = STUDENT_T[min(len(values), len(STUDENT_T)) - 1]
    half = quantile * stdev(values) / len(values) ** 0.5
    return mean(values), mean(values) - half, mean(values) + half
