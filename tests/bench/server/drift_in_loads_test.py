"""Tests that capacity.py and overload.py repeat a run in which the machine drifted."""

from __future__ import annotations

import argparse
import contextlib
from types import SimpleNamespace
from typing import Any

import capacity
import overload
import pytest
from drift import Drift


def report(rate: float) -> dict[str, Any]:
    """The report of linnet-load on a run with so many answers a second."""
    late = dict.fromkeys(("p50", "p90", "p99"), 1.0)
    tokens = {"target_tokens_per_second": 1.0, "source_tokens_per_second": 1.0}
    rates = {"answered_per_second": rate, "goodput_per_second": rate, "offered_per_second": rate}
    status = {"OK": {"calls": 1, "from_intended_ms": late, "from_sent_ms": late}}
    return {**rates, **tokens, "by_status": status, "texts": "texts", "in_flight": 40}


def test_capacity_is_that_of_a_steady_run(monkeypatch: pytest.MonkeyPatch):
    loop = iter([1.0, 1.2, *[1.0] * 2, 1.0, 0.8, *[1.0] * 8])
    rates = iter([100.0, 90.0, 45.0, 46.0, 60.0, 70.0, 80.0])
    asked = []

    def load(settings: Any, servers: Any, cores: Any, *flags: str) -> dict[str, Any]:
        asked.append(flags[-1])
        return report(next(rates))

    monkeypatch.setattr(capacity, "load", load)
    monkeypatch.setattr(capacity, "resident_bytes", lambda server: 1)
    settings = argparse.Namespace(cores=[0, 1], seconds=1, parts=["one"], max_drift=0.1)
    settings.drift = Drift(0.1, lambda: next(loop), rounds=5)
    found = capacity.one(settings, SimpleNamespace())
    assert found["capacity"]["calls_per_second"] == 90
    assert [run["calls_per_second"] for run in found["shares"]] == [46, 60, 70, 80]
    assert asked == ["1s", "1s", "45.000", "45.000", "63.000", "72.000", "81.000"]
    assert found["max_drift"] == 0.1


def test_loads_are_shares_of_a_steady_capacity(monkeypatch: pytest.MonkeyPatch, tmp_path):
    running = SimpleNamespace(
        port="1", safety_factor=1.0, memory=lambda: 1.0, refused=lambda: {"deadline": 0.0}
    )
    loop = iter([1.0, 1.2, *[1.0] * 2, 1.0, 1.2, *[1.0] * 12])
    rates = iter([100.0, 80.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    asked = []

    def start_load(options: Any, core: int, address: str, file: Any, *flags: str) -> None:
        asked.append(dict(zip(flags[::2], flags[1::2], strict=True)).get("--rate"))

    monkeypatch.setattr(overload, "server", lambda *_: contextlib.nullcontext(running))
    monkeypatch.setattr(overload, "start_load", start_load)
    monkeypatch.setattr(overload, "report", lambda load: report(next(rates)))
    monkeypatch.setattr(overload.machine, "loop_seconds", lambda cores: next(loop))
    monkeypatch.setattr(overload.time, "sleep", lambda seconds: None)
    found = overload.measure(overload.parse(["--out", str(tmp_path)]), [0, 1], tmp_path)
    assert found["capacity_per_second"] == 80
    assert [run["goodput_per_second"] for run in found["loads"]] == [2, 3, 4, 5]
    assert asked[2:7] == ["40.00", "40.00", "80.00", "120.00", "240.00"]
    assert found["burst"]["goodput_per_second"] == 6
    assert found["two_clients"]["modest"]["goodput_per_second"] == 8
