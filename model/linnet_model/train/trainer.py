"""The training loop: updates of the weights, validation and checkpoints."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor, nn

from linnet_model.config import Recipe, TrainConfig
from linnet_model.network.dropout import Dropout
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.new_file import writing
from linnet_model.train.checkpoint import Position, save_checkpoint
from linnet_model.train.datasets import Batch, Ids, PairDataset, epoch_batches, make_batch
from linnet_model.train.loss import smoothed_cross_entropy
from linnet_model.train.optim import Average, learning_rate, make_optimizer, schedule_position
from linnet_model.train.training_log import Log, Progress
from linnet_model.train.validation import decoded_sample, features_of, perplexities, token_losses


def has_bfloat16_gemm(device: torch.device) -> bool:
    """Returns whether bfloat16 is faster than float32 on the device."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def uses_bfloat16(train: TrainConfig, device: torch.device) -> bool:
    """Returns whether a training on the device autocasts to bfloat16."""
    return has_bfloat16_gemm(device) if train.bfloat16 == "auto" else bool(train.bfloat16)


class Trainer:
    """Model, optimizer, average of the weights and position in the data. `update` advances them."""

    def __init__(self, recipe: Recipe, dataset: PairDataset, device: torch.device):
        self.recipe, self.dataset, self.device = recipe, dataset, device
        torch.backends.cuda.matmul.allow_tf32 = True  # more precise than autocast's bfloat16
        torch.manual_seed(recipe.train.seed)
        self.bfloat16 = uses_bfloat16(recipe.train, device)
        self.model = EncoderDecoder(recipe.model).to(device)
        self.optimizer = make_optimizer(self.model, recipe.train)
        self.average = Average(self.model, recipe.train.average_decay)
        self.drop = Dropout(recipe.train.seed, device)
        self.position = Position()
        self.epoch: list[Ids] = []  # the batches of epoch_number; the worker's
        self.epoch_number = -1
        # Makes the next batch while the model computes.
        self.worker = ThreadPoolExecutor(1, "batches")
        self.ahead: tuple[tuple[int, int], Future[tuple[Batch, tuple[int, int]]]] | None = None

    def close(self) -> None:
        """Ends the thread that makes batches; no update may follow."""
        self.worker.shutdown(cancel_futures=True)

    def start_from(self, weights: dict[str, torch.Tensor]) -> None:
        """Loads float32 weights; optimizer and data start from the beginning."""
        self.model.load_state_dict(weights)
        self.average = Average(self.model, self.recipe.train.average_decay)

    def resume(self, checkpoint: dict[str, Any]) -> None:
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.average.weights = {
            name: value.to(self.device) for name, value in checkpoint["average"].items()
        }
        self.position = Position(**checkpoint["position"])

    def next_batch(self) -> Batch:
        at = (self.position.epoch, self.position.batch)
        if self.ahead is None or self.ahead[0] != at:
            self.ahead = (at, self.worker.submit(self.batch_at, *at))
        batch, following = self.ahead[1].result()
        self.position.epoch, self.position.batch = following
        self.ahead = (following, self.worker.submit(self.batch_at, *following))
        return batch

    def batch_at(self, epoch: int, number: int) -> tuple[Batch, tuple[int, int]]:
        """Returns a batch, and epoch and number of the one that follows."""
        train = self.recipe.train
        if self.epoch_number != epoch:
            self.epoch = epoch_batches(
                self.dataset,
                self.recipe.data.domains,
                train.seed,
                epoch,
                train.batch_target_tokens,
                train.batch_source_tokens,
            )
            self.epoch_number = epoch
        batch = make_batch(self.dataset, self.epoch[number], epoch)
        if self.device.type == "cuda":
            batch = batch.pinned()
        return batch, ((epoch, number + 1) if number + 1 < len(self.epoch) else (epoch + 1, 0))

    def update(self, seconds: float = 0.0) -> dict[str, Any]:
        """Updates the weights once, `seconds` after the first update; returns values for the log.

        Nothing here waits for the GPU, so that the host prepares the next batch while it computes.
        "nll" and "grad_norm" are tensors; reading them waits.
        """
        train = self.recipe.train
        parts = [self.next_batch() for _ in range(train.accumulate)]
        count = sum(part.inside.numel() for part in parts)
        rate = learning_rate(train, schedule_position(train, self.position.update, seconds))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.drop.begin(self.position.update)
        self.optimizer.zero_grad(set_to_none=True)
        likelihood = torch.zeros((), device=self.device)
        for part in parts:
            loss, of_part = self.losses(part.to(self.device))
            (loss / count).backward()
            likelihood += of_part
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), train.clip_norm or float("inf"))
        if self.device.type == "cpu":
            self.check_gradient(norm)
        self.optimizer.step()
        self.average.add(self.model, self.position.update)
        self.position.update += 1
        self.position.target_tokens += count
        return {
            "nll": likelihood.detach().double(),
            "tokens": count,
            "grad_norm": norm,
            "learning_rate": rate,
        }

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns the loss and the negative log-likelihood, summed over the target tokens without
        the padding."""
        train, table, bias = self.recipe.train, self.model.output_table(), self.model.output_bias

        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16):
            features = features_of(self.model, batch, self.drop)
            features = features.flatten(0, 1).index_select(0, batch.inside)
            targets = batch.target.flatten().index_select(0, batch.inside)
            loss, likelihood = smoothed_cross_entropy(
                features, table, targets, train.label_smoothing, bias
            )
        return loss, likelihood

    def save(self, out: Path) -> None:
        self.position.unlogged_nll = float(self.position.unlogged_nll)
        save_checkpoint(
            out,
            self.recipe,
            self.model,
            self.average,
            self.optimizer,
            self.position,
            self.recipe.train.keep_checkpoints,
        )

    def check_gradient(self, norm: torch.Tensor) -> None:
        """Raises ArithmeticError if the gradient is not finite, which would ruin all weights. On a
        GPU this is checked only when a line of the log or a checkpoint is written."""
        if not bool(torch.isfinite(norm)):
            raise ArithmeticError(
                f"update {self.position.update} has a gradient of norm {float(norm)}, "
                f"lower train.learning_rate ({self.recipe.train.learning_rate})"
            )


def run(
    trainer: Trainer,
    valid: PairDataset,
    tokenizer: sentencepiece.SentencePieceProcessor,
    out: Path,
    log: Log,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Trains for recipe.train.updates, or for recipe.train.seconds of `clock` including validation
    and checkpoints. Both also run at the end, after which the log has a line "end".

    Raises ArithmeticError if a gradient or the validation loss is not finite; weights of such a
    gradient are not saved."""
    train, position = trainer.recipe.train, trainer.position
    progress = Progress(position.update, train.updates)
    saved = measured = clock()  # the last checkpoint; from when on tokens are counted for the speed
    measured_tokens = 0
    begin = measured - position.seconds

    def save(norm: Tensor) -> None:
        trainer.check_gradient(norm)
        position.seconds = clock() - begin
        trainer.save(out)

    norm = torch.zeros(())
    while schedule_position(train, position.update, clock() - begin) < train.updates:
        values = trainer.update(clock() - begin)
        norm = values["grad_norm"]
        position.unlogged_nll += values["nll"]  # a tensor, read when the log is written
        position.unlogged_tokens += values["tokens"]
        measured_tokens += values["tokens"]
        progress.advance()
        update, now = position.update, clock()
        scheduled = schedule_position(train, update, now - begin)
        if update % train.log_updates == 0:
            trainer.check_gradient(norm)
            nll = float(position.unlogged_nll) / position.unlogged_tokens
            now = clock()  # after the device has finished
            rate = measured_tokens / (now - measured)
            position.seconds = now - begin
            log.write(
                "train",
                update,
                {
                    "epoch": position.epoch,
                    "nll": nll,
                    "tokens_per_second": rate,
                    "learning_rate": values["learning_rate"],
                    "grad_norm": float(norm),
                    "seconds": position.seconds,
                    "target_tokens": position.target_tokens,
                },
            )
            if train.seconds:
                progress.expect(max(update, round(update * train.updates / scheduled)))
            progress.log(update, nll, rate)
            position.unlogged_nll, position.unlogged_tokens = 0.0, 0
            measured, measured_tokens = now, 0
        if scheduled >= train.updates:
            break
        if update % train.valid_updates == 0:
            progress.say(validate(trainer, valid, tokenizer, out, log))
            measured, measured_tokens = clock(), 0
        due = train.checkpoint_updates > 0 and update % train.checkpoint_updates == 0
        if due or now - saved > train.checkpoint_seconds:
            save(norm)
            saved = now
    save(norm)  # the weights are available before their validation ends
    # The same weights may have been validated: by a training that was killed before it wrote that
    # it ended, or just before its time was up.
    log.forget("valid", position.update)
    progress.say(validate(trainer, valid, tokenizer, out, log))
    log.write("end", position.update, {})
    progress.close()


