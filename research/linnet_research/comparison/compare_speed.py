"""Measures how fast the models of linnet-compare train and decode. They take turns, so that load on
the machine affects all alike."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from linnet_model.config import ConfigError, Recipe
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.command import pick_device
from linnet_model.train.datasets import PairDataset, training_pairs
from linnet_model.train.trainer import Trainer
from linnet_research.comparison.compare_models import recipe_with

Timed = dict[str, list[tuple[float, float]]]  # see timed_updates


def training_speed(timed: Timed) -> dict[str, list[float]]:
    """Returns mixer -> target tokens per second of each round."""
    return {
        mixer: [tokens / seconds for seconds, tokens in rounds] for mixer, rounds in timed.items()
    }


def update_seconds(timed: Timed, updates: int) -> dict[str, list[float]]:
    """Returns mixer -> seconds of an update in each round, which had that many."""
    return {mixer: [seconds / updates for seconds, _ in rounds] for mixer, rounds in timed.items()}


def timed_updates(options: argparse.Namespace, base: Recipe) -> Timed:
    """Returns mixer -> (seconds, target tokens) of some updates in each round, by CPU time on a CPU
    and by wall time on a GPU. All models take turns in one process; a first round warms up."""
    device = pick_device(options.device)
    if base.train.threads:
        torch.set_num_threads(base.train.threads)
    folder = options.data / base.data.folder
    tokenizer = load_tokenizer(options.out / "source.spm", base.data.capitals_mark)

    def trainer_of(mixer: str) -> Trainer:
        recipe = recipe_with(mixer, base, 1)
        pairs = training_pairs(folder, recipe.data, base.train.seed)[:20_000]
        rng = random.Random(base.train.seed)
        return Trainer(recipe, PairDataset(pairs, tokenizer, recipe.data, rng), device)

    trainers = {mixer: trainer_of(mixer) for mixer in options.mixers}
    clock = time.process_time if device.type == "cpu" else time.monotonic
    found: Timed = {mixer: [] for mixer in options.mixers}
    for turn in range(options.rounds + 1):
        for mixer, trainer in trainers.items():
            begin, tokens = clock(), 0.0
            for _ in range(options.updates_timed):
                values = trainer.update()
                float(values["nll"])  # waits for the device
                tokens += values["tokens"]
            if turn > 0:
                found[mixer].append((clock() - begin, tokens))
    for trainer in trainers.values():
        trainer.close()
    return found


def synthetic(
    command: Path, bundle: Path, options: argparse.Namespace, tokens: int, batch: int, repeat: int
) -> dict[str, Any]:
    done = subprocess.run(
        [
            str(command),
            f"--bundle={bundle}",
            "--synthetic",
            f"--device={options.device}",
            f"--source-tokens={tokens}",
            f"--target-tokens={tokens}",
            f"--batch={batch}",
            f"--repeat={repeat}",
            "--threads=1",
            "--compute=float32",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ConfigError(f"linnet-decode --synthetic failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def decoding_speed(command: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns mixer -> target tokens per second of full batches, and seconds of one sentence by its
    length, one value per round. One thread, the beam of the recipe. Without mixers whose first
    training diverged."""
    bundles = {mixer: options.out / "bundles" / f"{mixer}-1" for mixer in options.mixers}
    bundles = {mixer: bundle for mixer, bundle in bundles.items() if bundle.exists()}
    found: dict[str, dict[str, Any]] = {
        m: {"batch": [], "sentence": {str(n): [] for n in options.lengths}} for m in bundles
    }
    for _ in range(options.rounds):
        for mixer, bundle in bundles.items():
            full = synthetic(command, bundle, options, 30, 32, 1)
            found[mixer]["batch"].append(full["tokens_per_second"])
        for length in options.lengths:
            for mixer, bundle in bundles.items():
                one = synthetic(command, bundle, options, length, 1, 3)
                found[mixer]["sentence"][str(length)].append(one["seconds"])
    return found
