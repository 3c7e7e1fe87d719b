"""Tests of the comparison of a real model, with engines that are small scripts."""

from __future__ import annotations

import sys

import pytest
import real_models

LINES = ["an apple fell on the grass", "no one went to the shop then"]

DECODE = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"hypotheses": [{"text": json.loads(line)["text"].upper()}]}))
"""
PEER = (
    "import sys\nfor line in sys.stdin: print(line.strip().upper() if 'apple' in line else 'other')"
)


def test_answers_are_compared_with_those_of_float32(monkeypatch):
    fakes = {real_models.FLOAT32: DECODE, "a peer": PEER}
    commands = {name: [sys.executable, "-c", script] for name, script in fakes.items()}
    monkeypatch.setattr(real_models, "commands", lambda _: commands)
    monkeypatch.setattr(real_models, "check_seconds", lambda *_: None)  # these take none
    options = real_models.argparse.Namespace(rounds=2)
    found = real_models.measure(options, LINES)
    assert [one["equal"] for one in found] == [1.0, 0.5]
    assert found[0]["bleu"] == pytest.approx(100)
    assert found[1]["bleu"] < 100
    assert [len(one["seconds"]) for one in found] == [2, 2]
    assert all(one["peak_bytes"] > 1e6 for one in found)


def test_speed_leaves_out_the_first_line():
    one = {"engine": "x", "seconds": [3.0, 2.0, 1.0], "peak_bytes": 2e6, "equal": 0.5, "bleu": 1.0}
    assert real_models.rows_of({"lines": 101, "engines": [one]}) == [["x", "50", "2", "50%", "1.0"]]


def test_noise_is_no_speed():
    with pytest.raises(SystemExit, match="give a larger --repeat"):
        real_models.check_seconds("x", [1.0, -0.2])


def test_engine_that_fails_or_says_too_little_is_named():
    for script in ("raise SystemExit(3)", "print('one')"):
        with pytest.raises(SystemExit, match=r"a peer: status \d, \d answers"):
            real_models.run("a peer", [sys.executable, "-c", script], ["a", "b"])


def test_missing_bundle_names_the_command(tmp_path):
    with pytest.raises(SystemExit, match=r"run \./start.sh --build --model en-pt"):
        real_models.main(["--bundle", str(tmp_path / "none"), "--out", str(tmp_path)])
