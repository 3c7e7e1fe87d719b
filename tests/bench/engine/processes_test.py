"""Tests the measurement of processes that share weights. No size and no time is asserted."""

from __future__ import annotations

import json
import sys

import processes
import pytest


def test_processes_of_one_bundle_are_measured(tmp_path, program, monkeypatch):
    monkeypatch.setattr(processes, "WORK_SECONDS", 1.0)  # they have loaded by then
    monkeypatch.setattr(processes, "LOOKS", 2)
    folder = program("linnet-decode").parent
    bundle = processes.ROOT / "model/bundles/en-de"
    found = processes.measure(folder, bundle)
    for state in ("loaded", "working"):
        assert 0 < found[f"{state} private"] < found[f"{state} resident"]
        assert 0 < found[f"{state} further"] < found[f"{state} resident"]
    assert 0 < found["start of the libraries, wall"] < found["start of a server, wall"]
    facts = {"cpu": "x", "cores": 2, "features": [], "version": "y"}
    data = {"machine": facts, "rounds": 1, "bundles": {"en-de": found}}
    assert "| start of a server, wall |" in processes.markdown(json.loads(json.dumps(data)))


def test_process_that_ends_is_an_error():
    with (
        processes.running([sys.executable, "-c", "raise SystemExit(3)"]) as process,
        pytest.raises(SystemExit, match="ended with 3"),
    ):
        processes.wait_for_line(process)
