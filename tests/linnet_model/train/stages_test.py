"""Tests of recipes with stages: order, resuming, export, and what is refused before training."""

import json
import lzma
import shutil
from pathlib import Path

import pytest
import torch

import linnet_model.train.trainer
from linnet_model.config import ConfigError, read_recipe
from linnet_model.export.command import main as export_main
from linnet_model.train.checkpoint import checkpoints, load_checkpoint
from linnet_model.train.command import main as train_main
from linnet_model.train.stages import read_stages, result_of
from linnet_model.train.trainer import Trainer

STAGES = """
[[stages]]
name = "first"
[stages.train]
updates = 6

[[stages]]
name = "second"
[stages.data]
files = ["train", "more"]
valid_domains = ["even"]
domains = { even = 0.5, new = 1.0 }
terms.new = { what = "new", author = "somebody", licence = "MIT", attribution = "none" }
[stages.train]
updates = 5
learning_rate = 1e-2
"""
FIRST, SECOND = 6, 5  # updates of the stages, by which the tests tell them apart


@pytest.fixture
def recipe(recipe_file: Path, data_folder: Path) -> Path:
    """The small recipe with two stages, of which the second one reads another file as well."""
    more = "".join(f"{word} one\t{word} eins\tnew\n" for word in ("red", "blue", "green"))
    (data_folder / "toy" / "more.tsv.xz").write_bytes(lzma.compress(more.encode()))
    recipe_file.write_text(recipe_file.read_text() + STAGES, encoding="utf-8")
    return recipe_file


def train(recipe: Path, data: Path, out: Path, *more: str) -> int:
    settings = ["train.checkpoint_updates=2", "train.valid_updates=4", "train.keep_checkpoints=9"]
    words = ["--recipe", recipe, "--data", data, "--out", out, "--device", "cpu", *more]
    return train_main([*map(str, words), *(w for s in settings for w in ("--set", s))])


def log_of(run: Path) -> list[dict]:
    """Returns the log without times and without start lines."""
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    clocks = ("tokens_per_second", "seconds")
    return [
        {key: value for key, value in entry.items() if key not in clocks}
        for entry in entries
        if entry["kind"] != "start"
    ]


def stop_at(patch: pytest.MonkeyPatch, stage: int, update: int) -> None:
    """Interrupts the training before that update of the stage of so many updates, or before its
    last validation if there is no such update."""
    train_once, validate = Trainer.update, linnet_model.train.trainer.validate

    def stop(trainer: Trainer) -> None:
        if (trainer.recipe.train.updates, trainer.position.update) == (stage, update):
            raise KeyboardInterrupt

    def stopped_update(trainer: Trainer, *rest):
        stop(trainer)
        return train_once(trainer, *rest)

    def stopped_validation(trainer: Trainer, *rest):
        if update == stage:
            stop(trainer)
        return validate(trainer, *rest)

    patch.setattr(Trainer, "update", stopped_update)
    patch.setattr(linnet_model.train.trainer, "validate", stopped_validation)


