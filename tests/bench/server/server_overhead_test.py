"""Tests the measurement of the server's overhead at its smallest size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sentences import sentences
from server_overhead import markdown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="pins to two cores")
def test_both_measurements_run_and_are_kept(tmp_path, program):
    def run(*flags: str) -> dict:
        command = [sys.executable, HERE / "server_overhead.py", *flags, "--rounds", "1"]
        command += ["--programs", program("linnet-load").parent, "--out", tmp_path]
        command += ["--sentences", "8", "--batch", "2", "--seconds", "0.5", "--beam", "1"]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        (path,) = tmp_path.glob("*/server-overhead.json")
        return json.loads(path.read_text())

    first = run("--what", "load")
    both = run("--what", "alone")
    assert both["load"] == first["load"]
    for what in ("load", "alone"):
        (case,) = both[what]
        assert (case["cores"], case["beam"]) == ("apart", 1)
        assert len(case["offline"]) == len(case["server"]) == 1
        assert case["server"][0] > 0


def test_shares_are_computed_round_by_round():
    results = {
        "machine": {"cpu": "X", "cores": 2, "features": [], "version": "1"},
        "bundle": "b",
        "compute": "float32",
        "batch": 1,
        "sentences": 1,
        "load": [{"cores": "apart", "beam": 5, "offline": [10, 20, 10], "server": [9, 18, 11]}],
        "alone": [{"cores": "all", "beam": 1, "offline": [5.0, 7.0], "server": [6.0, 8.0]}],
    }
    text = markdown(results)
    assert "| apart | 5 | 10.0 | 11.0 | 90.0% | ≥ 95% | no |" in text
    assert "| all | 1 | 6.00 | 7.00 | 1.00 ms | ≤ 2 ms | yes |" in text


def test_sentences_differ_and_depend_on_the_seed():
    assert len(set(sentences(7000))) == 7000
    assert sentences(50) == sentences(50) != sentences(50, seed=2)
    assert sentences(50) == sentences(100)[:50]
