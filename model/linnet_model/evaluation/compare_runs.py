"""Trains and scores the models of linnet-compare: a run folder each, beside their vocabulary."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import sacrebleu
from rouge_score import rouge_scorer, scoring
from sacrebleu.metrics.base import Metric

from linnet_model.config import ANSWERED, ConfigError, Recipe
from linnet_model.decode_command import decode_texts
from linnet_model.evaluation.compare_models import as_settings, recipe_of, weights_in
from linnet_model.evaluation.score import read_references
from linnet_model.evaluation.score_run import answers_of_run, test_rows
from linnet_model.export.command import export
from linnet_model.train.data import labelled
from linnet_model.train.validation import exact_match

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
        words += ["--resume", *(f"--set={change}" for change in self.changes)]
        words += as_settings(self.recipe)
        return words if self.start is None else [*words, "--init-from", str(self.start)]


def train(training: Training, options: argparse.Namespace) -> float:
    """Runs linnet-train --resume in a subprocess, with the vocabulary that is beside the run
    folder; returns the last validation loss, in nats per token."""
    run = training.run
    run.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run.parent / "source.spm", run / "source.spm")
    threads = str(training.recipe.train.threads or os.cpu_count())
    package = str(Path(__file__).resolve().parents[2])  # also where it is not installed
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
        raise ConfigError(f"training of {run.name} failed: {text.strip()[-800:]}")
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    return float([entry["nll_all"] for entry in log if entry["kind"] == "valid"][-1])


def training_of(
    job: Job, base: Recipe, rate: float | None, options: argparse.Namespace
) -> Training:
    """Returns the training of a job with that learning rate, or with the recipe's."""
    return Training(
        recipe_of(job.mixer, base, job.seed, rate),
        options.recipe,
        options.set,
        options.out / (job.name if rate is None else f"{job.name}-rate-{rate:g}"),
        options.pretrained / job.mixer if job.pretrained else None,
    )


def validation_losses(mixer: str, base: Recipe, options: argparse.Namespace) -> dict[str, float]:
    """Trains seed 1 of a mixer with each of --rates; returns rate -> validation loss."""
    return {
        f"{rate:g}": train(training_of(Job(mixer, 1), base, rate, options), options)
        for rate in options.rates
    }


def pretraining_loss(mixer: str, base: Recipe, options: argparse.Namespace) -> float:
    """Pre-trains a mixer; returns the validation loss."""
    recipe = recipe_of(mixer, base, base.train.seed)
    run = options.pretrained / mixer
    return train(Training(recipe, options.pretrain, options.pretrain_set, run), options)


def train_and_score(
    job: Job,
    rate: float | None,
    options: argparse.Namespace,
    base: Recipe,
    tests: list[str],
    command: Path | None,
) -> dict[str, Any]:
    """Trains with that learning rate, or with the recipe's, and scores each test set. `command` is
    linnet-decode, for tasks that it has."""
    training = training_of(job, base, rate, options)
    valid_nll = train(training, options)
    recipe, task = training.recipe, training.recipe.bundle.task
    folder = options.data / recipe.data.folder
    rows = {
        name: labelled(pairs[: options.rows or None], recipe.data)
        for name, pairs in test_rows(folder, recipe.data, tests).items()
    }
    texts = [pair.source for pairs in rows.values() for pair in pairs]
    if task in ANSWERED:
        answers = answers_of_run(training.run, texts)
    else:
        assert command is not None
        bundle = options.out / "bundles" / job.name
        export(training.run, bundle, 1, "float32", "comparison", False)
        flags = [f"--device={options.device}", f"--threads={recipe.train.threads}"]
        answers = decode_texts(command, bundle, texts, [*flags, "--compute=float32"])
    scores: dict[str, list[float]] = {}
    for name, pairs in rows.items():
        given, answers = answers[: len(pairs)], answers[len(pairs) :]
        references = read_references(folder, recipe.data, name, pairs)
        for measure, score in interval(task, references, given).items():
            scores[measure if len(rows) == 1 else f"{measure}, {name}"] = score
    return {
        "mixer": job.mixer,
        "seed": job.seed,
        **({"pretrained": job.pretrained} if options.pretrain else {}),
        "learning_rate": recipe.train.learning_rate,
        "parameters": weights_in(recipe.model),
        "ffn_width": recipe.model.ffn_width,
        "valid_nll": valid_nll,
        "test": " ".join(tests),
        "rows": len(texts),
        "scores": scores,
    }


def in_plain_floats(metric: Metric) -> Metric:
    """Makes a metric compute from Python floats. sacrebleu's resampling mixes numpy's float32 with
    Python's 0.0 for scores without a match, and its mean of the two fails."""
    compute = metric._compute_score_from_stats

    def from_plain(stats: list[Any]) -> Any:
        return compute([float(count) for count in stats])

    setattr(metric, "_compute_score_from_stats", from_plain)  # noqa: B010 - mypy: a method
    return metric


def interval(task: str, references: list[list[str]], answers: list[str]) -> dict[str, list[float]]:
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
        for name, metric in (("BLEU", sacrebleu.BLEU()), ("chrF", sacrebleu.CHRF())):
            score = in_plain_floats(metric).corpus_score(
                answers, [first], n_bootstrap=BOOTSTRAP_SAMPLES
            )
            middle, half = float(score._mean), float(score._ci)
            found[name] = [float(score.score), middle - half, middle + half]
        return found
    kinds = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    scorer = rouge_scorer.RougeScorer(list(kinds), use_stemmer=True)
    aggregator = scoring.BootstrapAggregator(n_samples=BOOTSTRAP_SAMPLES)
    for wanted, answer in zip(references, answers, strict=True):
        scores = [scorer.score(reference, answer) for reference in wanted]
        aggregator.add_scores(
            {k: max((s[k] for s in scores), key=lambda x: x.fmeasure) for k in kinds}
        )
    low_mid_high = aggregator.aggregate()
    return {
        shown: [
            100.0 * float(getattr(low_mid_high[k], part).fmeasure)
            for part in ("mid", "low", "high")
        ]
        for k, shown in kinds.items()
    }
