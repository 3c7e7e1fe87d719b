"""Tests of the tables and plots of comparisons, and of those on the page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_research.comparison import compare_plots, compare_report, compare_statistics

ROOT = Path(__file__).resolve().parents[3]


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


def test_each_length_has_one_column():
    head = compare_report.table(results())[0]
    lengths = [cell for cell in head.split("|") if "ms a sentence of" in cell]
    assert len(lengths) == len(set(lengths)) == 2


def test_report_names_trainings_that_diverged(tmp_path):
    plain = results()
    dynamic, light = plain["runs"]
    failed = {"seed": 2, "valid_nll": None, "rows": 0, "scores": {}}
    plain["runs"] = [{**dynamic, **failed, "seed": 1}, light, {**light, **failed}]
    del plain["decoding"]["dynamic"]
    first, second = compare_report.table(plain)[2:]
    assert first == "| dynamic | 1,234 | diverged | diverged | – | – | – | – |"
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


def test_refuses_page_without_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing here\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="<!-- toy-cpu -->"):
        compare_report.write_report(results(), tmp_path, page)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no result file of linnet-compare --report: there is no such file"),
        ("{", "is not JSON: "),
        ("{}", "is no result file of linnet-compare --report: it lacks recipe, device or runs"),
        (json.dumps(results()), "must hold '<!-- toy-cpu -->' and '<!-- end of toy-cpu -->' once"),
    ],
)
def test_command_names_files_that_it_cannot_use(tmp_path, capsys, text: str | None, message: str):
    file, page = tmp_path / "toy-cpu.json", tmp_path / "page.md"
    page.write_text("nothing here\n", encoding="utf-8")
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert compare_report.main([str(file), "--page", str(page)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("python -m linnet_research.comparison.compare_report: ")
    assert message in error


COMPARISONS = sorted((ROOT / "research/results/comparison").glob("*.json"))


@pytest.mark.parametrize("file", COMPARISONS, ids=lambda p: p.stem)
def test_page_shows_the_recorded_comparison(file, tmp_path):
    page, folder = tmp_path / "RESULTS.md", tmp_path / "comparison"
    folder.mkdir()
    page.write_bytes((ROOT / "research/RESULTS.md").read_bytes())
    copied = Path(shutil.copy(file, folder))
    assert compare_report.main([str(copied), "--page", str(page)]) == 0
    assert page.read_bytes() == (ROOT / "research/RESULTS.md").read_bytes()
    assert copied.read_bytes() == file.read_bytes()


def arguments_of(command: str) -> dict[str, list[str]]:
    """Flag -> values of a command of linnet-compare, without those on which no result depends."""
    flags: dict[str, list[str]] = {}
    for word in shlex.split(command)[1:]:
        if word.startswith("--"):
            flags[word] = []
        else:
            flags[list(flags)[-1]].append(word)
    flags["--rates"] = [str(float(rate)) for rate in flags.get("--rates", [])]
    unused = ("--data", "--out", "--report", "--page", "--pretrained", "--jobs")
    return {flag: values for flag, values in flags.items() if flag not in unused}


def test_commands_of_the_page_are_those_of_the_recorded_comparisons():
    page = (ROOT / "research/RESULTS.md").read_text(encoding="utf-8").replace("\\\n", "")
    shown = [arguments_of(line) for line in re.findall(r"^linnet-compare .*", page, re.MULTILINE)]
    recorded = [arguments_of(json.loads(file.read_text())["command"]) for file in COMPARISONS]
    assert len(shown) >= 8
    for command in shown:
        assert command in recorded


def test_recorded_comparisons_can_be_drawn(tmp_path, capsys):
    assert compare_plots.main([*map(str, COMPARISONS), "--out", str(tmp_path / "plots")]) == 0
    drawn = [Path(line) for line in capsys.readouterr().out.splitlines()]
    scores = {path.name for path in drawn if path.name.endswith("-scores.svg")}
    assert scores == {f"{file.stem}-scores.svg" for file in COMPARISONS}
    assert all(path.read_text().startswith("<?xml") for path in drawn)


def test_result_file_has_no_more_than_tables_and_plots_read(tmp_path):
    whole = results() | {"torch": "2", "cores": [1, 2]}
    whole["recipe"]["data"] = {"folder": "toy"}
    whole["runs"][0]["valid_nll"] = 2.000000001
    compare_report.write_report(whole, tmp_path, None)
    assert json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8")) == results()
    lines = (tmp_path / "toy-cpu.json").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 20, "a line for each key and run"


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
