"""Tests of linnet-compare: equal sizes, kept results, early errors, and the table on the page."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from linnet_model import __version__
from linnet_model.config import ConfigError, ModelConfig, read_recipe, to_tables
from linnet_model.evaluation import (
    compare,
    compare_plots,
    compare_report,
    compare_runs,
    compare_statistics,
)
from linnet_model.evaluation.compare_models import ABLATION, CSAN, ROWS, settings_of, weights_in
from linnet_model.train.checkpoint import different_size

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *(("comparison", name) for name in ROWS),
        *(("ablation", name) for name in ROWS),
        *(("csan", name) for name in ["self_attention", *CSAN]),
        *(("pretrain-tasks", name) for name in ["dynamic", "light", "dilated", "self_attention"]),
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


def test_results_of_before_a_key_was_in_the_recipe_are_kept(tmp_path, recipe_file):
    path, recipe = tmp_path / "value.json", to_tables(read_recipe(recipe_file))
    settings = {"recipe": recipe, "pretraining": {"recipe": recipe, "device": "cpu"}}
    older = json.loads(json.dumps(settings))
    for found in (older, older["pretraining"]):
        del found["recipe"]["data"]["placeholder_share"]
    compare.kept(path, older, lambda: 1)
    compare.refuse_changed(path, settings)
    settings["recipe"]["data"]["placeholder_share"] = 0.5
    with pytest.raises(ConfigError, match="was made with another recipe"):
        compare.refuse_changed(path, settings)


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


def test_edit_that_keeps_the_size_of_a_file_is_seen(recipe_file, data_folder):
    options = argparse.Namespace(data=data_folder, device="cpu")
    recipe, file = read_recipe(recipe_file), data_folder / "toy" / "test.even.tsv"
    before = compare.inputs(recipe, options)
    file.write_text("\n".join(reversed(file.read_text().splitlines())) + "\n")
    assert compare.inputs(recipe, options) != before


def test_version_without_git_is_that_of_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert compare.version() == __version__


def test_missing_test_set_fails_before_training(tmp_path, recipe_file, data_folder, capsys):
    out = tmp_path / "runs"
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    for more, message in (
        ([], f"data.valid_domains of {recipe_file} is empty and --test is not given"),
        (["--test", "law"], "no test.law.tsv in"),
        (["--test", "even", "--page", "page.md"], "--page needs --report"),
        (
            ["--test", "even", "--report", str(tmp_path), "--page", str(recipe_file)],
            f"{recipe_file} must hold '<!-- toy-cpu -->'",
        ),
        (["--test", "even", "--set", "train.seconds=60"], "trains all mixers for equal updates"),
        (
            ["--test", "even", "--set", "data.styles={even = 'sentence', odd = 'title'}"],
            "toy.toml has data.styles: linnet-score measures each style",
        ),
    ):
        assert compare.main([*flags, *more]) == 1
        assert message in capsys.readouterr().err
        assert not out.exists()


@pytest.mark.parametrize("flag", ["--rows=-1", "--seeds=0", "--rounds=0", "--jobs=0"])
def test_too_small_count_is_refused(flag, capsys):
    with pytest.raises(SystemExit, match="2"):
        compare.main(["--recipe", "r", "--data", "d", "--out", "o", flag])
    assert "is less than" in capsys.readouterr().err


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


TASKS = sorted((ROOT / "model/recipes").glob("task-*.toml"))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_tasks_have_the_sizes_of_their_pretraining(path):
    start = read_recipe(ROOT / "model/recipes/pretrain-tasks.toml")
    assert different_size(read_recipe(path).model, start.model) is None
    assert weights_in(start.model) < 3_000_000


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
    assert compare_statistics.ratios(results()["training"]) == {"dynamic": 1.0, "light": 1.2}


def test_several_seeds_give_mean_and_interval():
    runs = [{"scores": {"BLEU": [score, 0.0, 99.0]}} for score in (10.0, 11.0, 12.0)]
    score, low, high = compare_statistics.score_of(runs, "BLEU")
    assert score == 11.0
    assert (low, high) == pytest.approx((11 - 4.303 / 3**0.5, 11 + 4.303 / 3**0.5))
    assert compare_statistics.score_of(runs[:1], "BLEU") == (10.0, 0.0, 99.0)


def test_report_says_how_a_rate_was_chosen(tmp_path):
    tuned = {**results(), "rates": {"light": {"0.001": 2.5, "0.002": 2.25}}}
    told = compare_report.settings(tuned)
    assert "learning rate of light is the best of 0.001 (2.500), 0.002 (2.250)" in told
    assert "learning rate" not in compare_report.settings(results())


def test_report_names_the_type_of_the_trainings_where_it_is_known():
    for bfloat16, named in ((True, "bfloat16"), (False, "float32")):
        told = compare_report.settings({**results(), "bfloat16": bfloat16})
        assert f"at most 100 target tokens in {named}, test set even" in told
    assert "at most 100 target tokens, test set even" in compare_report.settings(results())


def test_report_names_trainings_that_diverged(tmp_path):
    plain = results()
    dynamic, light = plain["runs"]
    failed = {"seed": 2, "valid_nll": None, "rows": 0, "scores": {}}
    plain["runs"] = [{**dynamic, **failed, "seed": 1}, light, {**light, **failed}]
    del plain["decoding"]["dynamic"]
    first, second = compare_report.table(plain)[2:]
    assert first == "| dynamic | 1,234 | diverged | diverged | – | – | – | – | – |"
    assert "| light | 1,234 | 2.000 | 10.0 (9.0 to 11.0), 1 of 2 diverged | 1.00 | 1.00 |" in second
    assert "Speeds are ratios to light" in compare_report.settings(plain)
    assert "(10 rows)" in compare_report.settings(plain)
    rates = {**plain, "rates": {"light": {"0.001": 2.5, "1.0": None}}}
    assert "best of 0.001 (2.500), 1.0 (diverged)" in compare_report.settings(rates)
    assert len(compare_plots.write_plots(plain, tmp_path, "toy")) == 2
    plain["runs"] = plain["runs"][:1]
    with pytest.raises(ConfigError, match="all trainings of toy-cpu diverged"):
        compare_report.table(plain)


def pretrained_results() -> dict:
    """Results with a gain of 2, 3 and 4 for one mixer and none for the other, without speeds."""
    plain = results()
    runs = [
        {**run, "seed": seed, "pretrained": pretrained, "scores": {"accuracy": [score, 0, 99]}}
        for run in plain["runs"]
        for seed in (1, 2, 3)
        for pretrained, score in (
            (False, 50.0 + seed),
            (True, 50.0 + seed + (seed + 1 if run["mixer"] == "light" else 0)),
        )
    ]
    start = {"train": {"updates": 9, "batch_source_tokens": 70}, "bundle": {"name": "spans"}}
    pretraining = {"recipe": start, "valid_nll": {"dynamic": 3.5, "light": 3.25}}
    kept = {key: value for key, value in plain.items() if key not in ("training", "decoding")}
    return {**kept, "runs": runs, "pretraining": pretraining}


def test_report_has_scores_from_scratch_and_pretrained(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("\n".join(compare_report.markers("toy-cpu")), encoding="utf-8")
    compare_report.write_report(pretrained_results(), tmp_path, page)
    told = page.read_text(encoding="utf-8")
    half = 4.303 / 3**0.5
    scratch = f"52.0 ({52 - half:.1f} to {52 + half:.1f})"
    assert (
        f"| light | 1,234 | 3.250 | accuracy | {scratch} | 55.0 (50.0 to 60.0) "
        f"| +3.0 ({3 - half:+.1f} to {3 + half:+.1f}) |" in told
    )
    assert "| +0.0 (+0.0 to +0.0) |" in told
    assert "pre-trained once, by the spans recipe: 9 updates of at most 70 source tokens" in told
    assert "Speeds" not in told
    one = pretrained_results()
    one["runs"] = [run for run in one["runs"] if run["seed"] == 2]
    assert "| 55.0 (0.0 to 99.0) | +3.0 |" in compare_report.pretraining_table(one)[-1]
    assert "![scores of toy-cpu](toy-cpu-scores.svg)" in told
    assert "lengths.svg" not in told


def test_report_of_a_comparison_without_speeds(tmp_path):
    plain = {k: v for k, v in results().items() if k not in ("training", "decoding")}
    assert compare_report.table(plain)[0] == "| mixer | parameters | validation loss | BLEU |"
    assert compare_report.table(plain)[-1] == "| light | 1,234 | 2.000 | 10.0 (9.0 to 11.0) |"
    assert "Speeds" not in compare_report.settings(plain)


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


COMPARISONS = sorted((ROOT / "docs/comparison").glob("*.json"))


def rounded(path: Path) -> str:
    """A plot without the last digits, in which processors may differ."""
    return re.sub(r"\d+\.\d+", lambda n: f"{float(n[0]):.1f}", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", COMPARISONS, ids=lambda p: p.stem)
def test_page_shows_the_recorded_comparison(file, tmp_path):
    page, folder = tmp_path / "RESULTS.md", tmp_path / "comparison"
    folder.mkdir()
    page.write_bytes((ROOT / "docs/RESULTS.md").read_bytes())
    copied = Path(shutil.copy(file, folder))
    assert compare_report.main([str(copied), "--page", str(page)]) == 0
    assert page.read_bytes() == (ROOT / "docs/RESULTS.md").read_bytes()
    assert copied.read_bytes() == file.read_bytes()
    for plot in folder.glob("*.svg"):
        assert rounded(plot) == rounded(file.parent / plot.name)


def test_folder_of_comparisons_has_no_other_files():
    kinds = ("scores", "lengths")
    known = {f"{file.stem}-{kind}.svg" for file in COMPARISONS for kind in kinds}
    names = {path.name for path in (ROOT / "docs/comparison").iterdir()}
    assert names <= known | {file.name for file in COMPARISONS}


def test_same_results_give_same_plots(tmp_path):
    drawn = compare_plots.write_plots(results(), tmp_path, "toy-cpu")
    plots = {path.name: path.read_bytes() for path in drawn.values()}
    assert set(plots) == {"toy-cpu-lengths.svg", "toy-cpu-scores.svg"}
    compare_plots.write_plots(results(), tmp_path, "toy-cpu")
    assert plots == {path.name: path.read_bytes() for path in tmp_path.glob("*.svg")}


def test_plot_of_scores_has_a_row_for_each_mixer_and_a_panel_for_each_measure(tmp_path):
    path = compare_plots.write_plots(pretrained_results(), tmp_path, "toy")["scores of toy"]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))
    assert {"dynamic", "light", "accuracy"} <= set(texts)


def test_refuses_page_without_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing here\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="<!-- toy-cpu -->"):
        compare_report.write_report(results(), tmp_path, page)


def test_compares_two_mixers_end_to_end(tmp_path, recipe_file, data_folder, program, capsys):
    out, page = tmp_path / "runs", tmp_path / "page.md"
    page.write_text("\n".join(compare_report.markers("toy-cpu")), encoding="utf-8")
    arguments = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    arguments += ["--mixers", "dynamic", "self_attention", "dynamic", "--test", "even"]
    arguments += ["--rows", "6"]
    file = data_folder / "toy" / "test.even.tsv"
    too_long = "one " * 300
    file.write_text(f"{too_long}\t{too_long}\teven\n{file.read_text()}")
    arguments += ["--rounds", "1", "--updates-timed", "1", "--lengths", "2", "4"]
    arguments += ["--tune", "self_attention", "--rates", "1e-9", "1e-2", "1e30"]
    arguments += ["--report", str(tmp_path), "--page", str(page)]
    arguments += ["--decode", str(program("linnet-decode"))]
    assert compare.main(arguments) == 0
    written = json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8"))
    assert [run["mixer"] for run in written["runs"]] == ["dynamic", "self_attention"]
    assert all(run["rows"] == 5 for run in written["runs"])
    assert written["bfloat16"] is True or written["bfloat16"] is False
    losses = written["rates"]["self_attention"]
    assert losses["0.01"] < losses["1e-09"]
    assert losses["1e+30"] is None, "diverged"
    untuned, tuned = written["runs"]
    assert tuned["learning_rate"] == 0.01
    assert tuned["valid_nll"] == losses["0.01"]
    assert untuned["learning_rate"] == read_recipe(recipe_file).train.learning_rate
    assert all(speed > 0 for found in written["training"].values() for speed in found)
    assert "| self_attention |" in page.read_text(encoding="utf-8")
    assert written["command"] == (
        "linnet-compare --recipe toy.toml --data DATA --out OUT --mixers dynamic self_attention "
        "--tune self_attention --rates 1e-09 0.01 1e+30 --test even --rows 6 --rounds 1 "
        "--updates-timed 1 --lengths 2 4"
    )
    assert str(tmp_path) not in json.dumps(written)
    assert compare.main([*arguments, "--rounds", "2"]) == 1
    assert "training.json was made with another rounds" in capsys.readouterr().err

    # Results that are removed are made again: by other search options from the same weights, but
    # not of a training with other updates.
    def forget() -> None:
        for path in (*out.glob("*-1.json"), *out.glob("*ing.json"), *out.glob("*-rates.json")):
            path.unlink()

    forget()
    weights = {path: path.stat().st_mtime_ns for path in out.glob("*/checkpoint-*")}
    assert compare.main([*arguments, "--set", "bundle.beam_size=1"]) == 0
    assert weights == {path: path.stat().st_mtime_ns for path in out.glob("*/checkpoint-*")}
    manifest = json.loads((out / "bundles/dynamic-1/manifest.json").read_text(encoding="utf-8"))
    assert manifest["default_options"]["beam_size"] == 1
    forget()
    capsys.readouterr()
    assert compare.main([*arguments, "--set", "train.updates=7"]) == 1
    assert "was trained with another train.updates: remove the folder" in capsys.readouterr().err


SPANS = """
[tokenizer]
placeholders = 16
[data]
objective = "span_corruption"
rename_share = 0.0
copy_share = 0.0
max_source_tokens = 60
[bundle]
name = "spans"
task = "pretrain"
"""


@pytest.fixture
def classifier(recipe_file):
    """A recipe of a classifier of the toy data's domains, and that of its pre-training."""
    text = recipe_file.read_text(encoding="utf-8").replace("_share = 0.1", "_share = 0.0")
    text = text.replace("copy_share = 0.05", 'target_column = "domain"')
    recipe_file.write_text(text.replace('name = "toy"', 'name = "toy"\ntask = "classify"'))
    tables = merged(tomllib.loads(text), tomllib.loads(SPANS))
    del tables["data"]["target_column"]
    spans = recipe_file.with_name("spans.toml")
    spans.write_text(as_toml(tables), encoding="utf-8")
    return recipe_file, spans


