"""Tests the measurement of hostile texts at its smallest size; the long run searches for the worst.

The processor time that SECURITY.md promises is checked here: the law of the slices themselves is
TextSlicesTest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_texts import ACCEPTED, FRAGMENTS, PROSE, markdown, more_than_alone

HERE = Path(__file__).resolve().parent


def run(out: Path, programs: Path, *flags: str) -> dict:
    command = [sys.executable, HERE / "hostile_texts.py", "--programs", programs, "--out", out]
    done = subprocess.run(
        [str(word) for word in [*command, *flags]], capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*/hostile-texts.json")
    assert (path.parent / "hostile-texts.md").exists()
    return json.loads(path.read_text())["after"]


def test_report_compares_each_version_with_its_own_prose():
    def version(cost: float, wait: float) -> dict:
        texts = {PROSE: {"cpu_s_per_mb": 0.2, "status": "OK"}}
        texts["x"] = {"cpu_s_per_mb": cost, "status": "INVALID_ARGUMENT"}
        beside = {"cpu_s": [0.03, wait], "seconds": [0.1, 1]}
        alone = {"cpu_s": [0.02], "seconds": [0.02]}
        return {"alone": alone, "beside": beside, "texts": texts, "worst": []}

    machine = {"cpu": "X", "cores": 2, "features": [], "version": "1"}
    results = {"machine": machine, "bytes": 1_000_000, "before_version": "0"}
    text = markdown({**results, "before": version(2, 9), "after": version(0.25, 0.05)})
    assert "| `'x'` | 2.000 | 10.00 | INVALID_ARGUMENT | 0.250 | 1.25 | INVALID_ARGUMENT |" in text
    name = "beside eight such texts, processor time of the server"
    assert f"| {name} | 4515 | 9000 | 40 | 50 |" in text
    name = "**more than alone**, processor time of the server"
    assert f"| {name} | 4495 | 8980 | 20 | 30 |" in text
    assert "before" not in markdown({**results, "before": None, "after": version(0.25, 0.05)})


@pytest.mark.slow
def test_measures_and_writes_both_files(tmp_path, program):
    measured = run(tmp_path, program("linnet-server").parent, "--calls", "2", "--rounds", "2")
    assert list(measured["texts"]) == [PROSE, *FRAGMENTS]
    assert len(measured["beside"]["cpu_s"]) == 2


@pytest.mark.long
def test_no_text_that_a_search_finds_breaks_the_law(tmp_path, program):
    """A text costs at most 1.5 times as much as prose until it is refused, and an interactive call
    of another client waits for at most 50 ms of CPU time more than alone."""
    flags = ["--search", "1800", "--calls", "50"]
    measured = run(tmp_path, program("linnet-server").parent, *flags)
    limit = 1.5 * measured["texts"][PROSE]["cpu_s_per_mb"]
    refused = {
        text: each["cpu_s_per_mb"]
        for text, each in measured["texts"].items()
        if each["status"] not in ACCEPTED
    }
    refused.update({text: value for value, text in measured["worst"]})
    assert {text: value for text, value in refused.items() if value > limit} == {}
    assert max(more_than_alone(measured, "cpu_s")) <= 0.05
