"""Engines measured in turn, in rounds in which the machine kept its speed.

A fixed loop is timed before and after each round, and a round in which it changed by more than
`max_drift` is thrown away.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from statistics import median
from typing import Any

import engines
from engines import Engine, Unavailable

OTHERS_ROUNDS = 3  # of engines without a target


class Unsteady(Exception):
    """The machine's speed changed in too many rounds."""


def add_max_drift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-drift", type=float, default=0.1, metavar="SHARE",
        help="change of the fixed loop within a valid round [%(default)s]")  # fmt: skip


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
    Engines that are not among `always` take part in the first rounds only. Raises Unsteady after
    as many thrown rounds as `rounds`, and ten."""
    found: dict[str, dict[str, Any]] = {runner.name: {"rounds": []} for runner in runners}
    alive = list(runners)
    turn = thrown = 0
    while turn < rounds:
        taking = [r for r in alive if turn < OTHERS_ROUNDS or always is None or r.name in always]
        speeds: dict[str, float] = {}
        before = loop_seconds()
        for runner in engines.in_turn(taking, turn):
            engines.settle()
            try:
                measured = runner.measure(batch, beam, repeats(batch, beam))
            except Unavailable as error:
                found[runner.name] = {"unavailable": str(error)}
                alive.remove(runner)
                continue
            speeds[runner.name] = round(median(measured.tokens_per_second()), 2)
        if abs(loop_seconds() / before - 1) > max_drift:
            thrown += 1
            if thrown >= rounds + 10:
                raise Unsteady(f"{thrown} rounds were thrown away: stop what else runs here")
            continue
        turn += 1
        for name, speed in speeds.items():
            found[name]["rounds"].append(speed)
    for runner in alive:
        found[runner.name]["label"] = runner.label
        found[runner.name]["peak_bytes"] = runner.peak
        found[runner.name]["working_bytes"] = runner.working
    if thrown:
        print(f"{thrown} rounds thrown away", file=sys.stderr)
    return found
