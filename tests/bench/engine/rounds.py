"""Engines measured in turn, in rounds in which the machine kept its speed (drift.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import engines
from drift import Drift
from engines import Engine, Unavailable

OTHERS_ROUNDS = 3  # of engines without a target


def repeats(batch: int, beam: int) -> int:
    """The number of runs of an engine per turn: one if a run takes seconds, more if it is fast."""
    return max(1, min(5, 16 // (batch * beam)))


def measure_group(
    runners: list[Engine],
    batch: int,
    beam: int,
    rounds: int,
    max_drift: float,
    loop_seconds: Callable[[], float],
    always: Collection[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Maps engines to their target tokens per second in each round, or to the reason why not.
    Engines that are not among `always` take part in the first rounds only. Raises
    drift.Unsteady."""
    found: dict[str, dict[str, Any]] = {runner.name: {"rounds": []} for runner in runners}
    alive = list(runners)
    drift = Drift(max_drift, loop_seconds, rounds)

    def speeds_of(turn: int) -> dict[str, float]:
        taking = [r for r in alive if turn < OTHERS_ROUNDS or always is None or r.name in always]
        speeds: dict[str, float] = {}
        for runner in engines.in_turn(taking, turn):
            engines.settle()
            try:
                measured = runner.measure(batch, beam, repeats(batch, beam))
            except Unavailable as error:
                found[runner.name] = {"unavailable": str(error)}
                alive.remove(runner)
                continue
            speeds[runner.name] = round(median(measured.tokens_per_second()), 2)
        return speeds

    for turn in range(rounds):
        for name, speed in drift.steady(partial(speeds_of, turn)).items():
            found[name]["rounds"].append(speed)
    for runner in alive:
        found[runner.name]["label"] = runner.label
        found[runner.name]["peak_bytes"] = runner.peak
        found[runner.name]["working_bytes"] = runner.working
    return found
