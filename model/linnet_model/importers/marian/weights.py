"""Converts the weights of a Marian model to our names.

Every tensor of the file is used once; a missing or unknown one, another shape or a value that is
not finite is refused by name. Marian computes x W where torch has W x, so matrices are transposed.

The decoder's first input there is a vector of zeros. Here it is a row of zeros behind the last
piece, `<pad>`, whose logit has a bias of PAD_BIAS: a row that can be chosen would take probability
from the others.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from linnet_model.importers.marian.binary import Array
from linnet_model.importers.tensors import Source
from linnet_model.network.model_config import ModelConfig, require

PAD_BIAS = -1e4  # float16 holds it, unlike -inf in a product
SETTINGS = "special:model.yml"
ALPHA = "_QuantMultA"  # ranges of activations that Firefox's products need


def our_weights(
    file: Path, arrays: dict[str, Array], sizes: ModelConfig, rows: int
) -> dict[str, Tensor]:
    """Returns the weights of an EncoderDecoder by name, and empties `arrays`. `sizes` has the
    vocabularies of the file; `rows` is that of our tables, of which the last is `<pad>`."""
    source = Source(file, tensors(file, arrays))
    ours = tables(source, sizes, rows)
    for side, mixers in (("encoder", sizes.encoder_mixers), ("decoder", sizes.decoder_mixers)):
        for layer, mixer in enumerate(mixers):
            theirs, prefix = f"{side}_l{layer + 1}", f"{side}.{layer}"
            for name, tensor in layer_weights(source, theirs, mixer, sizes).items():
                ours[f"{prefix}.{name}"] = tensor
        if sizes.pre_norm:
            for kind, name in (("weight", "scale"), ("bias", "bias")):
                ours[f"{side}_norm.{kind}"] = vector(source, f"{side}_top_ln_{name}", sizes.width)
    source.finish()
    return {name: tensor.contiguous() for name, tensor in ours.items()}


def tensors(file: Path, arrays: dict[str, Array]) -> dict[str, Tensor]:
    """Returns the weights, and empties `arrays`, so that none is in memory twice."""
    found = {}
    for name in list(arrays):
        array = arrays.pop(name)
        if name == SETTINGS or name.endswith(ALPHA):
            continue
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
        require(tensor.is_floating_point(), f"{file}: {name} has bytes, weights are float32")
        bad = int((~torch.isfinite(tensor)).sum())
        require(
            bad == 0, f"{file}: {name} has {bad} of {tensor.numel()} values that are not finite"
        )
        found[name] = tensor
    return found


def vector(source: Source, name: str, size: int) -> Tensor:
    return source.take(name, 1, size).flatten()


def extended(table: Tensor, rows: int, value: float = 0.0) -> Tensor:
    """Appends rows, or elements, of `value`."""
    if table.numel() == 0:
        return table  # it is missing, which is reported later
    return torch.cat([table, table.new_full((rows - table.size(0), *table.shape[1:]), value)])


def tables(source: Source, sizes: ModelConfig, rows: int) -> dict[str, Tensor]:
    width, target = sizes.width, sizes.target_vocabulary
    ours = {
        "output_bias": extended(vector(source, "decoder_ff_logit_out_b", target), rows, PAD_BIAS)
    }
    if sizes.sharing == "all":
        ours["embed_source.weight"] = extended(source.take("Wemb", target, width), rows)
        return ours
    ours["embed_source.weight"] = extended(
        source.take("encoder_Wemb", sizes.vocabulary, width), rows
    )
    ours["embed_target.weight"] = extended(source.take("decoder_Wemb", target, width), rows)
    if sizes.sharing == "none":
        older = "decoder_ff_logit_out_W"
        output = (
            source.take(older, width, target).t()
            if older in source.weights
            else source.take(f"{older}t", target, width)
        )
        ours["output.weight"] = extended(output, rows)
    return ours


def layer_weights(source: Source, theirs: str, mixer: str, sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of one layer; `theirs` is its prefix in the file."""
    width, hidden = sizes.width, sizes.ffn_width

    def linear(pairs: list[tuple[str, str]], outputs: int, inputs: int) -> dict[str, Tensor]:
        """Stacks the outputs of several products with the same input. A product without a bias
        ("") gets zeros."""
        weights = [source.take(f"{theirs}_{weight}", inputs, outputs).t() for weight, _ in pairs]
        biases = [
            vector(source, f"{theirs}_{bias}", outputs) if bias else torch.zeros(outputs)
            for _, bias in pairs
        ]
        return {"weight": torch.cat(weights), "bias": torch.cat(biases)}

    def attention(block: str, letters: str) -> dict[str, Tensor]:
        return linear([(f"{block}_W{x}", f"{block}_b{x}") for x in letters], width, width)

    def norm(block: str, first_block: str) -> dict[str, Tensor]:
        name, end = (first_block, "_pre") if sizes.pre_norm else (block, "")
        return {
            "weight": vector(source, f"{theirs}_{name}_ln_scale{end}", width),
            "bias": vector(source, f"{theirs}_{name}_ln_bias{end}", width),
        }

    parts = {
        "ffn.fc1": linear([("ffn_W1", "ffn_b1")], hidden, width),
        "ffn.fc2": linear([("ffn_W2", "ffn_b2")], width, hidden),
        "ffn_norm": norm("ffn_ffn", "ffn_ffn"),
    }
    if mixer == "ssru":
        parts |= {
            "mixer.candidate_gate": linear([("rnn_W", ""), ("rnn_Wf", "rnn_bf")], width, width),
            "mixer_norm": norm("rnn_ffn", "rnn"),
        }
    else:
        parts |= {
            "mixer.query_key_value": attention("self", "qkv"),
            "mixer.output": attention("self", "o"),
            "mixer_norm": norm("self_Wo", "self_Wo"),
        }
    if theirs.startswith("decoder"):
        parts |= {
            "attention.query": attention("context", "q"),
            "attention.key_value": attention("context", "kv"),
            "attention.output": attention("context", "o"),
            "attention_norm": norm("context_Wo", "context_Wo"),
        }
    return {
        f"{part}.{kind}": tensor for part, pair in parts.items() for kind, tensor in pair.items()
    }