def test_training_stopped_in_any_stage_resumes_identically(
    recipe: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert train(recipe, data_folder, whole) == 0
    reached = []
    for stage, update in ((FIRST, 3), (FIRST, FIRST), (SECOND, 1), (SECOND, 3), (SECOND, SECOND)):
        with monkeypatch.context() as patch:
            stop_at(patch, stage, update)
            assert train(recipe, data_folder, stopped, "--resume") == 130
        begun = [name for name in ("first", "second") if checkpoints(stopped / name)]
        reached.append((begun[-1], load_checkpoint(stopped / begun[-1])["position"]["update"]))
    assert reached == [("first", 2), ("first", 6), ("first", 6), ("second", 2), ("second", 5)]
    capsys.readouterr()
    assert train(recipe, data_folder, stopped, "--resume") == 0
    assert f"{stopped / 'first'} is finished" in capsys.readouterr().out
    for name in ("first", "second"):
        one, other = load_checkpoint(whole / name), load_checkpoint(stopped / name)
        for part in ("model", "average"):
            assert all(torch.equal(one[part][key], other[part][key]) for key in one[part])
        assert log_of(whole / name) == log_of(stopped / name)
        assert [entry["update"] for entry in log_of(whole / name) if entry["kind"] == "valid"] == (
            [4, FIRST if name == "first" else SECOND]
        )


def test_stage_starts_from_the_averaged_weights_of_the_one_before(
    recipe: Path, data_folder: Path, tmp_path: Path
):
    assert train(recipe, data_folder, tmp_path / "staged") == 0
    first, second = tmp_path / "staged" / "first", tmp_path / "staged" / "second"
    # The same by hand: the recipe of the second stage, on from the run folder of the first.
    plain = tmp_path / "plain.toml"
    plain.write_text(recipe.read_text().replace(STAGES, ""), encoding="utf-8")
    settings = ["data.files=['train', 'more']", "data.valid_domains=['even']"]
    settings += ["data.domains={even=0.5, odd=0.5, new=1.0}"]
    settings += [f"train.updates={SECOND}", "train.learning_rate=1e-2"]
    settings += ["data.terms.new={what='new', author='x', licence='MIT', attribution='none'}"]
    more = [word for setting in settings for word in ("--set", setting)]
    by_hand = tmp_path / "by-hand"
    assert train(plain, data_folder, by_hand, "--init-from", str(first), *more) == 0
    assert log_of(second) == log_of(by_hand)
    assert (second / "source.spm").read_bytes() == (first / "source.spm").read_bytes()
    before, after = (load_checkpoint(run)["position"] for run in (first, second))
    assert after["earlier_target_tokens"] == before["target_tokens"] > 0


def test_stage_replaces_the_vocabulary_of_an_earlier_start(
    recipe: Path, data_folder: Path, tmp_path: Path, tokenizer_file: Path
):
    left = tmp_path / "out" / "second" / "source.spm"
    left.parent.mkdir(parents=True)
    left.write_bytes(tokenizer_file.read_bytes())
    assert train(recipe, data_folder, tmp_path / "out") == 0
    first = tmp_path / "out" / "first" / "source.spm"
    assert left.read_bytes() == first.read_bytes() != tokenizer_file.read_bytes()


def test_last_stage_is_exported_with_the_data_of_all(
    recipe: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    out, bundle = tmp_path / "out", tmp_path / "bundle"
    export = ["--run", str(out), "--out", str(bundle), "--bundle-version", "1"]
    with monkeypatch.context() as patch:
        stop_at(patch, SECOND, 3)
        assert train(recipe, data_folder, out) == 130
    assert export_main(export) == 1
    said = capsys.readouterr().err
    assert f"stage second, the last one of {out}, is not finished" in said
    assert f"linnet-train --resume, or name the run folder of a stage, {out / 'second'}" in said
    assert train(recipe, data_folder, out, "--resume") == 0
    assert export_main(export) == 0
    training = json.loads((bundle / "training.json").read_text())
    assert training["recipe"]["train"]["updates"] == SECOND
    (stage,) = training["earlier_stages"]
    assert (stage["name"], stage["position"]["update"]) == ("first", FIRST)
    assert "init_from" not in training
    assert json.loads((bundle / "manifest.json").read_text())["license"].endswith("CC0-1.0; MIT")
    card = (bundle / "MODEL_CARD.md").read_text()
    first, last = (load_checkpoint(out / name)["position"] for name in ("first", "second"))
    tokens = [position["target_tokens"] for position in (first, last)]
    assert f"`first` (6 updates over {tokens[0]:,} target tokens)" in card
    assert f"{sum(tokens):,} in all" in card
    for domain in ("even", "odd", "new"):
        assert f"| {domain} |" in (bundle / "ATTRIBUTION.md").read_text()
    # A training may start from the result of stages, as from a run folder.
    settings = ["--set", "train.updates=1", "--init-from", str(out)]
    plain = tmp_path / "plain.toml"
    plain.write_text(recipe.read_text().replace(STAGES, ""), encoding="utf-8")
    assert train(plain, data_folder, tmp_path / "next", *settings) == 0
    assert load_checkpoint(tmp_path / "next")["position"]["earlier_target_tokens"] == sum(tokens)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[stages.data]", "[stages.date]", "stage second: unknown key date, known are model, tok"),
        ("learning_rate", "learnin_rate", "stage second: unknown key train.learnin_rate, known"),
        ("updates = 5", "updates = 0", "stage second: train.updates is 0, must be at least 1"),
        ('"second"', '"first"', "stages 2 and another one have the name 'first'"),
        ('"second"', '"../x"', "stage 2 has the name '../x', must be 1 to 64 lower-case letters"),
        ('name = "second"', "", "stage 2 has the name None, must be"),
        ("[stages.data]", "[stages.model]\nwidth = 32\n[stages.data]", "model.width is 32 and 16"),
        (
            "[stages.data]",
            "[stages.tokenizer]\nkind = 'bpe'\n[stages.data]",
            "stage second: tokenizer.kind is 'bpe' and 'unigram' in stage first: all stages train "
            "one model with one vocabulary, set it above the stages",
        ),
        ("files =", "capitals_mark = '<ph7>'\nfiles =", "data.capitals_mark is '<ph7>' and '' in"),
        (
            "terms.new",
            "terms.even.author = 'me'\nterms.new",
            "stage second: data.terms.even is not that of stage first: give other texts another",
        ),
        ("terms.new", "terms.old", "author and licence of new are unknown"),
        ('"more"', '"less"', "no file"),
        ("new = 1.0", "new = 1.0, law = 1.0", "law"),
        (STAGES, "[stages]\nname = 'a'", "stages is {'name': 'a'}, must be tables [[stages]]"),
    ],
)
def test_wrong_stage_is_refused_before_training(
    recipe: Path, data_folder: Path, tmp_path: Path, capsys, old: str, new: str, message: str
):
    text = recipe.read_text()
    head, tail = text.split(STAGES)[0], STAGES
    if old != STAGES:
        at = tail.index('name = "second"')
        assert old in tail[at:]
        tail = tail[:at] + tail[at:].replace(old, new)
    recipe.write_text(head + (new if old == STAGES else tail), encoding="utf-8")
    assert train(recipe, data_folder, tmp_path / "out") == 1
    assert message in capsys.readouterr().err
    assert not checkpoints(tmp_path / "out" / "first")


