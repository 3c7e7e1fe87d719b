"""Tests of the models that linnet-compare trains: equal sizes, and one change from row to row."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from linnet_model.config import ModelConfig, read_recipe
from linnet_model.train.checkpoint import different_size
from linnet_research.comparison.compare_models import (
    ABLATION,
    CSAN,
    ROWS,
    TECHNIQUES,
    as_settings,
    recipe_with,
    settings_of,
    weights_in,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *(("comparison", name) for name in ROWS),
        *(("ablation", name) for name in ROWS),
        *(("csan", name) for name in ["self_attention", *CSAN]),
        *(("techniques", name) for name in ["dynamic", *TECHNIQUES]),
        *(("pretrain-tasks", name) for name in ["dynamic", "light", "dilated", "self_attention"]),
    ],
)
def test_models_have_as_many_parameters_as_the_recipe(recipe, name):
    base = read_recipe(ROOT / f"research/recipes/{recipe}.toml").model
    wanted = weights_in(base)
    assert abs(weights_in(settings_of(name, base)) / wanted - 1) < 0.01


def test_rows_of_csan_change_the_first_layers_of_the_encoder_alone():
    base = read_recipe(ROOT / "research/recipes/csan.toml").model
    row = settings_of("csan_layers_2", base)
    assert row.encoder_mixers == ["csan_1d"] * 2 + ["self_attention"] * 4
    assert row.encoder_kernels == [11, 11, 0, 0, 0, 0]
    assert set(row.decoder_mixers) == {"self_attention"}
    assert set(row.decoder_kernels) == {0}
    assert settings_of("csan_heads_7", base).neighbour_heads == 7


def test_rows_of_the_ablation_differ_by_one_change():
    base = read_recipe(ROOT / "research/recipes/ablation.toml").model
    rows = [vars(settings_of(name, base)) for name in list(ABLATION)[:7]]
    changed = [
        {key for key in row if row[key] != before[key]} - {"ffn_width"}
        for before, row in itertools.pairwise(rows)
    ]
    mixers = {"encoder_mixers", "decoder_mixers"}
    assert changed == [
        mixers,
        {"encoder_kernels", "decoder_kernels"},
        {"weight_dropout"},
        mixers | {"weight_softmax"},
        {"weight_softmax"},
        mixers,
    ]


def test_dilated_filter_spans_replaced_filter():
    base = ModelConfig(encoder_kernels=[3, 7, 31], decoder_kernels=[15])
    dilated = settings_of("dilated", base)
    assert dilated.encoder_kernels == [3, 3, 3]
    assert [2 * d + 1 for d in dilated.encoder_dilations] == [3, 7, 31]
    assert dilated.decoder_dilations == [7]


@pytest.mark.parametrize("name", TECHNIQUES)
def test_techniques_differ_by_one_change(name):
    base = read_recipe(ROOT / "research/recipes/techniques.toml")
    changes = as_settings(recipe_with(name, base, base.train.seed), base)
    deep = ("_kernels", "_mixers", "_dilations", ".ffn_width")  # all of deep_encoder's one change
    elsewhere = name == "deep_encoder"
    assert len([change for change in changes if not change.split("=")[1].endswith(deep)]) == (
        0 if elsewhere else 1
    )


@pytest.mark.parametrize("name", ROWS)
def test_settings_for_linnet_train_make_the_recipe(name):
    path = ROOT / "research/recipes/techniques.toml"
    recipe = recipe_with(name, read_recipe(path), seed=3, rate=0.5, updates=77)
    changes = as_settings(recipe, read_recipe(path))
    assert read_recipe(path, [change.removeprefix("--set=") for change in changes]) == recipe
    assert (recipe.train.seed, recipe.train.learning_rate, recipe.train.updates) == (3, 0.5, 77)


TASKS = sorted((ROOT / "research/recipes").glob("task-*.toml"))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_tasks_have_the_sizes_of_their_pretraining(path):
    start = read_recipe(ROOT / "research/recipes/pretrain-tasks.toml")
    assert different_size(read_recipe(path).model, start.model) is None
    assert weights_in(start.model) < 3_000_000
