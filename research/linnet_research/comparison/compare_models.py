"""Makes the models that linnet-compare compares: one for each mixer or row of an ablation, with as
many parameters, and their recipes."""

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
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)  # table.key of the recipe
    # The first layers of the encoder have it, and all others attend to everything; 0: all have it.
    encoder_layers: int = 0


RAW = {"model.weight_softmax": False}
NO_DROPCONNECT = {"model.weight_dropout": 0.0}
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
    "dynamic_no_glu": Row("dynamic", changes={"model.glu": False}),
    "self_attention_window": Row("self_attention"),
}
# Yang et al. 2019: the window, how many heads are joined, and in how many layers of the encoder;
# the best have 11 positions, 3 heads and the first 3 of 6 layers.
CSAN = {
    **{f"csan_window_{n}": Row("csan_1d", n, {}, 3) for n in (3, 7, 11, 15)},
    **{f"csan_heads_{n}": Row("csan_2d", 11, {"model.neighbour_heads": n}, 3) for n in (3, 5, 7)},
    **{f"csan_layers_{n}": Row("csan_1d", 11, {}, n) for n in (1, 2, 4, 6)},
}
# Each of these rows changes the dynamic model of techniques.toml in one thing that is known to help
# with little text. linnet-diversify makes the rows of phpdoc_forward and phpdoc_backward.
TECHNIQUES = {
    "dropout_0.2": Row("dynamic", changes={"model.dropout": 0.2}),
    "large_batch": Row("dynamic", changes={"train.accumulate": 4}),
    "joined": Row("dynamic", changes={"data.join_share": 0.15}),
    "diversified": Row(
        "dynamic",
        changes={"data.domains": {"phpdoc": 1.0, "phpdoc_forward": 1.0, "phpdoc_backward": 1.0}},
    ),
    "deep_encoder": Row(
        "dynamic",
        changes={"model.encoder_kernels": [3, 7, 7, 15, 15], "model.decoder_kernels": [15]},
    ),
    "last_weights": Row("dynamic", changes={"train.average_decay": 0.0}),
}
# Every layer of both sides; CSAN has its best window. A dilated filter has 3 taps that span the
# base's filter of the same layer, SSRU replaces the mixers of the decoder only: see settings_of.
KERNELS = {"self_attention": 0, "csan_1d": 11, "csan_2d": 11, "ssru": 0}
WHOLE = {mixer: Row(mixer, KERNELS.get(mixer, -1)) for mixer in MIXERS}
# With half of the updates of comparison.toml.
WARM_UP = {
    f"{name}_long_warmup": dataclasses.replace(WHOLE[name], changes={"train.warmup_updates": 350})
    for name in ("dynamic", "self_attention")
}
ROWS = {**WHOLE, **WARM_UP, **ABLATION, **CSAN, **TECHNIQUES}


def settings_of(name: str, base: ModelConfig) -> ModelConfig:
    """Returns the base model as the row of that name has it, with as many parameters, by its
    feed-forward width."""
    row = ROWS[name]
    config = dataclasses.replace(copy.deepcopy(base), **of_table(row.changes, "model"))
    for side in ("encoder", "decoder"):
        kernels: list[int] = getattr(config, f"{side}_kernels")
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


def of_table(changes: dict[str, Any], table: str) -> dict[str, Any]:
    """Returns key -> value of the changes in a table of the recipe."""
    keys = (key.split(".", 1) for key in changes)
    return {key: changes[f"{table}.{key}"] for of, key in keys if of == table}


def recipe_with(
    name: str, base: Recipe, seed: int, rate: float | None = None, updates: int | None = None
) -> Recipe:
    """Returns the recipe of a row, with another learning rate if one is given, and with other
    updates, of which warm-up and decay keep their shares."""
    recipe, row = copy.deepcopy(base), ROWS[name]
    recipe.model = settings_of(name, base.model)
    recipe.data = dataclasses.replace(recipe.data, **of_table(row.changes, "data"))
    recipe.train = dataclasses.replace(recipe.train, **of_table(row.changes, "train"), seed=seed)
    if rate is not None:
        recipe.train.learning_rate = rate
    return recipe if updates is None else with_updates(recipe, updates)


def with_updates(recipe: Recipe, updates: int) -> Recipe:
    """Returns the recipe with other updates, of which warm-up and decay keep their shares."""
    train = recipe.train
    parts = {
        part: round(getattr(train, part) * updates / train.updates)
        for part in ("warmup_updates", "decay_updates")
    }
    return dataclasses.replace(recipe, train=dataclasses.replace(train, updates=updates, **parts))


def as_settings(recipe: Recipe, base: Recipe) -> list[str]:
    """Returns what a recipe changes in the base as --set arguments of linnet-train."""
    wanted, before = to_tables(recipe), to_tables(base)
    return [
        f"--set={table}.{key}={toml_value(value)}"
        for table, keys in wanted.items()
        for key, value in keys.items()
        if value != before[table][key]
    ]


def toml_value(value: Any) -> str:
    """Returns a value as TOML has it; JSON differs in tables."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key)} = {toml_value(of)}" for key, of in value.items())
            + "}"
        )
    return json.dumps(value)
