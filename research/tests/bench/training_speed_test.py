"""Tests the measurement of trainings. No speed is asserted."""

from __future__ import annotations

import json
import lzma
import subprocess

import pytest
import training_speed


def test_rate_leaves_out_the_first_line_of_the_log():
    log = [
        {"kind": "start"},
        {"kind": "train", "target_tokens": 100, "seconds": 50.0},
        {"kind": "train", "target_tokens": 300, "seconds": 51.0},
        {"kind": "train", "target_tokens": 500, "seconds": 54.0},
        {"kind": "valid"},
    ]
    assert training_speed.rate(log) == 100.0
    with pytest.raises(SystemExit, match="the log has 1 lines of a training, 2 are needed"):
        training_speed.rate(log[:2])


def test_both_commits_are_trained_on_the_same_rows(tmp_path, binaries):
    try:
        with training_speed.checkout("HEAD"):
            pass
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"git makes no work tree of this one: {error.stderr}")
    rows = [f"word {i % 50} of {i}\tWort {i % 50} von {i}\ttatoeba" for i in range(90)]
    (tmp_path / "en-de").mkdir()
    text = "\n".join([*rows, "other\tandere\tdebian"]) + "\n"
    (tmp_path / "en-de/train.tsv.xz").write_bytes(lzma.compress(text.encode()))
    words = ["--data", tmp_path, "--out", tmp_path / "results", "--programs", binaries]
    words += ["--earlier", "HEAD", "--widths", 16, "--batches", 300, "--rounds", 1, "--every", 1]
    words += ["--parts", 1, "--max-drift", 100]
    assert training_speed.main([str(word) for word in words]) == 0
    (path,) = (tmp_path / "results").glob("*/training-speed.json")
    (row,) = json.loads(path.read_text())["rows"]
    assert len(row["earlier"]) == len(row["now"]) == 1
    assert row["earlier"][0] > 0
    assert row["now"][0] > 0
    report = path.with_suffix(".md").read_text()
    assert "| width 16, batches of 300 tokens, float32, 1 thread | 0.1M |" in report


def test_widths_and_batches_belong_together(capsys):
    with pytest.raises(SystemExit):
        training_speed.main(["--data", "x", "--widths", "16"])
    assert "1 --widths and 3 --batches: give one for each" in capsys.readouterr().err
