"""Trains and scores the models of linnet-compare: a run folder each, beside their vocabulary."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy
import sacrebleu
from sacrebleu.metrics.base import Metric

import linnet_model
from linnet_model.bundle import sha256
from linnet_model.config import ANSWERED, ConfigError, Recipe, read_recipe, to_tables
from linnet_model.decode_command import decode_texts
from linnet_model.evaluation.score import fits_a_model, read_references
from linnet_model.evaluation.score_run import answers_of_run, test_rows
from linnet_model.export.command import export
from linnet_model.json_files import read_json, write_json
from linnet_model.network.model_config import require
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.command import DIVERGED
from linnet_model.train.datasets import labelled
from linnet_model.train.rouge import rouge_of_rows
from linnet_model.train.validation import bleu, exact_match
from linnet_research.comparison.compare_models import (
    as_settings,
    recipe_with,
    weights_in,
)

BOOTSTRAP_SAMPLES = 1000


@dataclass(frozen=True)
class Job:
    """A model to train and score, from random weights or from those of its mixer's
    pre-training."""

    mixer: str
    seed: int
    pretrained: bool = False

    @property
    def name(self) -> str:
        return f"{self.mixer}-{self.seed}" + ("-pretrained" if self.pretrained else "")


@dataclass(frozen=True)
class Training:
    """A call of linnet-train: a recipe with its file and the changes by --set, a run folder, and
    the run folder whose weights it starts from."""

    recipe: Recipe
    path: Path
    changes: list[str]
    run: Path
    start: Path | None = None

    def command(self, options: argparse.Namespace) -> list[str]:
        words = [sys.executable, "-m", "linnet_model.train", "--recipe", str(self.path)]
        words += ["--data", str(options.data), "--out", str(self.run), "--device", options.device]
        words += ["--tokenizer-from", str(self.run.parent / "source.spm"), "--resume"]
        words += [f"--set={change}" for change in self.changes]
        words += as_settings(self.recipe, read_recipe(self.path, self.changes))
        return words if self.start is None else [*words, "--init-from", str(self.start)]


class Diverged(ConfigError):
    """A training that ended because its gradient was not finite."""


def settings_of_weights(recipe: Recipe) -> dict[str, Any]:
    """Returns table.key -> value of a recipe, without the table of the bundle."""
    tables = to_tables(recipe)
    del tables["bundle"]
    return {f"{name}.{key}": value for name, keys in tables.items() for key, value in keys.items()}


def refuse_other_training(training: Training) -> None:
    """Refuses a run folder that was trained by another recipe, with another vocabulary or from the
    weights of another pre-training. linnet-train --resume alone would take up a training that has
    ended with other updates or another validation. Limits and search options change no weights."""
    path, wanted = training.run / "comparison.json", settings_of_weights(training.recipe)
    wanted["vocabulary"] = sha256(training.run.parent / "source.spm")
    if training.start is not None:
        wanted["pretrained"] = training.start.name
        wanted["pretraining"] = read_json(training.start / "comparison.json")
    made_with = read_json(path)
    if made_with is None:
        write_json(path, wanted)
        return
    made_with = settings_of_weights(Recipe()) | made_with  # of before a key was there: its default
    changed = [key for key in wanted | made_with if wanted.get(key) != made_with.get(key)]
    require(
        not changed,
        f"{training.run} was trained with another {', '.join(changed)}: remove the folder to train "
        "it again, or choose another --out",
    )


def train(training: Training, options: argparse.Namespace) -> float:
    """Runs linnet-train --resume in a subprocess, with the vocabulary that is beside the run
    folder; returns the last validation loss, in nats per token."""
    run = training.run
    run.mkdir(parents=True, exist_ok=True)
    refuse_other_training(training)
    threads = str(training.recipe.train.threads or os.cpu_count())
    package = str(Path(linnet_model.__file__).resolve().parents[1])  # where it is not installed
    environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    environment["PYTHONPATH"] = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    with (run / "output.txt").open("a", encoding="utf-8") as output:
        done = subprocess.run(
            training.command(options),
            stdout=output,
            stderr=output,
            env=environment,
            check=False,
        )
    if done.returncode != 0:
        text = (run / "output.txt").read_text(encoding="utf-8")
        failure = Diverged if done.returncode == DIVERGED else ConfigError
        raise failure(f"training of {run.name} failed: {text.strip()[-800:]}")
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    return float([entry["nll_all"] for entry in log if entry["kind"] == "valid"][-1])


def training_of(
    job: Job, base: Recipe, rate: float | None, updates: int | None, options: argparse.Namespace
) -> Training:
    """Returns the training of a job with that learning rate and that many updates, or with the
    recipe's."""
    recipe = recipe_with(job.mixer, base, job.seed, rate, updates)
    run = options.out / (job.name if rate is None else f"{job.name}-rate-{rate}")
    start = options.pretrained / job.mixer if job.pretrained else None
    return Training(recipe, options.recipe, options.set, run, start)


def validation_losses(
    mixer: str, base: Recipe, updates: int | None, options: argparse.Namespace
) -> dict[str, float | None]:
    """Trains seed 1 of a mixer with each of --rates; returns rate -> validation loss, None where
    the training diverged."""

    def one(rate: float) -> float | None:
        try:
            return train(training_of(Job(mixer, 1), base, rate, updates, options), options)
        except Diverged:
            return None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return dict(zip(map(str, options.rates), pool.map(one, options.rates), strict=True))


def best_rate(mixer: str, losses: dict[str, float | None]) -> float:
    ended = {rate: loss for rate, loss in losses.items() if loss is not None}
    require(
        len(ended) > 0,
        f"{mixer} diverges with all of --rates {' '.join(losses)}: give lower ones",
    )
    return float(min(ended, key=ended.__getitem__))