def validate(
    trainer: Trainer,
    valid: PairDataset,
    tokenizer: sentencepiece.SentencePieceProcessor,
    out: Path,
    log: Log,
) -> str:
    """Validates the averaged weights, writes samples beside the log, and returns a line of
    scores."""
    recipe, update = trainer.recipe, trainer.position.update
    model = EncoderDecoder(recipe.model).to(trainer.device)
    trainer.average.copy_to(model)
    totals = token_losses(
        model,
        valid,
        trainer.device,
        recipe.train.batch_target_tokens,
        recipe.train.batch_source_tokens,
    )
    losses = {f"nll_{domain}": nll / tokens for domain, (nll, tokens) in totals.items()}
    if not math.isfinite(losses["nll_all"]):
        raise ArithmeticError(
            f"update {update} has a validation loss of {losses['nll_all']}, lower "
            f"train.learning_rate ({recipe.train.learning_rate})"
        )
    scores, texts = decoded_sample(
        model,
        valid,
        tokenizer,
        recipe.train.valid_rows,
        trainer.device,
        recipe.bundle.task,
        recipe.data.max_target_tokens,
        recipe.bundle.target_language,
    )
    scores = {**perplexities(valid, totals), **scores}
    log.write("valid", update, {**losses, **scores})
    if texts:
        path = out / "samples.txt"
        with writing(path), path.open("w", encoding="utf-8") as file:
            file.write(f"after {update} updates: {json.dumps(scores)}\n\n")
            for source, reference, answer in texts:
                file.write(f"source     {source}\nreference  {reference}\nanswer     {answer}\n\n")
    return f"update {update:,}: validation {losses['nll_all']:.4f} nats per token, " + ", ".join(
        f"{name.replace('_', ' ')} {value:.2f}" for name, value in scores.items()
    )
