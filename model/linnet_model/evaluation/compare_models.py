"""Makes the models that linnet-compare compares: one for each mixer, with as many parameters."""

from __future__ import annotations

import copy
import dataclasses
import json

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
# With 3 heads the best of Yang et al. 2019; here all layers of both sides have it.
CSAN_WINDOW = 11


def settings_of(mixer: str, base: ModelConfig) -> ModelConfig:
    """Returns the base model with another mixer and as many parameters, by its feed-forward width.

    A dilated filter has 3 taps that span the base's filter of the same layer; attention sees the
    whole sequence, or CSAN_WINDOW positions. SSRU replaces the decoder's mixers only.
    """
    config = copy.deepcopy(base)
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
        elif mixer in ("self_attention", "ssru"):
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


def recipe_of(mixer: str, base: Recipe, seed: int) -> Recipe:
    recipe = copy.deepcopy(base)
    recipe.model = settings_of(mixer, base.model)
    recipe.train.seed = seed
    return recipe


def as_settings(recipe: Recipe) -> list[str]:
    """Returns the model and seed of a recipe as --set arguments of linnet-train."""
    model = to_tables(recipe.model)
    keys = [k for k in model if "mixers" in k or "kernels" in k or "dilations" in k]
    values = {f"model.{k}": model[k] for k in [*keys, "ffn_width"]}
    values["train.seed"] = recipe.train.seed
    return [f"--set={name}={json.dumps(value)}" for name, value in values.items()]
