"""Tests that rounds in which the machine drifted do not count. No time is measured."""

from __future__ import annotations

import itertools

import pytest
from drift import Drift, Unsteady


def test_round_with_drift_is_measured_again():
    loop = iter([1.0, 1.2, 1.0, 0.8, 1.0, 1.1, 1.0, 0.9])
    drift = Drift(0.11, lambda: next(loop), rounds=3)
    values = iter("abcd")
    assert drift.steady(lambda: next(values)) == "c"
    assert drift.steady(lambda: next(values)) == "d"
    assert drift.thrown == 2


def test_machine_that_never_keeps_its_speed_is_an_error():
    drift = Drift(0.1, itertools.cycle([1.0, 2.0]).__next__, rounds=2)
    with pytest.raises(Unsteady, match="12 rounds were thrown away: stop what else runs here"):
        drift.steady(lambda: None)
