"""Tests of the files in which linnet-compare keeps its results."""

from __future__ import annotations

import argparse
import json

import pytest

from linnet_model.config import ConfigError, read_recipe, to_tables
from linnet_research.comparison import compare_results


def test_keeps_existing_results(tmp_path):
    calls = []
    for _ in range(2):
        path, settings = tmp_path / "value.json", {"rows": 5}
        value = compare_results.kept(path, settings, lambda: calls.append(1) or {"a": [1.5]})
        assert value == {"a": [1.5]}
        compare_results.refuse_changed(path, settings)
    assert len(calls) == 1


def test_refuses_results_of_other_settings(tmp_path):
    path = tmp_path / "value.json"
    compare_results.refuse_changed(path, {"rows": 5})
    compare_results.kept(path, {"rows": 5, "rounds": 2, "device": "cpu"}, lambda: 1)
    with pytest.raises(ConfigError, match=r"value.json was made with another rows, rounds: remove"):
        compare_results.refuse_changed(path, {"rows": 6, "rounds": 1, "device": "cpu"})
    with pytest.raises(ConfigError, match="was made with another device"):  # of a tuned rate, say
        compare_results.refuse_changed(path, {"rows": 5, "rounds": 2})
    path.write_text('{"dynamic": [1.5]}')  # an older linnet-compare stored no settings
    with pytest.raises(ConfigError, match="was made with another rows"):
        compare_results.refuse_changed(path, {"rows": 6})


def test_results_of_before_a_key_was_in_the_recipe_are_kept(tmp_path, recipe_file):
    path, recipe = tmp_path / "value.json", to_tables(read_recipe(recipe_file))
    settings = {"recipe": recipe, "pretraining": {"recipe": recipe, "device": "cpu"}}
    older = json.loads(json.dumps(settings))
    for found in (older, older["pretraining"]):
        del found["recipe"]["data"]["placeholder_share"]
    compare_results.kept(path, older, lambda: 1)
    compare_results.refuse_changed(path, settings)
    settings["recipe"]["data"]["placeholder_share"] = 0.5
    with pytest.raises(ConfigError, match="was made with another recipe"):
        compare_results.refuse_changed(path, settings)


def test_edit_that_keeps_the_size_of_a_file_is_seen(recipe_file, data_folder):
    options = argparse.Namespace(data=data_folder, device="cpu")
    recipe, file = read_recipe(recipe_file), data_folder / "toy" / "test.even.tsv"
    before = compare_results.inputs(recipe, options)
    file.write_text("\n".join(reversed(file.read_text().splitlines())) + "\n")
    assert compare_results.inputs(recipe, options) != before