def test_out_of_other_stages_is_refused(recipe: Path, data_folder: Path, tmp_path: Path, capsys):
    out, plain, text = tmp_path / "out", tmp_path / "plain.toml", recipe.read_text()
    plain.write_text(text.replace(STAGES, ""), encoding="utf-8")
    assert train(plain, data_folder, tmp_path / "run") == 0
    assert train(recipe, data_folder, tmp_path / "run", "--resume") == 1
    assert "has a training without stages and the recipe has the stages first, second" in (
        capsys.readouterr().err
    )
    assert train(recipe, data_folder, out) == 0
    for changed, resume, message in (
        (text, (), f"{out / 'first'} already has checkpoints, use --resume or another --out"),
        (plain.read_text(), ("--resume",), "has the stages first, second and the recipe has none"),
        (text.replace('"second"', '"other"'), ("--resume",), "recipe has the stages first, other"),
        (text.replace("updates = 6\n\n", "updates = 8\n\n"), ("--resume",), "has started from its"),
        (text.replace("= 1e-2", "= 2e-2"), ("--resume",), "learning_rate is 0.02 and was 0.01"),
    ):
        recipe.write_text(changed, encoding="utf-8")
        assert train(recipe, data_folder, out, *resume) == 1
        assert message in capsys.readouterr().err
    third = text + '\n[[stages]]\nname = "third"\n[stages.train]\nupdates = 1\n'
    recipe.write_text(third, encoding="utf-8")
    assert train(recipe, data_folder, out, "--resume") == 0
    assert load_checkpoint(out / "third")["position"]["update"] == 1


def test_export_without_the_folder_of_an_earlier_stage_is_refused(
    recipe: Path, data_folder: Path, tmp_path: Path, capsys
):
    out = tmp_path / "out"
    assert train(recipe, data_folder, out) == 0
    shutil.rmtree(out / "first")
    flags = ["--run", str(out), "--out", str(tmp_path / "bundle"), "--bundle-version", "1"]
    assert export_main(flags) == 1
    said = f"no settings.json in {out / 'first'}, an earlier stage of {out / 'second'}, whose texts"
    assert said in capsys.readouterr().err


def test_out_without_checkpoints_takes_another_recipe(
    recipe: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        stop_at(patch, FIRST, 1)
        assert train(recipe, data_folder, tmp_path) == 130
    assert (tmp_path / "stages.json").exists()
    plain = tmp_path / "plain.toml"
    plain.write_text(recipe.read_text().replace(STAGES, ""), encoding="utf-8")
    assert train(plain, data_folder, tmp_path) == 0
    assert result_of(tmp_path) == tmp_path


def test_settings_override_every_stage(recipe: Path):
    stages = read_stages(recipe, ["train.updates=3", "data.domains.odd=2"])
    assert [stage.name for stage in stages] == ["first", "second"]
    assert [stage.recipe.train.updates for stage in stages] == [3, 3]
    assert [stage.recipe.data.domains for stage in stages] == [
        {"even": 1.0, "odd": 2.0},
        {"even": 0.5, "odd": 2.0, "new": 1.0},
    ]
    with pytest.raises(ConfigError, match=r"has stages, which linnet-train and linnet-export"):
        read_recipe(recipe)
