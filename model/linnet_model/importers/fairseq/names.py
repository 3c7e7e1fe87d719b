"""The mapping between fairseq's weight names and ours.

fairseq renamed weights between 2019 and 2022. `to_new_names` maps all generations to the newest
names. `pairs` lists for a model each of our weights with the fairseq weights whose rows are stacked
in it. Import and export use the same list, so unknown weights are detected and a written checkpoint
reads back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from linnet_model.network.model_config import CONVOLUTIONS, ConfigError, ModelConfig, require

# Weights that do not affect the model, and why.
IGNORED = {
    r"(en|de)coder\.version": "layout version",
    r"(en|de)coder\.embed_positions\._float_tensor": "device marker",
    r"(en|de)coder\.embed_positions\.weights": "sinusoidal table, which is computed",
    r"(en|de)coder\.layers\.\d+\.conv\.conv_bias": "uninitialised, fairseq never adds it",
}
# Old name -> newest name, oldest first.
RENAMED = (
    (r"(decoder)\.embed_out", r"\1.output_projection.weight"),
    # The Transformer of 2017 and 2018.
    (r"(encoder\.layers\.\d+)\.layer_norms\.0(\..*)", r"\1.self_attn_layer_norm\2"),
    (r"(encoder\.layers\.\d+)\.layer_norms\.1(\..*)", r"\1.final_layer_norm\2"),
    (r"(decoder\.layers\.\d+)\.layer_norms\.0(\..*)", r"\1.self_attn_layer_norm\2"),
    (r"(decoder\.layers\.\d+)\.layer_norms\.1(\..*)", r"\1.encoder_attn_layer_norm\2"),
    (r"(decoder\.layers\.\d+)\.layer_norms\.2(\..*)", r"\1.final_layer_norm\2"),
)
RENAMED_LIGHTCONV = (
    (r"(encoder\.layers\.\d+)\.layer_norms\.0(\..*)", r"\1.layer_norm1\2"),
    (r"(encoder\.layers\.\d+)\.layer_norms\.1(\..*)", r"\1.layer_norm2\2"),
)
STACKED = re.compile(r"(.*)\.in_proj_(weight|bias)")  # rows of q, k, v


def is_lightconv(names: Mapping[str, Tensor]) -> bool:
    return any(".linear1." in name for name in names)


def ignored(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in IGNORED)


def to_new_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the weights under their newest names, without the ignored ones."""
    rules = (*RENAMED_LIGHTCONV, *RENAMED) if is_lightconv(weights) else RENAMED
    out: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if ignored(name):
            continue
        for old, new in rules:
            if re.fullmatch(old, name):
                name = re.sub(old, new, name)
                break
        if stacked := STACKED.fullmatch(name):
            require(
                weight.dim() > 0 and weight.size(0) % 3 == 0,
                f"{name} has the shape {list(weight.shape)}, queries, keys and values need rows "
                "that three divides",
            )
            for letter, rows in zip("qkv", weight.chunk(3), strict=True):
                out[f"{stacked[1]}.{letter}_proj.{stacked[2]}"] = rows
        else:
            out[name] = weight
    return out


