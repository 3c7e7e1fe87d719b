"""Tests the comparison of trainings by their logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trainings

RECIPE = {"data": {"files": ["train"]}, "train": {"simcut": 0.0, "valid_rows": 9}}


def write_run(run: Path, recipe: dict, ended: bool = True) -> Path:
    run.mkdir()
    lines = [
        {"kind": "start", "update": 0},
        {"kind": "valid", "update": 10, "nll_all": 3.0, "bleu": 1.0, "chrf": 2.0},
        {"kind": "train", "update": 19, "target_tokens": 4_000_000, "seconds": 90.0},
        {"kind": "valid", "update": 20, "nll_all": 2.0, "bleu": 30.0, "chrf": 50.0},
        *([{"kind": "end", "update": 20}] if ended else []),
    ]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "settings.json").write_text(json.dumps({"recipe": recipe, "parameters": 5}))
    return run


def test_each_other_run_is_named_by_what_its_recipe_changes(tmp_path):
    changed = RECIPE | {"train": RECIPE["train"] | {"simcut": 3.0}}
    runs = [write_run(tmp_path / "plain", RECIPE), write_run(tmp_path / "cut", changed)]
    results = trainings.compare(runs, "A GPU")
    assert [row[0] for row in trainings.rows_of(results)] == ["`plain`", "`train.simcut = 3.0`"]
    assert trainings.rows_of(results)[0][1:] == ["20", "4M", "1.5", "2.000", "30.0", "50.0"]
    assert "A GPU" in trainings.markdown(results)


def test_run_that_did_not_end_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="did not end"):
        trainings.compare([write_run(tmp_path / "cut", RECIPE, ended=False)], "A GPU")
