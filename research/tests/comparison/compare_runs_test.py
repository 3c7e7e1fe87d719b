"""Tests of the runs of linnet-compare: which run folders are taken up, and intervals of scores."""

from __future__ import annotations

import pytest

from linnet_model.config import ConfigError, read_recipe
from linnet_research.comparison import compare_runs


def test_run_of_another_vocabulary_or_pretraining_is_refused(tmp_path, recipe_file):
    base, start = read_recipe(recipe_file), tmp_path / "start"
    run = tmp_path / "light-1-pretrained"
    for folder in (run, start):
        folder.mkdir()
    (tmp_path / "source.spm").write_bytes(b"one")
    (start / "comparison.json").write_text('{"train.updates": 5}')
    training = compare_runs.Training(base, recipe_file, [], run, start)
    for _ in range(2):
        compare_runs.refuse_other_training(training)
    (start / "comparison.json").write_text('{"train.updates": 6}')
    with pytest.raises(ConfigError, match="was trained with another pretraining"):
        compare_runs.refuse_other_training(training)
    (tmp_path / "source.spm").write_bytes(b"two")
    with pytest.raises(ConfigError, match="was trained with another vocabulary, pretraining"):
        compare_runs.refuse_other_training(training)


def test_interval_handles_samples_without_match():
    references = [[f"word {i} of the reference"] for i in range(5)]
    low = compare_runs.interval(
        "translate", references, ["word 0 of the reference"] + ["nothing"] * 4
    )
    assert low["BLEU"][1] <= low["BLEU"][0] <= low["BLEU"][2]


def test_interval_contains_score_and_narrows_with_rows():
    references = [[f"the {i % 7} cats sat on {i} mats in {i % 5} rooms"] for i in range(200)]
    answers = [r[0].replace("cats", "dogs") if i % 3 else r[0] for i, r in enumerate(references)]
    many = compare_runs.interval("translate", references, answers)["BLEU"]
    few = compare_runs.interval("translate", references[:20], answers[:20])["BLEU"]
    assert many[1] <= many[0] <= many[2]
    assert few[2] - few[1] > many[2] - many[1]
    rouge = compare_runs.interval("summarize", references, answers)
    assert rouge == compare_runs.interval("summarize", references, answers)
    of_all = rouge["ROUGE-L"]
    assert of_all[1] <= of_all[0] <= of_all[2]
    first, rest = (
        compare_runs.interval("summarize", references[part], answers[part])["ROUGE-L"][0]
        for part in (slice(50), slice(50, None))
    )
    assert of_all[0] == pytest.approx((first + 3 * rest) / 4)


def test_right_answers_are_equal_to_the_target():
    references, answers = [["yes"], ["no"], ["no"], ["yes"]], ["yes", "no", "no ", "no"]
    score, low, high = compare_runs.interval("classify", references, answers)["accuracy"]
    assert score == 50.0
    assert 0 <= low < score < high <= 100
    assert compare_runs.interval("parse", references, ["no"] * 4)["exact match"][0] == 50.0
    all_right = [wanted[0] for wanted in references]
    assert compare_runs.interval("parse", references, all_right)["exact match"] == [100.0] * 3


def test_interval_passes_the_language():
    references, answers = [["日本語の要約"]] * 3, ["日本語の要約"] * 3
    found = compare_runs.interval("summarize", references, answers, "ja")
    assert found["ROUGE-2"] == pytest.approx([100.0] * 3)
