"""A server under attack stays within its memory and keeps serving: for seconds, or half an hour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import machine
import pytest
from attackers import KINDS

HERE = Path(__file__).resolve().parent


def run(program, out: Path, minutes: float, *flags: str) -> dict:
    command = [sys.executable, HERE / "attack.py", "--minutes", minutes, "--out", out, *flags]
    command += ["--programs", program("linnet-server").parent]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=minutes * 60 + 300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    return json.loads((out / machine.slug(facts) / "attack.json").read_text())


def test_server_survives_attacks_and_serves_others(program, tmp_path):
    result = run(program, tmp_path, 0.75)
    assert set(result["rounds"]) == set(KINDS)
    assert all(rounds > 0 for rounds in result["rounds"].values()), result["rounds"]
    assert result["polite"]["answered"] > 5


@pytest.mark.long
def test_server_survives_half_an_hour_of_attacks(program, tmp_path):
    """LINNET_ATTACK_RESULT names a folder for the figures: tests/bench/results."""
    result = run(program, Path(os.environ.get("LINNET_ATTACK_RESULT", tmp_path)), 30)
    assert result["polite"]["answered"] > 100
