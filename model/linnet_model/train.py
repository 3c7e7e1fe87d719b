"""linnet-train: a recipe and data in, checkpoints out.

Everything that decides the numbers is in the recipe: the same recipe, data and thread count give
the same weights, also when the training was stopped and resumed in between.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import nn
from tqdm import tqdm

from linnet_model.bundle import read_bundle_weights
from linnet_model.checkpoint import (
    Position,
    checkpoints,
    load_checkpoint,
    same_sizes,
    save_checkpoint,
)
from linnet_model.config import (
    ConfigError,
    ModelConfig,
    Recipe,
    from_tables,
    read_recipe,
    to_tables,
)
from linnet_model.data import (
    Batch,
    Corpus,
    DataError,
    epoch_batches,
    make_batch,
    read_pairs,
    training_pairs,
)
from linnet_model.dropout import Dropout
from linnet_model.evaluate import decoded_sample, validation_loss
from linnet_model.loss import smoothed_cross_entropy
from linnet_model.optim import Average, learning_rate, make_optimizer
from linnet_model.tokenizer import load_tokenizer, train_tokenizer
from linnet_model.transducer import PAD, Transducer, parameter_count


class Trainer:
    """One training: model, optimiser, average and position, moved on one update at a time."""

    def __init__(self, recipe: Recipe, corpus: Corpus, device: torch.device):
        self.recipe, self.corpus, self.device = recipe, corpus, device
        torch.manual_seed(recipe.train.seed)
        self.model = Transducer(recipe.model).to(device)
        self.optimizer = make_optimizer(self.model, recipe.train)
        self.average = Average(self.model, recipe.train.average_decay)
        self.drop = Dropout(recipe.train.seed, device)
        self.position = Position()
        self.epoch: list = []
        self.epoch_number = -1

    def start_from(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes over weights, bfloat16 or float32; the optimiser and the data begin anew."""
        self.model.load_state_dict({name: value.float() for name, value in weights.items()})
        self.average = Average(self.model, self.recipe.train.average_decay)

    def resume(self, checkpoint: dict[str, Any]) -> None:
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.average.weights = {
            name: value.to(self.device) for name, value in checkpoint["average"].items()
        }
        self.position = Position(**checkpoint["position"])

    def next_batch(self) -> Batch:
        train = self.recipe.train
        if self.epoch_number != self.position.epoch:
            self.epoch = epoch_batches(
                self.corpus,
                self.recipe.data.domains,
                train.seed,
                self.position.epoch,
                train.batch_target_tokens,
                train.batch_source_tokens,
            )
            self.epoch_number = self.position.epoch
        batch = make_batch(self.corpus, self.epoch[self.position.batch])
        self.position.batch += 1
        if self.position.batch == len(self.epoch):
            self.position.epoch, self.position.batch = self.position.epoch + 1, 0
        return batch

    def update(self) -> dict[str, float]:
        """One update of the weights; returns what a log wants to know of it."""
        train = self.recipe.train
        batch = self.next_batch().to(self.device)
        rate = learning_rate(train, self.position.update)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.drop.begin(self.position.update)
        inside = batch.target != PAD
        with torch.autocast(self.device.type, torch.bfloat16, enabled=train.bfloat16):
            features = self.model(batch.source, batch.lengths, batch.previous(), self.drop)
            loss, likelihood = smoothed_cross_entropy(
                features[inside],
                self.model.output_table(),
                batch.target[inside],
                train.label_smoothing,
            )
        count = int(inside.sum())
        self.optimizer.zero_grad(set_to_none=True)
        (loss / count).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), train.clip_norm or float("inf"))
        if not bool(torch.isfinite(norm)):
            raise ArithmeticError(
                f"update {self.position.update} has a gradient of norm {float(norm)}, "
                f"lower train.learning_rate ({train.learning_rate})"
            )
        self.optimizer.step()
        self.average.add(self.model, self.position.update)
        self.position.update += 1
        self.position.target_tokens += count
        return {
            "nll": float(likelihood),
            "tokens": count,
            "grad_norm": float(norm),
            "learning_rate": rate,
        }


