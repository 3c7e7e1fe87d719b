"""One training: updates of the weights, validation and checkpoints on the way."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import nn

from linnet_model.checkpoint import Position, save_checkpoint
from linnet_model.config import Recipe
from linnet_model.data import Batch, Corpus, Ids, epoch_batches, make_batch
from linnet_model.dropout import Dropout
from linnet_model.evaluate import decoded_sample, features_of, perplexities, token_losses
from linnet_model.loss import smoothed_cross_entropy
from linnet_model.optim import Average, learning_rate, make_optimizer
from linnet_model.training_log import Log, Progress
from linnet_model.transducer import PAD, Transducer


class Trainer:
    """Model, optimiser, average and position, moved on one update at a time."""

    def __init__(self, recipe: Recipe, corpus: Corpus, device: torch.device):
        self.recipe, self.corpus, self.device = recipe, corpus, device
        torch.manual_seed(recipe.train.seed)
        self.model = Transducer(recipe.model).to(device)
        self.optimizer = make_optimizer(self.model, recipe.train)
        self.average = Average(self.model, recipe.train.average_decay)
        self.drop = Dropout(recipe.train.seed, device)
        self.position = Position()
        self.epoch: list[Ids] = []
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
        batch = make_batch(self.corpus, self.epoch[self.position.batch], self.position.epoch)
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
            features = features_of(self.model, batch, self.drop)
            loss, likelihood = smoothed_cross_entropy(
                features[inside],
                self.model.output_table(),
                batch.target[inside],
                train.label_smoothing,
                self.model.output_bias,
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


def run(
    trainer: Trainer,
    valid: Corpus,
    tokenizer: sentencepiece.SentencePieceProcessor,
    out: Path,
    log: Log,
) -> None:
    """Trains until recipe.train.updates, with checkpoints and validation on the way."""
    train, position = trainer.recipe.train, trainer.position
    progress = Progress(position.update, train.updates)
    saved = measured = time.monotonic()
    while position.update < train.updates:
        values = trainer.update()
        position.unlogged_nll += values["nll"]
        position.unlogged_tokens += int(values["tokens"])
        progress.advance()
        update, now = position.update, time.monotonic()
        if update % train.log_updates == 0:
            nll = position.unlogged_nll / position.unlogged_tokens
            rate = position.unlogged_tokens / (now - measured)
            position.seconds += now - measured
            log.write(
                "train",
                update,
                {
                    "epoch": position.epoch,
                    "nll": nll,
                    "tokens_per_second": rate,
                    "learning_rate": values["learning_rate"],
                    "grad_norm": values["grad_norm"],
                    "seconds": position.seconds,
                    "target_tokens": position.target_tokens,
                },
            )
            progress.log(update, nll, rate)
            position.unlogged_nll, position.unlogged_tokens, measured = 0.0, 0, now
        last = update == train.updates
        if last or update % train.valid_updates == 0:
            progress.say(validate(trainer, valid, tokenizer, out, log))
            measured = time.monotonic()
        due = train.checkpoint_updates > 0 and update % train.checkpoint_updates == 0
        if last or due or now - saved > train.checkpoint_seconds:
            save_checkpoint(
                out,
                trainer.recipe,
                trainer.model,
                trainer.average,
                trainer.optimizer,
                position,
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
) -> str:
    """Measures the averaged weights, writes samples beside the log, and says it in a line."""
    recipe, update = trainer.recipe, trainer.position.update
    model = Transducer(recipe.model).to(trainer.device)
    trainer.average.copy_to(model)
    totals = token_losses(
        model,
        valid,
        trainer.device,
        recipe.train.batch_target_tokens,
        recipe.train.batch_source_tokens,
    )
    losses = {f"nll_{domain}": nll / tokens for domain, (nll, tokens) in totals.items()}
    scores, texts = decoded_sample(
        model, valid, tokenizer, recipe.train.valid_rows, trainer.device, recipe.bundle.task
    )
    scores = {**perplexities(valid, totals), **scores}
    log.write("valid", update, {**losses, **scores})
    if texts:
        with (out / "samples.txt").open("w", encoding="utf-8") as file:
            file.write(f"after {update} updates: {json.dumps(scores)}\n\n")
            for source, reference, answer in texts:
                file.write(f"source     {source}\nreference  {reference}\nanswer     {answer}\n\n")
    return f"update {update:,}: validation {losses['nll_all']:.4f} nats a token, " + ", ".join(
        f"{name.replace('_', ' ')} {value:.2f}" for name, value in scores.items()
    )
