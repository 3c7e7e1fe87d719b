"""Tests of linnet-compare: equal sizes, kept results, early errors, and the table on the page."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from linnet_model.config import ConfigError, ModelConfig, read_recipe
from linnet_model.evaluation import compare, compare_report
from linnet_model.evaluation.compare_models import ABLATION, CSAN, ROWS, settings_of, weights_in

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *(("comparison", name) for name in ROWS),
        *(("ablation", name) for name in ROWS),
        *(("csan", name) for name in ["self_attention", *CSAN]),
    ],
)
def test_models_have_as_many_parameters_as_the_recipe(recipe, name):
    base = read_recipe(ROOT / f"model/recipes/{recipe}.toml").model
    wanted = weights_in(base)
    assert abs(weights_in(settings_of(name, base)) / wanted - 1) < 0.01


def test_rows_of_csan_change_the_first_layers_of_the_encoder_alone():
    base = read_recipe(ROOT / "model/recipes/csan.toml").model
    row = settings_of("csan_layers_2", base)
    assert row.encoder_mixers == ["csan_1d"] * 2 + ["self_attention"] * 4
    assert row.encoder_kernels == [11, 11, 0, 0, 0, 0]
    assert set(row.decoder_mixers) == {"self_attention"}
    assert set(row.decoder_kernels) == {0}
    assert settings_of("csan_heads_7", base).neighbour_heads == 7


def test_rows_of_the_ablation_differ_by_one_change():
    base = read_recipe(ROOT / "model/recipes/ablation.toml").model
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


def test_keeps_existing_results(tmp_path):
    calls = []
    for _ in range(2):
        path, settings = tmp_path / "value.json", {"rows": 5}
        value = compare.kept(path, settings, lambda: calls.append(1) or {"a": [1.5]})
        assert value == {"a": [1.5]}
        compare.refuse_changed(path, settings)
    assert len(calls) == 1


def test_refuses_results_of_other_settings(tmp_path):
    path = tmp_path / "value.json"
    compare.refuse_changed(path, {"rows": 5})
    compare.kept(path, {"rows": 5, "rounds": 2, "device": "cpu"}, lambda: 1)
    with pytest.raises(ConfigError, match=r"value.json was made with another rows, rounds: remove"):
        compare.refuse_changed(path, {"rows": 6, "rounds": 1, "device": "cpu"})
    path.write_text('{"dynamic": [1.5]}')  # an older linnet-compare stored no settings
    with pytest.raises(ConfigError, match="was made with another rows"):
        compare.refuse_changed(path, {"rows": 6})


def test_missing_test_set_fails_before_training(tmp_path, recipe_file, data_folder, capsys):
    out = tmp_path / "runs"
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    for more, message in (
        ([], f"data.valid_domains of {recipe_file} is empty and --test is not given"),
        (["--test", "law"], "no test.law.tsv in"),
        (["--test", "even", "--page", "page.md"], "--page needs --report"),
    ):
        assert compare.main([*flags, *more]) == 1
        assert message in capsys.readouterr().err
        assert not out.exists()


def test_interval_handles_samples_without_match():
    references = [[f"word {i} of the reference"] for i in range(5)]
    low = compare.interval("translate", references, ["word 0 of the reference"] + ["nothing"] * 4)
    assert low["BLEU"][1] <= low["BLEU"][0] <= low["BLEU"][2]


def test_interval_contains_score_and_narrows_with_rows():
    references = [[f"the {i % 7} cats sat on {i} mats in {i % 5} rooms"] for i in range(200)]
    answers = [r[0].replace("cats", "dogs") if i % 3 else r[0] for i, r in enumerate(references)]
    many = compare.interval("translate", references, answers)["BLEU"]
    few = compare.interval("translate", references[:20], answers[:20])["BLEU"]
    assert many[1] <= many[0] <= many[2]
    assert few[2] - few[1] > many[2] - many[1]
    rouge = compare.interval("summarize", references, answers)["ROUGE-L"]
    assert rouge[1] <= rouge[0] <= rouge[2]


def results() -> dict:
    speeds = {"dynamic": [100.0, 50.0, 80.0], "light": [120.0, 60.0, 100.0]}
    return {
        "recipe": {
            "model": {
                "width": 8,
                "encoder_kernels": [3],
                "decoder_kernels": [3],
                "vocabulary": 400,
            },
            "train": {"updates": 2, "batch_target_tokens": 100, "threads": 1},
            "bundle": {"name": "toy", "beam_size": 2},
        },
        "device": "cpu",
        "machine": "a test",
        "runs": [
            {
                "mixer": mixer,
                "seed": 1,
                "parameters": 1234,
                "valid_nll": 2.0,
                "test": "even",
                "rows": 10,
                "scores": {"BLEU": [10.0, 9.0, 11.0]},
            }
            for mixer in speeds
        ],
        "training": speeds,
        "decoding": {
            mixer: {"batch": found, "sentence": {"8": found, "16": found}}
            for mixer, found in speeds.items()
        },
    }


def test_speed_ratios_are_per_round():
    assert compare_report.ratios(results()["training"]) == {"dynamic": 1.0, "light": 1.2}


def test_several_seeds_give_mean_and_interval():
    runs = [{"scores": {"BLEU": [score, 0.0, 99.0]}} for score in (10.0, 11.0, 12.0)]
    score, low, high = compare_report.score_of(runs, "BLEU")
    assert score == 11.0
    assert (low, high) == pytest.approx((11 - 4.303 / 3**0.5, 11 + 4.303 / 3**0.5))
    assert compare_report.score_of(runs[:1], "BLEU") == (10.0, 0.0, 99.0)


def test_report_says_how_a_rate_was_chosen(tmp_path):
    tuned = {**results(), "rates": {"light": {"0.001": 2.5, "0.002": 2.25}}}
    told = compare_report.settings(tuned)
    assert "learning rate of light is the best of 0.001 (2.500), 0.002 (2.250)" in told
    assert "learning rate" not in compare_report.settings(results())


def test_report_replaces_only_its_part_of_page(tmp_path):
    page = tmp_path / "page.md"
    begin, end = compare_report.markers("toy-cpu")
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    compare_report.write_report(results(), tmp_path, page)
    first = page.read_text(encoding="utf-8")
    assert first.startswith("before\n")
    assert first.endswith("after\n")
    assert "| light | 1,234 | 2.000 | 10.0 (9.0 to 11.0) | 1.20 | 1.20 |" in first
    assert "old" not in first
    assert json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8")) == results()
    compare_report.write_report(results(), tmp_path, page)
    assert page.read_text(encoding="utf-8") == first
    assert "The command was not recorded." in first
    made = {"command": "linnet-compare --rows 10", "version": "0.1.0", **results()}
    compare_report.write_report(made, tmp_path, page)
    told = page.read_text(encoding="utf-8")
    assert "Made by `linnet-compare --rows 10`, Linnet 0.1.0." in told


@pytest.mark.parametrize("file", sorted((ROOT / "docs/comparison").iterdir()), ids=lambda p: p.stem)
def test_page_shows_the_recorded_comparison(file, tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_bytes((ROOT / "docs/RESULTS.md").read_bytes())
    compare_report.write_report(json.loads(file.read_text(encoding="utf-8")), tmp_path, page)
    assert page.read_bytes() == (ROOT / "docs/RESULTS.md").read_bytes()


def test_same_results_give_same_plots(tmp_path):
    file = tmp_path / "results.json"
    file.write_text(json.dumps(results()), encoding="utf-8")
    assert compare_report.main([str(file), "--out", str(tmp_path)]) == 0
    plots = {path.name: path.read_bytes() for path in tmp_path.glob("*.svg")}
    assert set(plots) == {"toy-cpu-lengths.svg", "toy-cpu-quality.svg"}
    compare_report.write_plots(results(), tmp_path)
    assert plots == {path.name: path.read_bytes() for path in tmp_path.glob("*.svg")}


def test_refuses_page_without_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing here\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="<!-- toy-cpu -->"):
        compare_report.write_report(results(), tmp_path, page)


def test_compares_two_mixers_end_to_end(tmp_path, recipe_file, data_folder, program, capsys):
    out, page = tmp_path / "runs", tmp_path / "page.md"
    page.write_text("\n".join(compare_report.markers("toy-cpu")), encoding="utf-8")
    arguments = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    arguments += ["--mixers", "dynamic", "self_attention", "--test", "even", "--rows", "5"]
    arguments += ["--rounds", "1", "--updates-timed", "1", "--lengths", "2", "4"]
    arguments += ["--tune", "self_attention", "--rates", "1e-9", "1e-2"]
    arguments += ["--report", str(tmp_path), "--page", str(page)]
    arguments += ["--decode", str(program("linnet-decode"))]
    assert compare.main(arguments) == 0
    written = json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8"))
    assert [run["mixer"] for run in written["runs"]] == ["dynamic", "self_attention"]
    assert all(run["rows"] == 5 for run in written["runs"])
    losses = written["rates"]["self_attention"]
    assert losses["0.01"] < losses["1e-09"]
    untuned, tuned = written["runs"]
    assert tuned["learning_rate"] == 0.01
    assert tuned["valid_nll"] == losses["0.01"]
    assert untuned["learning_rate"] == read_recipe(recipe_file).train.learning_rate
    assert all(speed > 0 for found in written["training"].values() for speed in found)
    assert "| self_attention |" in page.read_text(encoding="utf-8")
    assert written["command"] == (
        "linnet-compare --recipe toy.toml --data DATA --out OUT --mixers dynamic self_attention "
        "--tune self_attention --rates 1e-09 0.01 --test even --rows 5 --rounds 1 "
        "--updates-timed 1 --lengths 2 4"
    )
    assert str(tmp_path) not in json.dumps(written)
    assert compare.main([*arguments, "--rounds", "2"]) == 1
    assert "training.json was made with another rounds" in capsys.readouterr().err
