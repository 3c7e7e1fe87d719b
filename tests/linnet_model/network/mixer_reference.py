"""Reference mixers after their papers, with plain loops in float64, and the test cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linnet_model.network.convolutions import (
    DynamicConv,
    GatedConvolution,
    LightConv,
    RawLightConv,
)
from linnet_model.network.mixers import SSRU, SelfAttention, make_mixer
from linnet_model.network.model_config import ModelConfig

WIDTH, HEADS, MAX = 8, 4, 12  # channels, heads, max_positions
Mixer = GatedConvolution | SelfAttention | SSRU


@dataclass(frozen=True)
class Case:
    mixer: str
    kernel: int
    dilation: int = 1
    neighbours: int = 3
    glu: bool = True
    softmax: bool = True

    def __str__(self) -> str:
        parts = [self.mixer, str(self.kernel)]
        parts += [f"dilation{self.dilation}"] if self.dilation > 1 else []
        parts += [f"heads{self.neighbours}"] if self.mixer == "csan_2d" else []
        parts += [] if self.softmax else ["unnormalised"]
        return "-".join(parts + ([] if self.glu else ["plain"]))

    def config(self, **changes) -> ModelConfig:
        return ModelConfig(
            **{
                "vocabulary": 50,
                "width": WIDTH,
                "ffn_width": 12,
                "heads": HEADS,
                "neighbour_heads": self.neighbours,
                "glu": self.glu,
                "weight_softmax": self.softmax,
                "max_positions": MAX,
                "encoder_kernels": [self.kernel],
                "encoder_mixers": [self.mixer],
                "encoder_dilations": [self.dilation],
                "decoder_kernels": [self.kernel],
                "decoder_mixers": [self.mixer],
                "decoder_dilations": [self.dilation],
                **changes,
            }
        )

    def make(self, causal: bool, seed: int = 1, **changes) -> Mixer:
        """Returns the mixer in float32 with random weights and biases."""
        torch.manual_seed(seed)
        mixer = make_mixer(self.config(**changes), self.mixer, self.kernel, self.dilation, causal)
        for name, weight in mixer.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(weight, std=0.3)
        return mixer.eval()


CASES = [
    Case("dynamic", 5),
    Case("dynamic", 3, glu=False),
    Case("dynamic", 5, softmax=False),
    Case("light", 5),
    Case("light", 5, softmax=False),
    Case("depthwise", 5),
    Case("dilated", 3, dilation=3),
    Case("dilated", 5, dilation=2, glu=False),
    Case("full", 3),
    Case("full", 5, glu=False),
    Case("self_attention", 0),
    Case("self_attention", 7),
    Case("csan_1d", 3),
    Case("csan_2d", 5),
    Case("csan_2d", 3, neighbours=7),
    Case("ssru", 0),
]
ENCODERS = [case for case in CASES if case.mixer != "ssru"]
SIDES = [(case, True) for case in CASES] + [(case, False) for case in ENCODERS]  # causal or not


def whole(mixer: Mixer, x: Tensor, causal: bool) -> Tensor:
    """Computes the output of a mixer for one sequence x [T, d] in float64."""
    weights = {name: weight.detach().double() for name, weight in mixer.named_parameters()}
    if isinstance(mixer, SSRU):
        return recurrence(weights, x.double())
    form = attention if isinstance(mixer, SelfAttention) else convolution
    return form(mixer, weights, x.double(), causal)


def recurrence(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """Implements Kim et al. 2019, section 2.3, with a bias in the candidates."""
    projected = linear(x, weights, "candidate_gate")
    y = torch.zeros_like(x)
    for c in range(WIDTH):
        cell = 0.0
        for t in range(len(x)):
            candidate, gate = float(projected[t, c]), float(projected[t, WIDTH + c])
            forget = 1 / (1 + math.exp(-gate))
            cell = forget * cell + (1 - forget) * candidate
            y[t, c] = max(0.0, cell)
    return y


def linear(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    return x @ weights[f"{name}.weight"].t() + weights[f"{name}.bias"]


def convolution(
    mixer: GatedConvolution, weights: dict[str, Tensor], x: Tensor, causal: bool
) -> Tensor:
    """Implements Wu et al. 2019, sections 2 to 4; the gate is the sigmoid of the second half."""
    h = linear(x, weights, "linear1")
    if mixer.glu:
        h = h[:, :WIDTH] * torch.sigmoid(h[:, WIDTH:])
    y = torch.zeros_like(h)
    for t in range(len(h)):
        taps = taps_of(mixer, weights, h[t])
        kernel = taps.shape[2]
        gap = mixer.conv.dilation if hasattr(mixer.conv, "dilation") else 1
        left = (kernel - 1) * gap if causal else (kernel // 2) * gap
        for k in range(kernel):
            s = t + k * gap - left
            if 0 <= s < len(h):
                y[t] += taps[:, :, k] @ h[s]
    return linear(y, weights, "linear2")


def taps_of(mixer: GatedConvolution, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """Returns the taps [C, C, K] of a position x [C]: a diagonal per tap, except for "full"."""
    if "conv.taps.weight" in weights:
        return weights["conv.taps.weight"].view(WIDTH, -1, WIDTH).transpose(1, 2)
    if "conv.weight_linear.weight" in weights:
        taps = (weights["conv.weight_linear.weight"] @ x).view(HEADS, -1)
    elif isinstance(mixer.conv, RawLightConv):
        taps = weights["conv.weight"]
    else:
        taps = weights["conv.weight"].t()
    if isinstance(mixer.conv, (DynamicConv, LightConv)):
        taps = taps.softmax(-1)
    return torch.diag_embed(taps.repeat_interleave(WIDTH // len(taps), 0).t()).permute(1, 2, 0)


def attention(mixer: SelfAttention, weights: dict[str, Tensor], x: Tensor, causal: bool) -> Tensor:
    """Implements Yang et al. 2019, 1D and 2D, and Vaswani et al. 2017 without a window."""
    size = WIDTH // HEADS
    query, key, value = linear(x, weights, "query_key_value").view(len(x), 3, HEADS, size).unbind(1)
    y = torch.zeros(len(x), HEADS, size, dtype=torch.float64)
    for i in range(len(x)):
        for h in range(HEADS):
            seen = [
                (j, g)
                for j in range(len(x))
                for g in range(HEADS)
                if in_window(mixer, i - j, causal) and abs(g - h) <= mixer.neighbour_heads // 2
            ]
            scores = [float(query[i, h] @ key[j, g]) / math.sqrt(size) for j, g in seen]
            maximum = max(scores)
            total = sum(math.exp(score - maximum) for score in scores)
            for score, (j, g) in zip(scores, seen, strict=True):
                y[i, h] += math.exp(score - maximum) / total * value[j, g]
    return linear(y.view(len(x), WIDTH), weights, "output")


def in_window(mixer: SelfAttention, back: int, causal: bool) -> bool:
    """Returns whether a position attends to the one `back` positions before it."""
    if causal:
        return back >= 0 and (mixer.unbounded or back < mixer.window)
    return mixer.unbounded or abs(back) <= mixer.window // 2
