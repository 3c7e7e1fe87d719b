"""Tests of linnet-export: its card claims only what the recipe says."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
import torch

from linnet_model.bundle import model_sha256, read_bundle_weights, read_manifest
from linnet_model.commands.check import check
from linnet_model.export.card import JUDGEMENTS, KEPT, write_card
from linnet_model.export.command import main as export
from linnet_model.export.random_bundle import made_up_lines
from linnet_model.json_files import read_json, write_json
from linnet_model.network.encoder_decoder import BOS, EOS, PAD, UNK
from linnet_model.train.checkpoint import load_checkpoint
from linnet_model.train.command import main as train

LICENCES = {"even": "CC BY-NC-SA 4.0", "odd": "CC0 1.0"}


@pytest.fixture
def run(recipe_file: Path, data_folder: Path, tmp_path: Path) -> Path:
    """A run of one update from my.toml, whose texts are partly non-commercial and share-alike."""
    text = recipe_file.read_text(encoding="utf-8")
    for domain, licence in LICENCES.items():
        before, after = text.split(f'{domain} = {{ what = "made up"')
        after = after.replace("CC0-1.0", licence, 1)
        text = f'{before}{domain} = {{ what = "made up"{after}'
    recipe = tmp_path / "my.toml"
    recipe.write_text(text, encoding="utf-8")
    flags = ["--recipe", str(recipe), "--data", str(data_folder), "--out", str(tmp_path / "run")]
    assert train([*flags, "--device", "cpu", "--set", "train.updates=1"]) == 0
    return tmp_path / "run"


def exported_card(run: Path, *more: str) -> str:
    out = run.parent / "bundle"
    assert export(["--run", str(run), "--out", str(out), "--bundle-version", "1", *more]) == 0
    return (out / "MODEL_CARD.md").read_text(encoding="utf-8")


def attribution_of(run: Path) -> str:
    """Returns the page that the last export wrote."""
    return (run.parent / "bundle/ATTRIBUTION.md").read_text(encoding="utf-8")


def test_attribution_denies_no_licence_of_the_texts(run: Path):
    card = exported_card(run)
    assert "[ATTRIBUTION.md](ATTRIBUTION.md) names the author, licence" in card
    attribution = attribution_of(run)
    for licence in LICENCES.values():
        assert f"| {licence} |" in attribution
    assert "check the licences before you publish the weights" in attribution
    for claim in ("share-alike", "non-commercial", "not verified"):
        assert claim not in (card + attribution).lower()


def test_card_states_only_the_use_of_its_recipe(run: Path, recipe_file: Path):
    assert exported_card(run).splitlines()[2] == "## Use"
    with recipe_file.open("a", encoding="utf-8") as recipe:
        recipe.write('intended_use = "Names of toys."')
    assert exported_card(run, "--recipe", str(recipe_file)).splitlines()[2] == "Names of toys."


def test_card_names_the_recipe_that_was_trained(run: Path):
    card = exported_card(run)
    assert "training.json has all settings: `my.toml` with `train.updates=1`." in card
    assert "started from other weights" not in attribution_of(run)
    file = run / "settings.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    del settings["recipe_file"], settings["set"]  # as an older linnet-train wrote it
    file.write_text(json.dumps(settings | {"init_from": "bundles/en-de"}), encoding="utf-8")
    card = exported_card(run)
    assert "training.json has all settings.\n" in card
    started = "The training started from other weights (en-de): the table lacks texts"
    assert started in attribution_of(run)


def test_card_says_of_the_tokenizer_and_the_layers_what_they_are(
    run: Path, recipe_file: Path, data_folder: Path, tmp_path: Path
):
    own = "400 SentencePiece pieces for both sides, with bytes for what they lack; the text is not"
    assert own in exported_card(run)
    assert "2 heads, GLU, pre-norm" in exported_card(run)
    content = io.BytesIO()  # with SentencePiece's own defaults
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(made_up_lines(500, seed=2)),
        model_writer=content,
        vocab_size=400,
        minloglevel=2,
        **{"bos_id": BOS, "pad_id": PAD, "eos_id": EOS, "unk_id": UNK},
    )
    (tmp_path / "other.spm").write_bytes(content.getvalue())
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--device", "cpu"]
    flags += ["--out", str(tmp_path / "more"), "--tokenizer-from", str(tmp_path / "other.spm")]
    for side, kernels in (("encoder", [0, 0]), ("decoder", [0])):
        flags += ["--set", f"model.{side}_mixers=['self_attention']"]
        flags += ["--set", f"model.{side}_kernels={kernels}"]
    assert train([*flags, "--set", "train.updates=1"]) == 0
    card = exported_card(tmp_path / "more")
    assert "both sides, without bytes for what they lack; the text is normalised." in card
    assert "2 heads, pre-norm" in card


def test_card_does_not_give_one_machine_the_time_of_two(
    run: Path, data_folder: Path, tmp_path: Path
):
    assert " hours on cpu with 1 thread(s)" in exported_card(run)
    settings = read_json(run / "settings.json")
    write_json(run / "settings.json", settings | {"device": "cuda"})
    flags = ["--recipe", str(tmp_path / "my.toml"), "--data", str(data_folder), "--out", str(run)]
    for updates in (2, 3):  # also when it is resumed once more where it is now
        more = ["--device", "cpu", "--set", f"train.updates={updates}", "--resume"]
        assert train([*flags, *more]) == 0
        assert " hours, the last ones on cpu with 1 thread(s)" in exported_card(run)


def test_averages_as_many_checkpoints_as_asked(
    run: Path, data_folder: Path, tmp_path: Path, capsys
):
    out = ["--out", str(tmp_path / "bundle"), "--bundle-version", "1"]
    assert export(["--run", str(run), *out, "--average", "2"]) == 1
    said = f"--average is 2 and {run} has 1 checkpoint(s), lower it; a run keeps"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
    flags = ["--recipe", str(tmp_path / "my.toml"), "--data", str(data_folder), "--out", str(run)]
    assert train([*flags, "--device", "cpu", "--set", "train.updates=2", "--resume"]) == 0
    for count in (1, 2):
        assert export(["--run", str(run), *out, "--average", str(count)]) == 0
        training = json.loads((tmp_path / "bundle" / "training.json").read_text(encoding="utf-8"))
        assert training["averaged_checkpoints"] == count
        card = (tmp_path / "bundle" / "MODEL_CARD.md").read_text(encoding="utf-8")
        said = "are the mean of the averages in its last 2 checkpoints; the validation is that of"
        assert (said in card) == (count == 2)
    (checkpoint,) = run.glob("checkpoint-*2.pt")
    assert export(["--run", str(checkpoint), *out, "--average", "2"]) == 1
    assert f"{checkpoint} has 1 checkpoint(s)" in capsys.readouterr().err


def test_verdicts_are_kept_but_shown_only_for_the_weights_that_were_judged(run: Path):
    bundle = run.parent / "bundle"
    exported_card(run)
    row = {"text": "one", "answer": "two", "verdict": KEPT, "reason": ""}
    judgements = {"goal": 1, "rubric": "R", "engine": "E", "options": "beam 4", "judged": [row]}
    manifest = read_manifest(bundle)
    write_json(bundle / JUDGEMENTS, judgements | {"model_sha256": model_sha256(manifest)})
    row |= {"verdict": "meaning lost", "reason": "two is not one"}
    shown = "| one | two | meaning lost: two is not one |"
    assert shown not in exported_card(run)
    write_json(bundle / JUDGEMENTS, judgements | {"model_sha256": model_sha256(manifest)})
    assert shown in exported_card(run)
    judgements["model_sha256"] = "of other weights"
    write_json(bundle / JUDGEMENTS, judgements)
    assert shown not in exported_card(run)
    assert read_json(bundle / JUDGEMENTS) == judgements


def test_scores_are_shown_only_for_the_weights_that_were_measured(run: Path):
    bundle = run.parent / "bundle"
    exported_card(run)
    test = {"domain": "even", "rows": 1, "rows_of_file": 1, "length_ratio": 1.0}
    test |= {"looping_share": 0.0, "model": {"BLEU": 12.3}, "baselines": {}}
    scores = {"engine": "E", "options": "beam 4", "measures": ["BLEU"], "signatures": {}}
    scores |= {"tests": [test], "model_sha256": model_sha256(read_manifest(bundle))}
    write_json(bundle / "scores.json", scores)
    write_card(bundle)
    assert "| even | 1 | 12.3 | – | 1.00 | 0.00% |" in (bundle / "MODEL_CARD.md").read_text()
    write_json(bundle / "scores.json", scores | {"model_sha256": "of other weights"})
    write_card(bundle)
    assert "| 12.3 |" not in (bundle / "MODEL_CARD.md").read_text()


@pytest.mark.parametrize("version", ["", " "])
def test_version_that_is_blank_replaces_no_bundle(run: Path, capsys, version: str):
    bundle = run.parent / "bundle"
    exported_card(run)
    before = read_manifest(bundle)
    assert export(["--run", str(run), "--out", str(bundle), "--bundle-version", version]) == 1
    assert f"the version of toy is {version!r}, no server loads a bundle" in capsys.readouterr().err
    assert read_manifest(bundle) == before


def test_refuses_a_folder_that_is_no_run(run: Path, capsys):
    (run / "log.jsonl").unlink()
    flags = ["--run", str(run), "--out", str(run.parent / "none"), "--bundle-version", "1"]
    assert export(flags) == 1
    assert "no log.jsonl beside" in capsys.readouterr().err


def test_refuses_a_file_that_is_no_checkpoint(run: Path, capsys):
    file, out = run / "settings.json", ["--out", str(run.parent / "none"), "--bundle-version", "1"]
    for flags in (["--run", str(file)], ["--run", str(run), "--average-with", str(file)]):
        assert export([*flags, *out]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"linnet-export: {file} is no checkpoint or is damaged (")
        assert err.endswith("): name a run folder of linnet-train, or a checkpoint in it\n")


def test_weights_are_averaged_with_those_of_another_run_of_the_same_vocabulary(
    run: Path, data_folder: Path, tmp_path: Path, capsys
):
    more, recipe = tmp_path / "more", str(tmp_path / "my.toml")
    flags = ["--recipe", recipe, "--data", str(data_folder), "--out", str(more)]
    assert train([*flags, "--device", "cpu", "--init-from", str(run)]) == 0
    out = tmp_path / "mean"
    flags = ["--run", str(more), "--out", str(out), "--bundle-version", "1", "--weights", "float32"]
    one, other = (load_checkpoint(folder)["average"] for folder in (run, more))
    assert any(not torch.equal(one[name], other[name]) for name in one)
    for share, more_flags in ((0.5, []), (0.25, ["--average-share", "0.25"])):
        assert export([*flags, "--average-with", str(run), *more_flags]) == 0
        stored, _ = read_bundle_weights(out)
        for name, weights in stored.items():
            mean = share * other[name] + (1 - share) * one[name]
            assert torch.allclose(weights, mean, atol=1e-6), name
        card = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
        count = f"are the mean of those of this training, which count {share:.0%}, and of run ("
        assert count in card

    (run / "source.spm").write_bytes(b"another")
    assert export([*flags, "--average-with", str(run)]) == 1
    assert "source.spm is another vocabulary than" in capsys.readouterr().err
    (run / "source.spm").unlink()
    assert export([*flags, "--average-with", str(run)]) == 1
    assert f"no source.spm beside {run}, which tells its vocabulary" in capsys.readouterr().err


def test_card_names_licences_of_the_weights_that_are_averaged_in(run: Path, tmp_path: Path):
    settings = read_json(run / "settings.json")
    shutil.copytree(run, tmp_path / "other")
    settings["recipe"]["data"]["terms"]["odd"]["licence"] = "MPL 2.0"
    write_json(tmp_path / "other" / "settings.json", settings)
    exported_card(run, "--average-with", str(tmp_path / "other"))
    attribution = attribution_of(run)
    assert (
        "The weights of other, with which those of this training are averaged, were" in attribution
    )
    assert "were also trained on texts under MPL 2.0.\n" in attribution
    exported_card(run, "--average-with", str(run))
    assert "were also trained on" not in attribution_of(run)


def test_recipe_of_another_task_replaces_no_bundle(run: Path, recipe_file: Path, capsys):
    exported_card(run)
    before = read_manifest(run.parent / "bundle")
    other = run.parent / "other.toml"
    other.write_text(recipe_file.read_text("utf-8") + 'task = "classify"\n', encoding="utf-8")
    flags = ["--run", str(run), "--out", str(run.parent / "bundle"), "--bundle-version", "2"]
    assert export([*flags, "--recipe", str(other)]) == 1
    wanted = "the run was trained to translate and bundle.task of --recipe is classify"
    assert wanted in capsys.readouterr().err
    assert read_manifest(run.parent / "bundle") == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "bundle.examples has a text without words, leave it out"),
        ("one " * 300, "tokens, the model reads at most 256 (bundle.max_source_tokens): shorten"),
    ],
)
def test_examples_that_no_server_reads_are_refused(
    run: Path, recipe_file: Path, capsys, text: str, message: str
):
    recipe = recipe_file.read_text("utf-8").replace("three | four", text)
    recipe_file.write_text(recipe, encoding="utf-8")
    flags = ["--run", str(run), "--out", str(run.parent / "none"), "--bundle-version", "1"]
    assert export([*flags, "--recipe", str(recipe_file)]) == 1
    assert message in capsys.readouterr().err
    assert not (run.parent / "none").exists()


def test_golden_examples_are_answers_of_the_engine(
    run: Path, recipe_file: Path, program: Callable[[str], Path]
):
    """The weights of one update would write anything but text; the engine copies an emoji."""
    examples = '"one two", "three | four", "five 😀 six", "a\\tb"'
    recipe = recipe_file.read_text("utf-8").replace('"one two", "three | four"', examples)
    recipe_file.write_text(recipe, encoding="utf-8")
    for weights in ("float32", "int8"):
        exported_card(run, "--recipe", str(recipe_file), "--dtype", weights)
        golden = read_manifest(run.parent / "bundle")["golden_examples"]
        assert {example["source_text"] for example in golden} <= {"one two", "three | four"}
        said = check(run.parent / "bundle", program("linnet-decode"), "float32", 1)
        assert golden == [] or f"{len(golden)} of {len(golden)} golden examples" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--average-share", "0.3"], "--average-share needs --average-with"),
        (["--average-with", "x", "--average-share", "1"], "--average-share is 1.0, must be above"),
    ],
)
def test_refuses_a_share_of_nothing_or_of_all(run: Path, tmp_path: Path, capsys, flags, message):
    words = ["--run", str(run), "--out", str(tmp_path / "b"), "--bundle-version", "1", *flags]
    assert export(words) == 1
    assert message in capsys.readouterr().err
