"""Makes the models that linnet-compare compares: one for each mixer or row of an ablation, with as
many parameters."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import torch

from linnet_model.config import ModelConfig, Recipe, to_tables
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count

MIXERS = (
    "dynamic",
    "light",
    "depthwise",
    "dilated",
    "self_attention",
    "csan_1d",
    "csan_2d",
    "ssru",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of an ablation: the mixer, what else changes, and where."""

    mixer: str
    kernel: int = -1  # of every layer; -1: as the base, for attention the width of its kernel
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    # The first layers of the encoder have it, and all others attend to everything; 0: all have it.
    encoder_layers: int = 0


RAW = {"weight_softmax": False}
NO_DROPCONNECT = {"weight_dropout": 0.0}
# Table 3 of Wu et al. 2019, in its order; each row includes the change of the row before. The paper
# has no row without GLU. dynamic_raw diverged there.
ABLATION = {
    "full_3": Row("full", 3, NO_DROPCONNECT),
    "depthwise_3": Row("depthwise", 3, NO_DROPCONNECT),
    "depthwise_no_dropconnect": Row("depthwise", changes=NO_DROPCONNECT),
    "depthwise": Row("depthwise"),
    "light_raw": Row("light", changes=RAW),
    "light": Row("light"),
    "dynamic": Row("dynamic"),
    "dynamic_raw": Row("dynamic", changes=RAW),
    "dynamic_no_glu": Row("dynamic", changes={"glu": False}),
    "self_attention_window": Row("self_attention"),
}
# Yang et al. 2019: the window, how many heads are joined, and in how many layers of the encoder;
# the best have 11 positions, 3 heads and the first 3 of 6 layers.
CSAN = {
    **{f"csan_window_{n}": Row("csan_1d", n, {}, 3) for n in (3, 7, 11, 15)},
    **{f"csan_heads_{n}": Row("csan_2d", 11, {"neighbour_heads": n}, 3) for n in (3, 5, 7)},
    **{f"csan_layers_{n}": Row("csan_1d", 11, {}, n) for n in (1, 2, 4, 6)},
}
# Every layer of both sides; CSAN has its best window. A dilated filter has 3 taps that span the
# base's filter of the same layer, SSRU replaces the mixers of the decoder only: see settings_of.
KERNELS = {"self_attention": 0, "csan_1d": 11, "csan_2d": 11, "ssru": 0}
WHOLE = {mixer: Row(mixer, KERNELS.get(mixer, -1)) for mixer in MIXERS}
ROWS = {**WHOLE, **ABLATION, **CSAN}


def settings_of(name: str, base: ModelConfig) -> ModelConfig:
    """Returns the base model as the row of that name has it, with as many parameters, by its
    feed-forward width."""
    row = ROWS[name]
    config = dataclasses.replace(copy.deepcopy(base), **row.changes)
    for side in ("encoder", "decoder"):
        kernels: list[int] = getattr(base, f"{side}_kernels")
        layers = len(kernels)
        if row.mixer == "ssru" and side == "encoder":
            continue
        mixers, dilations = [row.mixer] * layers, [1] * layers
        if row.mixer == "dilated":
            kernels, dilations = [3] * layers, [max(1, k // 2) for k in kernels]
        elif row.kernel >= 0:
            kernels = [row.kernel] * layers
        if row.encoder_layers > 0:
            first = min(row.encoder_layers, layers) if side == "encoder" else 0
            mixers = mixers[:first] + ["self_attention"] * (layers - first)
            kernels = kernels[:first] + [0] * (layers - first)
        setattr(config, f"{side}_mixers", mixers)
        setattr(config, f"{side}_kernels", list(kernels))
        setattr(config, f"{side}_dilations", dilations)
    wanted = weights_in(base)
    with_none = weights_in(dataclasses.replace(config, ffn_width=8))
    each = (weights_in(dataclasses.replace(config, ffn_width=16)) - with_none) / 8
    config.ffn_width = max(8, round((8 + (wanted - with_none) / each) / 8) * 8)
    config.check()
    return config


def weights_in(config: ModelConfig) -> int:
    config = copy.deepcopy(config)
    config.check()
    with torch.device("meta"):
        return parameter_count(EncoderDecoder(config))


def recipe_with(name: str, base: Recipe, seed: int, rate: float | None = None) -> Recipe:
    """Returns the recipe of a row, with another learning rate if one is given."""
    recipe = copy.deepcopy(base)
    recipe.model = settings_of(name, base.model)
    recipe.train.seed = seed
    if rate is not None:
        recipe.train.learning_rate = rate
    return recipe


def as_settings(recipe: Recipe) -> list[str]:
    """Returns the model, seed and learning rate of a recipe as --set arguments of linnet-train."""
    model = to_tables(recipe.model)
    keys = [k for k in model if "mixers" in k or "kernels" in k or "dilations" in k]
    keys += ["ffn_width", "glu", "weight_softmax", "weight_dropout", "neighbour_heads"]
    values = {f"model.{k}": model[k] for k in keys}
    values["train.seed"] = recipe.train.seed
    values["train.learning_rate"] = recipe.train.learning_rate
    return [f"--set={name}={json.dumps(value)}" for name, value in values.items()]