class Log:
    """One JSON object a line in log.jsonl, and the same numbers to tensorboard where it is
    wanted."""

    def __init__(self, folder: Path, tensorboard: bool):
        self.file = (folder / "log.jsonl").open("a", encoding="utf-8")
        self.writer = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / "tensorboard"))

    def write(self, kind: str, update: int, values: dict[str, Any]) -> None:
        self.file.write(
            json.dumps({"kind": kind, "update": update, **values}, ensure_ascii=False) + "\n"
        )
        self.file.flush()
        if self.writer is not None:
            for name, value in values.items():
                if isinstance(value, (int, float)):
                    self.writer.add_scalar(f"{kind}/{name}", value, update)


def run(
    trainer: Trainer,
    valid: Corpus,
    tokenizer: sentencepiece.SentencePieceProcessor,
    out: Path,
    log: Log,
) -> None:
    """Trains until recipe.train.updates, with checkpoints and validation on the way."""
    train = trainer.recipe.train
    progress = tqdm(
        total=train.updates,
        initial=trainer.position.update,
        unit="update",
        mininterval=10.0,
        disable=None,
    )
    saved = measured = time.monotonic()
    nll, tokens = 0.0, 0
    while trainer.position.update < train.updates:
        values = trainer.update()
        nll, tokens = nll + values["nll"], tokens + values["tokens"]
        progress.update()
        update, now = trainer.position.update, time.monotonic()
        if update % train.log_updates == 0:
            trainer.position.seconds += now - measured
            log.write(
                "train",
                update,
                {
                    "epoch": trainer.position.epoch,
                    "nll": nll / tokens,
                    "tokens_per_second": tokens / (now - measured),
                    "learning_rate": values["learning_rate"],
                    "grad_norm": values["grad_norm"],
                    "seconds": trainer.position.seconds,
                    "target_tokens": trainer.position.target_tokens,
                },
            )
            progress.set_postfix(
                nll=f"{nll / tokens:.3f}", epoch=trainer.position.epoch, refresh=False
            )
            nll, tokens, measured = 0.0, 0, now
        if update % train.valid_updates == 0 or update == train.updates:
            validate(trainer, valid, tokenizer, out, log)
            measured = time.monotonic()
        if now - saved > train.checkpoint_seconds or update == train.updates:
            save_checkpoint(
                out,
                trainer.recipe,
                trainer.model,
                trainer.average,
                trainer.optimizer,
                trainer.position,
                train.keep_checkpoints,
            )
            saved = now
    progress.close()


def validate(
    trainer: Trainer,
    valid: Corpus,
    tokenizer: sentencepiece.SentencePieceProcessor,
    out: Path,
    log: Log,
) -> None:
    """Measures the averaged weights and writes samples beside the log."""
    recipe, update = trainer.recipe, trainer.position.update
    model = Transducer(recipe.model).to(trainer.device)
    trainer.average.copy_to(model)
    losses = validation_loss(
        model,
        valid,
        trainer.device,
        recipe.train.batch_target_tokens,
        recipe.train.batch_source_tokens,
    )
    scores, texts = decoded_sample(
        model, valid, tokenizer, recipe.train.valid_rows, trainer.device, recipe.bundle.task
    )
    log.write("valid", update, {**{f"nll_{k}": v for k, v in losses.items()}, **scores})
    with (out / "samples.txt").open("w", encoding="utf-8") as file:
        file.write(f"after {update} updates: {json.dumps(scores)}\n\n")
        for source, reference, answer in texts:
            file.write(f"source     {source}\nreference  {reference}\nanswer     {answer}\n\n")
    tqdm.write(
        f"update {update}: valid nll {losses['all']:.4f} "
        + " ".join(f"{k} {v:.2f}" for k, v in scores.items()),
        file=sys.stderr,
    )


