"""Throws away measurements during which the machine changed its speed.

A virtual machine's speed drifts. A fixed loop is timed before and after each round of a benchmark;
if its time changed by more than a share, the round is measured again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
EXTRA_ROUNDS = 10  # that may be thrown away besides as many as there are


class Unsteady(Exception):
    """The machine's speed changed in too many rounds."""


class Drift:
    """Allows a drift of `max_drift`, a share, within each of `rounds` rounds; `loop_seconds` times
    the loop (machine.loop_seconds)."""

    def __init__(self, max_drift: float, loop_seconds: Callable[[], float], rounds: int):
        self._max_drift = max_drift
        self._loop_seconds = loop_seconds
        self._most = rounds + EXTRA_ROUNDS
        self.thrown = 0

    def steady(self, measure: Callable[[], T]) -> T:
        """The result of the first call of `measure` in which the machine kept its speed. Raises
        Unsteady once as many rounds as there are, and ten, were thrown away."""
        while True:
            before = self._loop_seconds()
            found = measure()
            if abs(self._loop_seconds() / before - 1) <= self._max_drift:
                return found
            self.thrown += 1
            print(f"{self.thrown} rounds thrown away", file=sys.stderr)
            if self.thrown >= self._most:
                raise Unsteady(f"{self.thrown} rounds were thrown away: stop what else runs here")


def add_max_drift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-drift", type=float, default=0.1, metavar="SHARE",
        help="change of the fixed loop within a valid round [%(default)s]")  # fmt: skip


def note(max_drift: float | None) -> str:
    """The sentence about it in a report, after another one; empty for results from before the
    check."""
    if max_drift is None:
        return ""
    return f" Rounds in which a fixed loop drifted by more than {max_drift:.0%} do not count."
