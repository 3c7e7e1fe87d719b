"""Tests of linnet-train: resuming, starting from weights, and errors."""

import functools
import itertools
import json
from pathlib import Path

import pytest
import torch

import linnet_model.train.command
import linnet_model.train.trainer
from linnet_model.bundle import load_module, read_bundle_weights, read_manifest
from linnet_model.config import TrainConfig, read_recipe
from linnet_model.evaluation import score
from linnet_model.export.command import main as export_main
from linnet_model.network.encoder_decoder import PAD
from linnet_model.texts import card_examples
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.checkpoint import checkpoints, load_checkpoint
from linnet_model.train.command import DIVERGED, locked
from linnet_model.train.command import main as train_main
from linnet_model.train.datasets import PairDataset, training_pairs
from linnet_model.train.optim import learning_rate, schedule_position
from linnet_model.train.trainer import Trainer


def train(recipe: Path, data: Path, out: Path, *more: str) -> int:
    arguments = ["--recipe", recipe, "--data", data, "--out", out, "--device", "cpu", *more]
    return train_main([str(argument) for argument in arguments])


def weights(out: Path) -> dict[str, torch.Tensor]:
    checkpoint = load_checkpoint(out)
    return {f"{part}.{n}": v for part in ("model", "average") for n, v in checkpoint[part].items()}


def test_resumed_training_gives_same_numbers(recipe_file: Path, data_folder: Path, tmp_path: Path):
    # A schedule without decay: three updates are the first half of six.
    stop = ["--set", "train.schedule='inverse_sqrt'"]
    assert train(recipe_file, data_folder, tmp_path / "a", *stop) == 0
    assert train(recipe_file, data_folder, tmp_path / "b", *stop, "--set", "train.updates=3") == 0
    assert train(recipe_file, data_folder, tmp_path / "b", *stop, "--resume") == 0
    once, again = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert load_checkpoint(tmp_path / "b")["position"]["update"] == 6
    assert all(torch.equal(once[name], again[name]) for name in once)


def trainer_of(recipe: Path, data: Path, tokenizer: Path, *settings: str) -> Trainer:
    none = [f"model.{name}=0.0" for name in ("dropout", "weight_dropout")]
    found = read_recipe(recipe, none + list(settings))
    pairs = training_pairs(data / found.data.folder, found.data, seed=1)
    dataset = PairDataset(pairs, load_tokenizer(tokenizer), found.data)
    return Trainer(found, dataset, torch.device("cpu"))