def to_2019_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the weights under their names of 2019, the inverse of to_new_names."""
    light = is_lightconv(weights)
    out: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name == "decoder.output_projection.weight":
            if weight is not weights["decoder.embed_tokens.weight"]:
                out["decoder.embed_out"] = weight
        elif part := re.fullmatch(r"(.*)\.([qkv])_proj\.(weight|bias)", name):
            if part[2] == "q":
                parts = [weights[f"{part[1]}.{letter}_proj.{part[3]}"] for letter in "qkv"]
                out[f"{part[1]}.in_proj_{part[3]}"] = torch.cat(parts)
        elif light and (norm := re.fullmatch(r"(.*)\.layer_norm([12])\.(.*)", name)):
            out[f"{norm[1]}.layer_norms.{int(norm[2]) - 1}.{norm[3]}"] = weight
        else:
            out[name] = weight
    return out


@dataclass(frozen=True)
class Pair:
    ours: str
    theirs: tuple[str, ...]  # rows stacked in this order
    taps: bool = False  # [H, K] in ours, [H, 1, K] in fairseq


def pairs(config: ModelConfig) -> Iterator[Pair]:
    """Yields every weight of a model with this config, in order."""
    yield Pair("embed_source.weight", ("encoder.embed_tokens.weight",))
    if config.sharing != "all":
        yield Pair("embed_target.weight", ("decoder.embed_tokens.weight",))
    if config.sharing == "none":
        yield Pair("output.weight", ("decoder.output_projection.weight",))
    for side, input_embedding in (("encoder", "enter_source"), ("decoder", "enter_target")):
        if config.positions == "learned":
            yield Pair(f"{input_embedding}.table.weight", (f"{side}.embed_positions.weight",))
        if config.embedding_norm:
            yield from module(f"{input_embedding}.norm", f"{side}.layernorm_embedding")
        for i, mixer in enumerate(getattr(config, f"{side}_mixers")):
            yield from layer_pairs(f"{side}.{i}", f"{side}.layers.{i}", side, mixer)
        if config.pre_norm:
            yield from module(f"{side}_norm", f"{side}.layer_norm")


def layer_pairs(ours: str, theirs: str, side: str, mixer: str) -> Iterator[Pair]:
    light = mixer in CONVOLUTIONS
    if light:
        yield from module(f"{ours}.mixer.linear1", f"{theirs}.linear1")
        if mixer == "dynamic":
            yield Pair(
                f"{ours}.mixer.conv.weight_linear.weight", (f"{theirs}.conv.weight_linear.weight",)
            )
        else:
            yield Pair(f"{ours}.mixer.conv.weight", (f"{theirs}.conv.weight",), taps=True)
        yield from module(f"{ours}.mixer.linear2", f"{theirs}.linear2")
    else:
        yield from stacked(f"{ours}.mixer.query_key_value", f"{theirs}.self_attn", "qkv")
        yield from module(f"{ours}.mixer.output", f"{theirs}.self_attn.out_proj")
    mixer_norm = "self_attn_layer_norm"
    if light:
        mixer_norm = "layer_norm1" if side == "encoder" else "conv_layer_norm"
    yield from module(f"{ours}.mixer_norm", f"{theirs}.{mixer_norm}")
    if side == "decoder":
        yield from module(f"{ours}.attention.query", f"{theirs}.encoder_attn.q_proj")
        yield from stacked(f"{ours}.attention.key_value", f"{theirs}.encoder_attn", "kv")
        yield from module(f"{ours}.attention.output", f"{theirs}.encoder_attn.out_proj")
        yield from module(f"{ours}.attention_norm", f"{theirs}.encoder_attn_layer_norm")
    for linear in ("fc1", "fc2"):
        yield from module(f"{ours}.ffn.{linear}", f"{theirs}.{linear}")
    ffn_norm = "layer_norm2" if light and side == "encoder" else "final_layer_norm"
    yield from module(f"{ours}.ffn_norm", f"{theirs}.{ffn_norm}")


def module(ours: str, theirs: str) -> Iterator[Pair]:
    for part in ("weight", "bias"):
        yield Pair(f"{ours}.{part}", (f"{theirs}.{part}",))


def stacked(ours: str, theirs: str, letters: str) -> Iterator[Pair]:
    for part in ("weight", "bias"):
        yield Pair(f"{ours}.{part}", tuple(f"{theirs}.{letter}_proj.{part}" for letter in letters))


def from_fairseq(theirs: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Returns our weights from fairseq's under their newest names. Raises ConfigError with the
    unknown and the missing ones, or with shapes that differ where they may not."""
    left = dict(theirs)
    out: dict[str, Tensor] = {}
    missing: list[str] = []
    for pair in pairs(config):
        parts = [left.pop(name) for name in pair.theirs if name in left]
        missing += [name for name in pair.theirs if name not in theirs]
        if len(parts) == len(pair.theirs):
            check_stack(pair.theirs, parts)
            weight = torch.cat(parts) if len(parts) > 1 else parts[0]
            if pair.taps and weight.dim() == 3:
                weight = weight.flatten(1)
            out[pair.ours] = weight
    take_copies(left, theirs, config)
    if left or missing:
        raise ConfigError(
            "; ".join(
                f"weights that {what}: {', '.join(sorted(names))}"
                for what, names in (("are unknown", left), ("are missing", missing))
                if names
            )
        )
    return out


def check_stack(names: tuple[str, ...], parts: list[Tensor]) -> None:
    first = list(parts[0].shape)
    for name, part in zip(names[1:], parts[1:], strict=True):
        require(
            first != [] and list(part.shape) == first,
            f"{name} has the shape {list(part.shape)} and {names[0]} {first}, they must be equal "
            "to be stacked",
        )


def take_copies(left: dict[str, Tensor], theirs: Mapping[str, Tensor], config: ModelConfig) -> None:
    """Removes copies of shared tables from `left`, and checks that they are equal."""
    copies = {"all": ["decoder.embed_tokens.weight"], "output": []}.get(config.sharing)
    if copies is None:
        return
    original = f"{'encoder' if config.sharing == 'all' else 'decoder'}.embed_tokens.weight"
    for name in (*copies, "decoder.output_projection.weight"):
        if name in left:
            require(
                torch.equal(left.pop(name), theirs[original]),
                f"{name} differs from {original}, though the options share them",
            )


def to_fairseq(ours: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Returns fairseq's weights under their newest names, with copies of shared tables, in
    fairseq's order of encoder and decoder."""
    out: dict[str, Tensor] = {}
    for pair in pairs(config):
        weight = ours[pair.ours].unsqueeze(1) if pair.taps else ours[pair.ours]
        for name, rows in zip(pair.theirs, weight.chunk(len(pair.theirs)), strict=True):
            out[name] = rows
    if config.sharing == "all":
        out["decoder.embed_tokens.weight"] = out["encoder.embed_tokens.weight"]
    if config.sharing != "none":
        out["decoder.output_projection.weight"] = out["decoder.embed_tokens.weight"]
    return out
