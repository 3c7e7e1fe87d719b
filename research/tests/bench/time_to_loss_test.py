"""Tests the measurement of the time to a loss. No speed is asserted."""

from __future__ import annotations

import json
import lzma
import os

import pytest
import time_to_loss


def line(tokens: int, speed: float) -> dict:
    return {"kind": "train", "target_tokens": tokens, "tokens_per_second": speed}


def valid(loss: float) -> dict:
    return {"kind": "valid", "nll_all": loss}


LOG = [
    {"kind": "start"},
    line(1000, 100.0),
    valid(6.0),
    line(2000, 200.0),
    valid(5.0),
    line(3000, 50.0),
    valid(3.0),
]


def test_time_is_that_of_the_updates():
    found = time_to_loss.points(LOG)
    assert [(point.seconds, point.tokens, point.loss) for point in found] == [
        (10.0, 1000, 6.0),
        (15.0, 2000, 5.0),
        (35.0, 3000, 3.0),
    ]


@pytest.mark.parametrize(
    ("loss", "seconds", "tokens"), [(5.5, 12.5, 1500), (5.0, 15.0, 2000), (4.5, 20.0, 2250)]
)
def test_time_between_two_validations_is_interpolated(loss, seconds, tokens):
    assert time_to_loss.reached(time_to_loss.points(LOG), loss) == (seconds, tokens)


def test_loss_that_was_not_reached_has_no_time():
    assert time_to_loss.reached(time_to_loss.points(LOG), 2.9) is None


def test_both_types_train_until_they_have_the_losses(tmp_path, binaries, monkeypatch):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(time_to_loss, "VALID_ROWS", 20)
    monkeypatch.setattr(time_to_loss, "VALID_TOKENS", 600)
    monkeypatch.setattr(time_to_loss, "WARM_UP_TOKENS", 900)
    rows = [f"word {i % 50} of {i}\tWort {i % 50} von {i}\ttatoeba" for i in range(90)]
    (tmp_path / "en-de").mkdir()
    text = "\n".join(rows) + "\n"
    (tmp_path / "en-de/train.tsv.xz").write_bytes(lzma.compress(text.encode()))
    words = ["--data", tmp_path, "--out", tmp_path / "results", "--programs", binaries]
    words += ["--width", 16, "--batches", 300, 300, "--rates", 1e-2, 5e-3, "--rounds", 1]
    words += ["--losses", 8.2, 8.0]
    assert time_to_loss.main([str(word) for word in words]) == 0
    (path,) = (tmp_path / "results").glob("*/time-to-loss.json")
    rows = json.loads(path.read_text())["rows"]
    settings = [(1e-2, 8.2), (1e-2, 8.0), (5e-3, 8.2), (5e-3, 8.0)]
    assert [(row["learning_rate"], row["loss"]) for row in rows] == settings
    for kind in ("float32", "bfloat16"):
        for first in (0, 2):
            (higher,), (lower,) = (row[kind] for row in rows[first : first + 2])
            assert 0 < higher["seconds"] < lower["seconds"]
            assert 300 < higher["tokens"] < lower["tokens"]
    assert "| 300 tokens | 0.01 | 0.1M | 8.0 |" in path.with_suffix(".md").read_text()


def test_batches_and_rates_belong_together(capsys):
    with pytest.raises(SystemExit):
        time_to_loss.main(["--data", "x", "--batches", "100"])
    assert "1 --batches and 2 --rates: give one for each" in capsys.readouterr().err