def test_accumulated_gradient_is_that_of_all_tokens(
    recipe_file: Path, data_folder: Path, tokenizer_file: Path
):
    settings = ("train.accumulate=3", "train.clip_norm=0.0", "train.bfloat16=false")
    trainer = trainer_of(recipe_file, data_folder, tokenizer_file, *settings)
    wanted = trainer_of(recipe_file, data_folder, tokenizer_file, *settings)
    count, losses = 0, []
    for _ in range(3):
        batch = wanted.next_batch()
        losses.append(wanted.losses(batch)[0])
        count += int((batch.target != PAD).sum())
    (sum(losses) / count).backward()
    assert trainer.update()["tokens"] == count == trainer.position.target_tokens
    for found, expected in zip(trainer.model.parameters(), wanted.model.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


def test_bfloat16_is_chosen_by_the_hardware(
    recipe_file: Path, data_folder: Path, tokenizer_file: Path, monkeypatch
):
    for capability, chosen in (("amx_bf16", True), ("avx512_bf16", True), ("avx2", False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda name=capability: {name: True})
        assert trainer_of(recipe_file, data_folder, tokenizer_file).bfloat16 is chosen
        no = trainer_of(recipe_file, data_folder, tokenizer_file, "train.bfloat16=false")
        assert no.bfloat16 is False


def test_licences_of_the_texts_behind_the_weights_are_kept(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    def exported(run: Path, name: str, *more: str) -> Path:
        out = tmp_path / name
        flags = ["--run", str(run), "--bundle-version", "1", "--out", str(out), *more]
        assert export_main(flags) == 0
        return out

    def license_of(bundle: Path) -> str:
        return json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["license"]

    assert train(recipe_file, data_folder, tmp_path / "a") == 0
    first = exported(tmp_path / "a", "first")
    own = license_of(first).removeprefix("trained on texts under ")
    assert own != license_of(first)
    manifest = json.loads((first / "manifest.json").read_text(encoding="utf-8"))
    manifest["license"] = "trained on texts under A 1.0; B 2.0"
    (first / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    # By way of a run, that of a resumed training, and of weights that are averaged with.
    assert train(recipe_file, data_folder, tmp_path / "b", "--init-from", str(first)) == 0
    longer = ["--init-from", str(first), "--resume", "--set", "train.updates=7"]
    assert train(recipe_file, data_folder, tmp_path / "b", *longer) == 0
    assert train(recipe_file, data_folder, tmp_path / "c", "--init-from", str(tmp_path / "b")) == 0
    wanted = f"trained on texts under {'; '.join(sorted(['A 1.0', 'B 2.0', *own.split('; ')]))}"
    for bundle in (
        exported(tmp_path / "b", "second"),
        exported(tmp_path / "c", "third"),
        exported(tmp_path / "a", "fourth", "--average-with", str(first)),
    ):
        assert license_of(bundle) == wanted
    assert "A 1.0; B 2.0" in (tmp_path / "second/ATTRIBUTION.md").read_text(encoding="utf-8")


def test_target_tokens_of_continued_trainings_are_summed(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    assert train(recipe_file, data_folder, tmp_path / "a") == 0
    first = load_checkpoint(tmp_path / "a")["position"]
    assert first["earlier_target_tokens"] == 0
    bundle = tmp_path / "bundle"
    exported = ["--run", tmp_path / "a", "--bundle-version", "1", "--out", bundle]
    assert export_main([str(argument) for argument in exported]) == 0
    assert train(recipe_file, data_folder, tmp_path / "b", "--init-from", str(bundle)) == 0
    second = load_checkpoint(tmp_path / "b")["position"]
    assert second["earlier_target_tokens"] == first["target_tokens"] > 0
    assert train(recipe_file, data_folder, tmp_path / "c", "--init-from", str(tmp_path / "b")) == 0
    third = load_checkpoint(tmp_path / "c")["position"]
    assert third["earlier_target_tokens"] == first["target_tokens"] + second["target_tokens"]


def test_loss_falls_and_log_has_all_updates(recipe_file: Path, data_folder: Path, tmp_path: Path):
    more = ["--set", "train.updates=60", "--set", "train.learning_rate=1e-2"]
    assert train(recipe_file, data_folder, tmp_path / "run", *more) == 0
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [entry["nll"] for entry in log if entry["kind"] == "train"]
    assert len(losses) == 60
    # From log(400) = 5.99 to well below the loss of a unigram model.
    assert losses[0] > 5.5
    assert sum(losses[-5:]) / 5 < losses[0] - 1.5
    valid = next(entry for entry in log if entry["kind"] == "valid")
    assert {"nll_all", "nll_even", "nll_odd", "bleu", "chrf"} <= set(valid)
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert settings["recipe"]["train"]["learning_rate"] == 1e-2
    even = settings["train"]["even"]
    assert even["rows"] + even["dropped_as_too_long"] == 120
    assert "answer" in (tmp_path / "run" / "samples.txt").read_text()


def test_missing_package_is_told_before_the_training(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    summaries = ["--set", "train.updates=2", "--set", 'bundle.task="summarize"']
    summaries += ["--set", 'bundle.target_language="en"']
    assert train(recipe_file, data_folder, tmp_path / "run", *summaries) == 1
    assert "there is no Python package rouge_score, which measures" in capsys.readouterr().err
    assert train(recipe_file, data_folder, tmp_path / "run", "--tensorboard") == 1
    assert "no Python package tensorboard, which --tensorboard writes" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_validation_decodes_no_row_if_none_is_asked_for(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    more = ["--set", "train.updates=2", "--set", "train.valid_rows=0"]
    assert train(recipe_file, data_folder, tmp_path / "run", *more) == 0
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    (valid,) = [entry for entry in log if entry["kind"] == "valid"]
    assert valid["nll_all"] > 0
    assert "bleu" not in valid


def test_timed_training_ends_with_its_schedule(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ticks = itertools.count()  # one second per call
    run = functools.partial(linnet_model.train.command.run, clock=lambda: float(next(ticks)))
    monkeypatch.setattr(linnet_model.train.command, "run", run)
    out = tmp_path / "run"
    more = ["--set", "train.updates=1000", "--set", "train.seconds=90"]
    more += ["--set", "train.warmup_updates=100", "--set", "train.decay_updates=500"]
    assert train(recipe_file, data_folder, out, *more) == 0
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    rates = [entry["learning_rate"] for entry in log if entry["kind"] == "train"]
    assert 10 < len(rates) < 90, "the clock is looked at a few times in each update"
    assert next(ticks) < 100, "it ends in time"
    assert rates[0] < max(rates), "it warms up"
    assert rates[-1] < 0.25 * max(rates), "and decays in time"
    assert [entry["kind"] for entry in log[-2:]] == ["valid", "end"]
    assert load_checkpoint(out)["position"]["update"] == len(rates)


def test_timed_training_resumes_where_its_schedule_was(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = [0.0]
    run = functools.partial(linnet_model.train.command.run, clock=lambda: now[0])
    monkeypatch.setattr(linnet_model.train.command, "run", run)
    step, checked = Trainer.update, linnet_model.train.trainer.validate

    def update(self, *arguments):
        now[0] += 1
        return step(self, *arguments)

    def validate(*arguments):
        now[0] += 10
        return checked(*arguments)

    monkeypatch.setattr(Trainer, "update", update)
    monkeypatch.setattr(linnet_model.train.trainer, "validate", validate)
    out = tmp_path / "run"
    more = ["--set", "train.updates=1000", "--set", "train.valid_updates=4"]
    more += ["--set", "train.log_updates=1000", "--set", "train.checkpoint_updates=5"]
    # Four updates and a validation, 14 seconds; a fifth update at 15, and the checkpoint.
    first = [*more, "--set", "train.seconds=15"]
    assert train(recipe_file, data_folder, out, *first) == 0
    position = load_checkpoint(out)["position"]
    assert (position["update"], position["seconds"]) == (5, 15.0)
    assert train(recipe_file, data_folder, out, *more, "--set", "train.seconds=17", "--resume") == 0
    position = load_checkpoint(out)["position"]
    assert (position["update"], position["seconds"]) == (7, 17.0)


def test_weights_that_are_not_finite_are_not_saved(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    step, checked = Trainer.update, linnet_model.train.trainer.token_losses

    def unchecked(self, *arguments):
        """As on a GPU, where an update does not look at its gradient."""
        values = step(self, *arguments)
        return {**values, "grad_norm": torch.tensor(float("inf"))}

    more = ["--set", "train.log_updates=1000", "--set", "train.checkpoint_updates=2"]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", unchecked)
        assert train(recipe_file, data_folder, tmp_path / "run", *more) == DIVERGED
    assert checkpoints(tmp_path / "run") == []
    assert (
        "update 2 has a gradient of norm inf, lower train.learning_rate" in capsys.readouterr().err
    )

    def lost(*arguments):
        return {domain: (float("nan"), 1) for domain in checked(*arguments)}

    monkeypatch.setattr(linnet_model.train.trainer, "token_losses", lost)
    assert train(recipe_file, data_folder, tmp_path / "other", *more) == DIVERGED
    assert "has a validation loss of nan, lower train.learning_rate" in capsys.readouterr().err


def test_validation_that_was_killed_is_made_up_for(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def killed(*_):
        raise KeyboardInterrupt

    more = ["--set", "train.valid_updates=1000"]
    with monkeypatch.context() as patch:
        patch.setattr(linnet_model.train.trainer, "validate", killed)
        assert train(recipe_file, data_folder, tmp_path / "run", *more) == 130
    assert load_checkpoint(tmp_path / "run")["position"]["update"] == 6
    # That validation is made up for once, and a finished training is left alone.
    for _ in range(2):
        assert train(recipe_file, data_folder, tmp_path / "run", *more, "--resume") == 0
        log = [json.loads(s) for s in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
        assert [entry["kind"] for entry in log].count("valid") == 1


def test_training_under_autocast_learns(recipe_file: Path, data_folder: Path, tmp_path: Path):
    more = ["--set", "train.updates=20", "--set", "train.learning_rate=1e-2"]
    out = tmp_path / "run"
    assert train(recipe_file, data_folder, out, *more, "--set", "train.bfloat16=true") == 0
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    losses = [entry["nll"] for entry in log if entry["kind"] == "train"]
    assert losses[-1] < losses[0] - 0.5


def test_run_is_exported_scored_and_continued(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    run, bundle = tmp_path / "run", tmp_path / "bundle"
    terms = {"what": "w", "author": "a", "licence": "CC0", "attribution": "thanks"}
    known = {"even": terms, "odd": terms}
    monkeypatch.setattr("linnet_model.export.attribution.sources_of", lambda *_: known)
    monkeypatch.setattr("linnet_model.export.command.sources_of", lambda *_: known)
    assert train(recipe_file, data_folder, run) == 0
    export = ["--run", run, "--out", bundle, "--bundle-version", "1", "--provisional"]
    assert export_main([str(argument) for argument in export]) == 0

    manifest = read_manifest(bundle)
    assert manifest["provisional"] is True
    examples = ["one two", "three | four"]
    assert {g["source_text"] for g in manifest["golden_examples"]} <= {*examples}
    stored, _ = read_bundle_weights(bundle)
    average = load_checkpoint(run)["average"]
    assert all(torch.equal(stored[name], average[name].to(torch.bfloat16)) for name in average)
    assert load_module(bundle / "model.pt").new_state(1)

    test_file = data_folder / "toy" / "test.even.tsv"
    too_long = "one " * 300
    test_file.write_text(f"{too_long}\t{too_long}\teven\n{test_file.read_text()}")
    arguments = ["--bundle", bundle, "--data", data_folder, "--engine", "python", "--write"]
    assert (
        score.main(
            [str(argument) for argument in [*arguments, "--limit", 4, "--answers", tmp_path]]
        )
        == 0
    )
    scores = json.loads((bundle / "scores.json").read_text())
    assert [test["rows"] for test in scores["tests"]] == [3]
    assert "1 of 4 texts left out, they are longer than the 256 tokens" in capsys.readouterr().err
    answers = (tmp_path / "even.tsv").read_bytes().decode().removesuffix("\n").split("\n")
    assert len(answers) == 3
    assert all(len(line.split("\t")) == 3 for line in answers)
    # targets equal sources
    assert scores["tests"][0]["baselines"]["source copied"]["BLEU"] == pytest.approx(100)
    shown = [example["text"] for example in scores["examples"]]
    assert shown == [*examples, *card_examples("translate", "en")]
    card = (bundle / "MODEL_CARD.md").read_text()
    for part in ("Provisional", "| even |", "3 of 16", "| one two |"):
        assert part in card
    assert "| a | CC0 | thanks |" in (bundle / "ATTRIBUTION.md").read_text()
    assert "nrefs:1|case:mixed" in scores["signatures"]["BLEU"]

    # Continues from the bundle: the first update starts at its bfloat16 weights in float32.
    once = ["--init-from", str(bundle), "--set", "train.updates=1", "--set"]
    assert (
        train(recipe_file, data_folder, tmp_path / "next", *once, "train.learning_rate=1e-12") == 0
    )
    after = load_checkpoint(tmp_path / "next")["model"]
    assert all(torch.allclose(after[n], stored[n].float(), atol=1e-9) for n in stored)
    assert (tmp_path / "next" / "source.spm").read_bytes() == (bundle / "source.spm").read_bytes()
    other = ["--init-from", str(bundle), "--set", "model.ffn_width=32"]
    assert train(recipe_file, data_folder, tmp_path / "other", *other) == 1
    assert "model.ffn_width is 32 in the recipe and 24 in the weights" in capsys.readouterr().err


def test_vocabulary_of_an_earlier_start_is_refused(
    recipe_file: Path, data_folder: Path, tmp_path: Path, tokenizer_file: Path, capsys
):
    """A start that is refused or killed before its first checkpoint leaves a vocabulary, and the
    next one may start from weights with another."""
    first, out = tmp_path / "first", tmp_path / "out"
    once = ["--set", "train.updates=1"]
    assert train(recipe_file, data_folder, first, *once) == 0
    out.mkdir()
    left = out / "source.spm"
    left.write_bytes(tokenizer_file.read_bytes())
    beside = first / "source.spm"
    assert left.read_bytes() != beside.read_bytes()
    for start in (["--init-from", str(first)], ["--tokenizer-from", str(beside)]):
        capsys.readouterr()
        assert train(recipe_file, data_folder, out, *once, *start) == 1
        said = f"{left} is of an earlier start and differs from {beside}: remove {left}, or choose"
        assert said in capsys.readouterr().err
    left.unlink()
    # Nor do weights take the vocabulary of another folder.
    both = ["--init-from", str(first), "--tokenizer-from", str(tokenizer_file)]
    assert train(recipe_file, data_folder, tmp_path / "both", *once, *both) == 1
    assert f"--init-from {first} has another vocabulary than" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()
    assert train(recipe_file, data_folder, out, *once, "--init-from", str(first)) == 0
    assert left.read_bytes() == beside.read_bytes()
    # Without weights to start from, it is trained again: recipe or data may have changed.
    other = tmp_path / "other"
    other.mkdir()
    (other / "source.spm").write_bytes(tokenizer_file.read_bytes())
    assert train(recipe_file, data_folder, other, *once) == 0
    assert (other / "source.spm").read_bytes() == beside.read_bytes()
    # With a checkpoint the run's own vocabulary stays, and another is refused.
    beside.write_bytes(tokenizer_file.read_bytes())
    more = ["--resume", "--set", "train.updates=2"]
    assert train(recipe_file, data_folder, out, *more, "--init-from", str(first)) == 1
    assert f"{out} is resumed with its own vocabulary, and that of" in capsys.readouterr().err
    assert train(recipe_file, data_folder, out, *more) == 0


def test_weights_beside_those_of_a_resumed_run_are_refused(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    first, out, once = tmp_path / "first", tmp_path / "out", ["--set", "train.updates=1"]
    assert train(recipe_file, data_folder, first, *once) == 0
    assert train(recipe_file, data_folder, out, *once) == 0
    more = ["--resume", "--set", "train.updates=2"]
    assert train(recipe_file, data_folder, out, *more, "--init-from", str(first)) == 1
    assert f"it started from random ones, not from {first}" in capsys.readouterr().err
    (out / "settings.json").unlink()
    assert train(recipe_file, data_folder, out, *more) == 1
    assert "has a checkpoint and no settings.json" in capsys.readouterr().err


def test_run_folder_of_another_process_is_refused(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    out = tmp_path / "out"
    out.mkdir()
    with locked(out):
        assert train(recipe_file, data_folder, out, "--set", "train.updates=1") == 1
    assert f"another linnet-train trains in {out}" in capsys.readouterr().err
    assert not (out / "settings.json").exists()
    assert train(recipe_file, data_folder, out, "--set", "train.updates=1") == 0


def test_removes_old_checkpoints(recipe_file: Path, data_folder: Path, tmp_path: Path):
    for updates in (1, 2, 3):
        more = [
            "--resume",
            "--set",
            f"train.updates={updates}",
            "--set",
            "train.keep_checkpoints=2",
        ]
        assert train(recipe_file, data_folder, tmp_path / "run", *more) == 0
    names = [path.name for path in checkpoints(tmp_path / "run")]
    assert names == ["checkpoint-0000002.pt", "checkpoint-0000003.pt"]


def test_errors_have_message_without_traceback(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    assert train(recipe_file, tmp_path, tmp_path / "run") == 1
    assert "linnet-train: no folder" in capsys.readouterr().err
    assert train(recipe_file, data_folder, tmp_path / "run", "--set", "model.vocabulary=90000") == 1
    assert "no SentencePiece model of 90000 pieces" in capsys.readouterr().err
    assert train(recipe_file, data_folder, tmp_path / "run") == 0
    assert train(recipe_file, data_folder, tmp_path / "run") == 1
    assert "use --resume or another --out" in capsys.readouterr().err
    assert train(recipe_file, data_folder, tmp_path / "new", "--init-from", str(tmp_path)) == 1
    assert "no source.spm beside" in capsys.readouterr().err
    explode = ["--set", "train.learning_rate=1e30", "--set", "train.clip_norm=0"]
    assert train(recipe_file, data_folder, tmp_path / "boom", *explode) == DIVERGED
    assert "lower train.learning_rate" in capsys.readouterr().err
    if not torch.cuda.is_available():
        arguments = ["--recipe", recipe_file, "--data", data_folder, "--out", tmp_path / "gpu"]
        assert train_main([*map(str, arguments), "--device", "cuda"]) == 1
        assert "needs a CUDA device and none is present" in capsys.readouterr().err


def test_schedules_warm_up_and_decay():
    common = {"updates": 1000, "warmup_updates": 100, "learning_rate": 2.0, "final_share": 0.1}
    for schedule in ("inverse_sqrt", "cosine", "trapezoid"):
        config = TrainConfig(schedule=schedule, decay_updates=400, **common)
        assert learning_rate(config, 0) == pytest.approx(0.02)
        assert learning_rate(config, 99) == pytest.approx(2.0)
        rates = [learning_rate(config, update) for update in range(100, 1000)]
        assert rates == sorted(rates, reverse=True)
    timed = TrainConfig(schedule="trapezoid", decay_updates=400, seconds=50.0, **common)
    assert schedule_position(timed, 7, seconds=25.0) == 500.0
    assert schedule_position(timed, 7, seconds=60.0) == 1000.0
    assert schedule_position(TrainConfig(**common), 7, seconds=60.0) == 7
    trapezoid = TrainConfig(schedule="trapezoid", decay_updates=400, **common)
    assert learning_rate(trapezoid, 600) == pytest.approx(2.0)
    assert learning_rate(trapezoid, 800) == pytest.approx(2.0 * 0.55)
    assert learning_rate(trapezoid, 1000) == pytest.approx(0.2)
    inverse = TrainConfig(schedule="inverse_sqrt", **common)
    assert learning_rate(inverse, 399) == pytest.approx(1.0)
    cosine = TrainConfig(schedule="cosine", **common)
    assert learning_rate(cosine, 550) == pytest.approx(1.1)
