"""Tests the measurement of the server's overhead at its smallest size."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import server_overhead
from sentences import sentences
from server_overhead import markdown, put

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="pins to two cores")
def test_both_measurements_run_and_are_kept(tmp_path, program):
    def run(*flags: str) -> dict:
        command = [sys.executable, HERE / "server_overhead.py", *flags, "--rounds", "1"]
        command += ["--programs", program("linnet-load").parent, "--out", tmp_path]
        command += ["--sentences", "8", "--batch", "2", "--seconds", "0.5", "--beam", "1"]
        command += ["--max-drift", "inf"]  # other tests run beside
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        (path,) = tmp_path.glob("*/server-overhead.json")
        return json.loads(path.read_text())

    first = run("--what", "load", "--compute", "int8")
    run("--what", "load", "--compute", "float32")
    both = run("--what", "alone", "--compute", "int8")
    assert first["load"] == both["load"][1:]
    for what, types in (("load", ["float32", "int8"]), ("alone", ["int8"])):
        assert [one["compute"] for one in both[what]] == types
        for one in both[what]:
            assert (one["cores"], one["beam"]) == ("apart", 1)
            assert len(one["offline"]) == len(one["server"]) == 1
            assert one["server"][0] > 0
            assert all(0 < one["cpu"][0][group] < 10 for group in ("engine", "linnet-load"))


def case(compute: str, cores: str, beam: int, offline: list[float], server: list[float]) -> dict:
    key = {"compute": compute, "cores": cores, "beam": beam}
    return {**key, "offline": offline, "server": server}


def test_shares_are_computed_round_by_round():
    results = {
        "machine": {"cpu": "X", "cores": 2, "features": [], "version": "1"},
        "bundle": "b",
        "batch": 1,
        "sentences": 1,
        "load": [case("float32", "apart", 5, [10, 20, 10], [9, 18, 11])],
        "alone": [case("int8", "all", 1, [5.0, 7.0], [6.0, 8.0])],
    }
    text = markdown(results)
    assert "| float32 | apart | 5 | 10.0 | 11.0 | 90.0% | ≥ 95% | no |" in text
    assert "| int8 | all | 1 | 6.00 | 7.00 | 1.00 ms | ≤ 2 ms | yes |" in text
    assert "drifted" not in text
    text = markdown({**results, "max_drift": 0.1})
    assert "a fixed loop drifted by more than 10% do not count" in text


def test_result_replaces_that_of_the_same_type_cores_and_beam():
    cases = [case("float32", "apart", 1, [1], [1]), case("int8", "apart", 1, [2], [2])]
    put(cases, case("int8", "apart", 1, [3], [3]))
    put(cases, case("float32", "all", 1, [4], [4]))
    assert [(one["compute"], one["cores"], one["offline"]) for one in cases] == [
        ("float32", "apart", [1]),
        ("float32", "all", [4]),
        ("int8", "apart", [3]),
    ]


def test_rounds_with_drift_are_measured_again(monkeypatch):
    loop = iter([1.0, 1.2, 1.0, 1.0, 1.0, 1.05])
    monkeypatch.setattr(server_overhead.machine, "loop_seconds", lambda cores: next(loop))
    values = iter({"offline": at, "server": at + 1} for at in (1.0, 3.0, 5.0))
    options = argparse.Namespace(rounds=2, max_drift=0.1)
    found = server_overhead.steady_rounds(options, lambda: next(values))
    assert found == {"offline": [3.0, 5.0], "server": [4.0, 6.0]}


def test_sentences_differ_and_depend_on_the_seed():
    assert len(set(sentences(7000))) == 7000
    assert sentences(50) == sentences(50) != sentences(50, seed=2)
    assert sentences(50) == sentences(100)[:50]
