"""Learning rate schedule, optimizer and the running average of the weights."""

from __future__ import annotations

import math

import torch
from torch import nn

from linnet_model.config import TrainConfig


def schedule_position(config: TrainConfig, update: int, seconds: float) -> float:
    """Returns the position in the schedule, in updates from 0 to config.updates, after `update`
    updates in `seconds`."""
    if config.seconds == 0:
        return update
    return config.updates * min(1.0, seconds / config.seconds)


def learning_rate(config: TrainConfig, update: float) -> float:
    """Returns the learning rate of update 0, 1, ..., for the loss per token."""
    warm = (update + 1) / max(1, config.warmup_updates)
    if warm < 1.0:
        return config.learning_rate * warm
    if config.schedule == "inverse_sqrt":
        return config.learning_rate * math.sqrt(max(1, config.warmup_updates) / (update + 1))
    if config.schedule == "cosine":
        span = max(1, config.updates - config.warmup_updates)
        share = 0.5 * (
            1.0 + math.cos(math.pi * min(1.0, max(0, update - config.warmup_updates) / span))
        )
    else:  # trapezoid: hold, then fall linearly
        share = min(1.0, (config.updates - update) / max(1, config.decay_updates))
    return config.learning_rate * (
        config.final_share + (1.0 - config.final_share) * max(0.0, share)
    )


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


class Average:
    """Running average of the weights, which is validated and exported.

    Its decay grows with the updates, (1 + u) / (10 + u), up to the recipe's, so that the random
    initial weights soon lose their influence.
    """

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def add(self, model: nn.Module, update: int) -> None:
        keep = min(self.decay, (1.0 + update) / (10.0 + update))
        names = dict(model.named_parameters())
        torch._foreach_lerp_(
            list(self.weights.values()), [names[n] for n in self.weights], 1.0 - keep
        )

    def copy_to(self, model: nn.Module) -> None:
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(self.weights[name])
