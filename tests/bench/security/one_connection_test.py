"""Tests the measurement of one connection at its smallest size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from one_connection import markdown

HERE = Path(__file__).resolve().parent


def test_measures_and_writes_both_files(tmp_path, program):
    command = [sys.executable, HERE / "one_connection.py", "--calls", "200", "--warm-up", "100"]
    command += ["--slices", "2", "--programs", program("linnet-server").parent, "--out", tmp_path]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*/one-connection.json")
    slices = json.loads(path.read_text())["slices"]
    assert [each["calls"] for each in slices] == [100, 100]
    assert slices[0]["resident_bytes"] > 0
    assert (path.parent / "one-connection.md").exists()


def test_growth_is_per_call_after_the_first_slice():
    def piece(resident: int, cpu: float) -> dict[str, float]:
        numbers = {"calls": 1000, "seconds": 1.0}
        return {**numbers, "resident_bytes": resident, "cpu_us_per_call": cpu}

    machine = {"cpu": "X", "cores": 2, "features": [], "version": "1"}
    results = {"machine": machine, "warm_up": 10, "slices": [piece(5_000, 100), piece(9_000, 150)]}
    text = markdown(results)
    assert "grew by 4.0 bytes a call" in text
    assert "is 1.50 of the first one's" in text
    assert "| 2,000 | 150 | 0.0 | 1.0 |" in text