def pretraining_loss(mixer: str, base: Recipe, options: argparse.Namespace) -> float:
    """Pre-trains a mixer; returns the validation loss."""
    recipe = recipe_with(mixer, base, base.train.seed)
    run = options.pretrained / mixer
    return train(Training(recipe, options.pretrain, options.pretrain_set, run), options)


def train_and_score(
    job: Job,
    rate: float | None,
    updates: int | None,
    options: argparse.Namespace,
    base: Recipe,
    tests: list[str],
    command: Path | None,
) -> dict[str, Any]:
    """Trains with that learning rate and that many updates, or with the recipe's, and scores each
    test set; of a training that diverges the scores are empty. `command` is linnet-decode, for
    tasks that it has."""
    training = training_of(job, base, rate, updates, options)
    recipe = training.recipe
    scores: dict[str, list[float]] = {}
    valid_nll, rows = None, 0
    try:
        valid_nll = train(training, options)
        rows, scores = scores_of(training, job, options, tests, command)
    except Diverged:
        pass
    return {
        "mixer": job.mixer,
        "seed": job.seed,
        **({"pretrained": job.pretrained} if options.pretrain else {}),
        "learning_rate": recipe.train.learning_rate,
        **({"updates": recipe.train.updates} if options.equal_time else {}),
        "parameters": weights_in(recipe.model),
        "ffn_width": recipe.model.ffn_width,
        "valid_nll": valid_nll,
        "test": " ".join(tests),
        "rows": rows,
        "scores": scores,
    }


def scores_of(
    training: Training,
    job: Job,
    options: argparse.Namespace,
    tests: list[str],
    command: Path | None,
) -> tuple[int, dict[str, list[float]]]:
    """Returns the number of test rows, and measure -> [score, low, high]."""
    recipe, task = training.recipe, training.recipe.bundle.task
    folder = options.data / recipe.data.folder
    rows = {
        name: labelled(pairs[: options.rows or None], recipe.data)
        for name, pairs in test_rows(folder, recipe.data, tests).items()
    }
    references = {
        name: read_references(folder, recipe.data, name, pairs) for name, pairs in rows.items()
    }
    if task not in ANSWERED:  # linnet-decode refuses what is too long
        tokenizer = load_tokenizer(training.run / "source.spm", recipe.data.capitals_mark)
        for name, pairs in rows.items():
            fits = [
                fits_a_model(tokenizer, pair.source, recipe.bundle.max_source_tokens)
                for pair in pairs
            ]
            rows[name] = list(compress(pairs, fits))
            references[name] = list(compress(references[name], fits))
            require(
                len(rows[name]) > 0, f"no text of test.{name}.tsv fits bundle.max_source_tokens"
            )
    texts = [pair.source for pairs in rows.values() for pair in pairs]
    if task in ANSWERED:
        answers = answers_of_run(training.run, texts, recipe.bundle)
    else:
        assert command is not None
        bundle = options.out / "bundles" / job.name
        export(training.run, bundle, 1, "float32", "comparison", False, recipe)
        flags = [f"--device={options.device}", f"--threads={recipe.train.threads}"]
        answers = decode_texts(command, bundle, texts, [*flags, "--compute=float32"])
    scores: dict[str, list[float]] = {}
    for name, pairs in rows.items():
        given, answers = answers[: len(pairs)], answers[len(pairs) :]
        for measure, score in interval(
            task, references[name], given, recipe.bundle.target_language
        ).items():
            scores[measure if len(rows) == 1 else f"{measure}, {name}"] = score
    return len(texts), scores


def in_plain_floats(metric: Metric) -> Metric:
    """Makes a metric compute from Python floats. sacrebleu's resampling mixes numpy's float32 with
    Python's 0.0 for scores without a match, and its mean of the two fails."""
    compute = metric._compute_score_from_stats

    def from_plain(stats: list[Any]) -> Any:
        return compute([float(count) for count in stats])

    setattr(metric, "_compute_score_from_stats", from_plain)  # noqa: B010 - mypy: a method
    return metric


def interval(
    task: str, references: list[list[str]], answers: list[str], language: str = ""
) -> dict[str, list[float]]:
    """Returns measure -> [score, low, high], with the 95 % bootstrap interval."""
    first = [wanted[0] for wanted in references]
    if task in ANSWERED:
        score = exact_match(first, answers)
        draws = numpy.random.default_rng(1).binomial(  # as many right ones as in resampled rows
            len(answers), score / 100.0, BOOTSTRAP_SAMPLES
        )
        low, high = numpy.percentile(100.0 * draws / len(answers), [2.5, 97.5]).tolist()
        return {"accuracy" if task == "classify" else "exact match": [score, low, high]}
    if task == "translate":
        found = {}
        for name, metric in (("BLEU", bleu(language)), ("chrF", sacrebleu.CHRF())):
            score = in_plain_floats(metric).corpus_score(
                answers, [first], n_bootstrap=BOOTSTRAP_SAMPLES
            )
            middle, half = float(score._mean), float(score._ci)
            found[name] = [float(score.score), middle - half, middle + half]
        return found
    kinds = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    of_rows = rouge_of_rows(references, answers, language)
    shape = (BOOTSTRAP_SAMPLES, len(answers))
    samples = numpy.random.default_rng(1).integers(len(answers), size=shape)
    found = {}
    for kind, shown in kinds.items():
        values = numpy.array(of_rows[kind])
        low, high = numpy.percentile(values[samples].mean(axis=1), [2.5, 97.5]).tolist()
        found[shown] = [float(values.mean()), low, high]
    return found
