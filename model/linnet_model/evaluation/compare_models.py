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
# Table 3 of Wu et al. 2019, in its order: the mixer, its taps in every layer (0: as many as the
# base has in that layer) and what else changes. Each row includes the change of the row before. The
# paper has no row without GLU. dynamic_raw diverged there.
ABLATION: dict[str, tuple[str, int, dict[str, Any]]] = {
    "full_3": ("full", 3, {"weight_dropout": 0.0}),
    "depthwise_3": ("depthwise", 3, {"weight_dropout": 0.0}),
    "depthwise_no_dropconnect": ("depthwise", 0, {"weight_dropout": 0.0}),
    "depthwise": ("depthwise", 0, {}),
    "light_raw": ("light", 0, {"weight_softmax": False}),
    "light": ("light", 0, {}),
    "dynamic": ("dynamic", 0, {}),
    "dynamic_raw": ("dynamic", 0, {"weight_softmax": False}),
    "dynamic_no_glu": ("dynamic", 0, {"glu": False}),
    "self_attention_window": ("self_attention", 0, {}),
}
NAMES = tuple(dict.fromkeys([*MIXERS, *ABLATION]))
# With 3 heads the best of Yang et al. 2019; here all layers of both sides have it.
CSAN_WINDOW = 11


def settings_of(name: str, base: ModelConfig) -> ModelConfig:
    """Returns the base model with another mixer and as many parameters, by its feed-forward width.

    `name` is one of NAMES. A dilated filter has 3 taps that span the base's filter of the same
    layer; attention sees the whole sequence, or CSAN_WINDOW positions. SSRU replaces the decoder's
    mixers only.
    """
    mixer, taps, changes = ABLATION.get(name, (name, 0, {}))
    config = dataclasses.replace(copy.deepcopy(base), **changes)
    for side in ("encoder", "decoder"):
        kernels: list[int] = getattr(base, f"{side}_kernels")
        layers = len(kernels)
        if mixer == "ssru" and side == "encoder":
            continue
        setattr(config, f"{side}_mixers", [mixer] * layers)
        setattr(config, f"{side}_dilations", [1] * layers)
        if mixer == "dilated":
            setattr(config, f"{side}_kernels", [3] * layers)
            setattr(config, f"{side}_dilations", [max(1, k // 2) for k in kernels])
        elif taps > 0:
            setattr(config, f"{side}_kernels", [taps] * layers)
        elif name in ("self_attention", "ssru"):
            setattr(config, f"{side}_kernels", [0] * layers)
        elif mixer.startswith("csan"):
            setattr(config, f"{side}_kernels", [CSAN_WINDOW] * layers)
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


def recipe_of(name: str, base: Recipe, seed: int) -> Recipe:
    recipe = copy.deepcopy(base)
    recipe.model = settings_of(name, base.model)
    recipe.train.seed = seed
    return recipe


def as_settings(recipe: Recipe) -> list[str]:
    """Returns the model and seed of a recipe as --set arguments of linnet-train."""
    model = to_tables(recipe.model)
    keys = [k for k in model if "mixers" in k or "kernels" in k or "dilations" in k]
    keys += ["ffn_width", "glu", "weight_softmax", "weight_dropout"]
    values = {f"model.{k}": model[k] for k in keys}
    values["train.seed"] = recipe.train.seed
    return [f"--set={name}={json.dumps(value)}" for name, value in values.items()]
