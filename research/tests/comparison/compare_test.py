"""Tests of linnet-compare: kept results, early errors, and comparisons end to end."""

from __future__ import annotations

import argparse
import functools
import json
import re
import tomllib

import pytest

from linnet_model import __version__
from linnet_model.config import ConfigError, read_recipe
from linnet_model.data_config import PLAIN_DOMAIN
from linnet_research.comparison import compare, compare_report


def test_test_set_of_plain_files_is_their_only_one(recipe_file):
    settings = ["data.test_source='a'", "data.test_target='b'"]
    plain = read_recipe(recipe_file, settings)
    of = functools.partial(argparse.Namespace, recipe=recipe_file)
    assert compare.test_sets(plain, of(test=[])) == [PLAIN_DOMAIN]
    assert compare.test_sets(plain, of(test=[PLAIN_DOMAIN])) == [PLAIN_DOMAIN]
    with pytest.raises(ConfigError, match=r"--test names even, and the rows of data.test_source"):
        compare.test_sets(plain, of(test=["even"]))


def test_version_without_git_is_that_of_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert compare.version() == __version__


def test_missing_package_fails_before_training(
    tmp_path, recipe_file, data_folder, capsys, monkeypatch
):
    out = tmp_path / "runs"
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert compare.main([*flags, "--test", "even", "--report", str(tmp_path)]) == 1
    assert "no Python package matplotlib, which draws the plots" in capsys.readouterr().err
    assert not out.exists()


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
        (["--test", "even", "--set", "train.seconds=60"], "a comparison trains for equal updates"),
        (
            ["--test", "even", "--equal-time", "--pretrain", str(recipe_file)],
            "with --pretrain all mixers have equal updates",
        ),
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


def test_compares_mixers_for_equal_time(
    tmp_path, recipe_file, data_folder, program, monkeypatch, capsys
):
    out, page = tmp_path / "runs", tmp_path / "page.md"
    page.write_text("\n".join(compare_report.markers("toy-cpu")), encoding="utf-8")
    seconds = {
        "dynamic": [0.1, 0.4],
        "large_batch": [0.2, 0.8],
    }
    timed = {mixer: [(value, 60.0) for value in values] for mixer, values in seconds.items()}
    monkeypatch.setattr(compare, "timed_updates", lambda options, base: timed)
    arguments = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(out)]
    arguments += ["--mixers", *seconds, "--test", "even", "--equal-time", "--rounds", "1"]
    arguments += ["--set", "train.updates=6", "train.warmup_updates=2", "train.decay_updates=4"]
    arguments += ["--updates-timed", "1", "--lengths", "2", "--decode"]
    arguments += [str(program("linnet-decode")), "--report", str(tmp_path), "--page", str(page)]
    assert compare.main(arguments) == 0
    written = json.loads((tmp_path / "toy-cpu.json").read_text(encoding="utf-8"))
    assert written["update_seconds"] == seconds
    assert [run["updates"] for run in written["runs"]] == [6, 3]
    settings = json.loads((out / "large_batch-1" / "settings.json").read_text(encoding="utf-8"))
    wanted = {"updates": 3, "warmup_updates": 1, "decay_updates": 2, "accumulate": 4}
    assert wanted.items() <= settings["recipe"]["train"].items()
    shown = page.read_text(encoding="utf-8")
    assert "for dynamic and, for each other mixer, as many as take as long" in shown
    assert re.search(r"\| large_batch \| [0-9,]+ \| 3 \|", shown)
    assert " --equal-time --" in written["command"]
    (out / "large_batch-1.json").unlink()
    assert compare.main([*arguments, "--rounds", "2"]) == 1
    assert "updates.json was made with another rounds" in capsys.readouterr().err


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
