"""Tests the measurement of long texts at its smallest size. No time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from long_inputs_report import memory_per_token, operator_lines, per_source_token, per_step

HERE = Path(__file__).resolve().parent


def test_every_part_measures_and_keeps_the_others(tmp_path, program):
    def run(*flags: str) -> dict:
        command = [sys.executable, HERE / "long_inputs.py", *flags, "--size", "tiny"]
        command += ["--programs", program("linnet-decode").parent, "--bundles", tmp_path]
        command += ["--out", tmp_path / "results", "--rounds", "1", "--seconds", "0.001"]
        library = program("linnet-decode").parents[1] / "lib/liblinnet_ops.so"
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            env=os.environ | {"LINNET_OPS_LIBRARY": str(library)},
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        (path,) = (tmp_path / "results").glob("*/long-inputs.json")
        assert "## Encoder" in path.with_name("long-inputs.md").read_text()
        return json.loads(path.read_text())

    mixers = ["--mixers", "light", "self_attention"]
    first = run("encoder", "decoder", *mixers, "--sources", "8", "2048", "--targets", "4", "8")
    for part, tokens, what in (
        ("encoder", ["8", "2048"], "seconds"),
        ("decoder", ["4", "8"], "step_seconds"),
    ):
        assert list(first[part]) == ["light", "self_attention"]
        for lengths in first[part].values():
            assert list(lengths) == tokens
            assert all(one[what] > 0 for runs in lengths.values() for one in runs)
    # Two layers of 16 heads with 2048^2 scores each need memory.
    assert memory_per_token(first["encoder"])["self_attention"][2048] > 0

    again = run("encoder", *mixers, "--sources", "8", "2048", "--targets", "4", "8", "--continue")
    assert again["decoder"] == first["decoder"]
    assert all(len(runs) == 2 for runs in again["encoder"]["light"].values())


def measured(seconds: float, peak: float = 0) -> list[dict[str, float]]:
    return [{"seconds": seconds * factor, "peak_bytes": peak} for factor in (1, 1.5, 0.5)]


def test_costs_are_medians_per_added_token():
    part = {"light": {"10": measured(0.002, 4096), "30": measured(0.006, 24576)}}
    assert per_source_token(part)["light"] == pytest.approx({10: 200, 30: 200})
    assert memory_per_token(part)["light"] == {30: 1}
    steps = {"light": {"32": [{"step_seconds": t} for t in (0.002, 0.004, 0.003)]}}
    assert per_step(steps)["light"] == pytest.approx({32: 3})


def test_operator_is_compared_to_a_copy_of_its_size_and_type():
    def case(operator: str, tokens: int, bits: int, speed: float):
        return {
            "operator": operator,
            "tokens": tokens,
            "bits": bits,
            "bytes_per_second": speed,
            "flop_per_second": 2e9,
        }

    cases = [case("copy", 8, 32, 1e10), case("copy", 8, 16, 4e9), case("light_conv", 8, 16, 1e9)]
    assert operator_lines(cases)[2:] == ["| light_conv | 8 | bfloat16 | 1.00 | 25 % | 2 |", ""]