def merged(tables: dict, changes: dict) -> dict:
    return {key: tables.get(key, {}) | changes.get(key, {}) for key in tables | changes}


def as_toml(tables: dict) -> str:
    """Writes tables whose values are plain, or tables in one line."""

    def value(found: object) -> str:
        if isinstance(found, dict):
            return "{" + ", ".join(f"{key} = {value(it)}" for key, it in found.items()) + "}"
        return json.dumps(found)

    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value(it)}\n" for key, it in table.items())
        for name, table in tables.items()
    )


def test_compares_pretrained_mixers_with_those_from_scratch(
    tmp_path, classifier, data_folder, capsys
):
    recipe, spans = classifier
    out, shared = tmp_path / "runs", tmp_path / "shared"
    arguments = ["--recipe", str(recipe), "--data", str(data_folder), "--out", str(out)]
    arguments += ["--mixers", "light", "self_attention", "--test", "even", "--rows", "9"]
    arguments += ["--pretrain", str(spans), "--pretrained", str(shared), "--report", str(tmp_path)]
    arguments += ["--set", "train.updates=4", "--pretrain-set", "train.updates=5"]
    assert compare.main(arguments) == 0
    written = json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8"))
    assert [(run["mixer"], run["pretrained"]) for run in written["runs"]] == [
        ("light", False),
        ("light", True),
        ("self_attention", False),
        ("self_attention", True),
    ]
    scratch, pretrained = (run["valid_nll"] for run in written["runs"][:2])
    assert scratch != pretrained
    assert all(set(run["scores"]) == {"accuracy"} for run in written["runs"])
    assert not {"training", "decoding"} & set(written)
    assert written["pretraining"]["recipe"]["train"]["updates"] == 5
    assert set(written["pretraining"]["valid_nll"]) == {"light", "self_attention"}
    assert written["command"] == (
        "linnet-compare --recipe toy.toml --data DATA --out OUT --set train.updates=4 --mixers "
        "light self_attention --pretrain spans.toml --pretrain-set train.updates=5 --test even "
        "--rows 9"
    )
    assert (out / "source.spm").read_bytes() == (shared / "source.spm").read_bytes()
    settings = json.loads((out / "light-1-pretrained/settings.json").read_text(encoding="utf-8"))
    assert settings["init_from"] == str(shared / "light")
    assert "even" in compare_report.settings(written)

    # Nothing is trained again; other settings are refused, also those of the pre-training.
    before = {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    assert compare.main(arguments) == 0
    assert before == {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    capsys.readouterr()
    assert compare.main([*arguments[:-1], "train.updates=6"]) == 1
    assert "light-1.json was made with another pretraining" in capsys.readouterr().err
    other = [*arguments[:-1], "train.updates=6", "--out", str(tmp_path / "other")]
    assert compare.main(other) == 1
    assert "light.json was made with another recipe" in capsys.readouterr().err


def test_refuses_a_pretraining_of_another_kind(tmp_path, classifier, data_folder, capsys):
    recipe, spans = classifier
    out = tmp_path / "runs"
    arguments = ["--recipe", str(recipe), "--data", str(data_folder), "--out", str(out)]
    arguments += ["--test", "even"]
    for more, message in (
        (["--pretrain", str(recipe)], "toy.toml has the task classify, --pretrain has pretrain"),
        (
            ["--pretrain", str(spans), "--pretrain-set", "model.width=32"],
            "model.width is 16 in the recipe and 32 in the weights to start from",
        ),
        (["--pretrained", str(tmp_path)], "--pretrained and --pretrain-set need --pretrain"),
    ):
        assert compare.main([*arguments, *more]) == 1
        assert message in capsys.readouterr().err
        assert not out.exists()