def prepare_tokenizer(recipe: Recipe, data: Path, out: Path, init: Path | None) -> Path:
    """The run's SentencePiece model: the one there is, that of the bundle to start from, or a newly
    trained one."""
    path = out / "source.spm"
    if path.exists():
        return path
    if init is not None:
        beside = (init if init.is_dir() else init.parent) / "source.spm"
        if not beside.exists():
            raise ConfigError(
                f"no source.spm beside {init}, weights and vocabulary belong together"
            )
        path.write_bytes(beside.read_bytes())
        return path
    pairs = read_pairs(data / recipe.data.folder / "train.tsv.xz", recipe.data.domains)
    rng = random.Random(recipe.train.seed)
    lines: list[str] = []
    for pair in pairs:  # each domain by its share, so that the vocabulary is that of the texts seen
        if rng.random() < min(1.0, recipe.data.domains[pair.domain]):
            lines += [pair.source, pair.target]
    rng.shuffle(lines)
    train_tokenizer(lines, recipe.model.vocabulary, recipe.tokenizer, path)
    return path


def read_weights(path: Path) -> tuple[dict[str, torch.Tensor], ModelConfig]:
    """Weights to start from: the averaged ones of a checkpoint or run folder, or those of a
    bundle."""
    if path.is_dir() and (path / "manifest.json").exists():
        return read_bundle_weights(path)
    checkpoint = load_checkpoint(path)
    return checkpoint["average"], from_tables(ModelConfig, checkpoint["recipe"]["model"], "model.")


def pick_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda was asked for and no CUDA device is present, use --device cpu"
        )
    return torch.device(name)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="linnet-train", description=__doc__.split("\n\n")[0])
    parser.add_argument("--recipe", type=Path, required=True, help="TOML file, see model/recipes")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder that holds the recipe's data.folder"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="run folder: checkpoints, log, samples, settings"
    )
    parser.add_argument(
        "--init-from",
        type=Path,
        help="bundle, run folder or checkpoint whose weights to start from",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint of --out"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="overrides the recipe"
    )
    parser.add_argument(
        "--tensorboard", action="store_true", help="write the log for tensorboard too"
    )
    return parser.parse_args(arguments)


def start(options: argparse.Namespace) -> None:
    recipe = read_recipe(options.recipe, options.set)
    device = pick_device(options.device)
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    if checkpoints(out) and not options.resume:
        raise ConfigError(
            f"{out} holds checkpoints already, give --resume to go on or another --out"
        )
    tokenizer = load_tokenizer(prepare_tokenizer(recipe, options.data, out, options.init_from))
    if tokenizer.vocab_size() != recipe.model.vocabulary:
        raise ConfigError(
            f"source.spm has {tokenizer.vocab_size()} pieces and model.vocabulary is "
            f"{recipe.model.vocabulary}"
        )
    folder = options.data / recipe.data.folder
    corpus = Corpus(
        training_pairs(folder / "train.tsv.xz", recipe.data, recipe.train.seed),
        tokenizer,
        recipe.data,
        random.Random(recipe.train.seed),
    )
    valid_domains = recipe.data.valid_domains or list(recipe.data.domains)
    valid = Corpus(read_pairs(folder / "valid.tsv.xz", valid_domains), tokenizer, recipe.data)

    trainer = Trainer(recipe, corpus, device)
    if options.resume and checkpoints(out):
        checkpoint = load_checkpoint(out)
        same_sizes(recipe.model, from_tables(ModelConfig, checkpoint["recipe"]["model"], "model."))
        trainer.resume(checkpoint)
    elif options.init_from is not None:
        weights, sizes = read_weights(options.init_from)
        same_sizes(recipe.model, sizes)
        trainer.start_from(weights)

    settings = {
        "recipe": to_tables(recipe),
        "parameters": parameter_count(trainer.model),
        "device": str(device),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "sentencepiece": sentencepiece.__version__,
        "train": corpus.statistics(),
        "valid": valid.statistics(),
        "first_update": trainer.position.update,
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    print(text, flush=True)
    (out / "settings.json").write_text(text + "\n", encoding="utf-8")
    log = Log(out, options.tensorboard)
    log.write("start", trainer.position.update, {"parameters": settings["parameters"]})
    run(trainer, valid, tokenizer, out, log)


def main(arguments: list[str] | None = None) -> int:
    try:
        start(parse_arguments(arguments))
    except (ConfigError, DataError, ArithmeticError) as error:
        print(f"linnet-train: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
