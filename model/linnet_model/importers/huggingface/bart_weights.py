"""Converts the weights of M2M-100, NLLB-200, mBART-50, BART and PEGASUS to our names.

They have the names of BART's weights, and one table for source, target and output.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from linnet_model.importers.huggingface.weights import (
    check_positions,
    layer_weights,
    output_bias,
    shared_table,
)
from linnet_model.importers.tensors import Source
from linnet_model.network.model_config import ModelConfig


def our_weights(folder: Path, weights: dict[str, Tensor], sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of EncoderDecoder(sizes) by name."""
    source = Source(folder, weights)
    ours = {}
    ours["embed_source.weight"] = shared_table(source, sizes.vocabulary, sizes.width)
    if sizes.output_bias:
        ours["output_bias"] = output_bias(source, sizes.vocabulary)
    for side in ("encoder", "decoder"):
        source.weights.pop(f"model.{side}.version", None)  # of fairseq's files, without effect
    sides = (
        ("encoder", "source", sizes.encoder_mixers),
        ("decoder", "target", sizes.decoder_mixers),
    )
    for side, entrance, layers in sides:
        for layer in range(len(layers)):
            theirs, prefix = f"model.{side}.layers.{layer}", f"{side}.{layer}"
            for name, tensor in layer_weights(source, theirs, side, sizes).items():
                ours[f"{prefix}.{name}"] = tensor
        for kind in ("weight", "bias"):
            if sizes.pre_norm:
                norm = f"model.{side}.layer_norm.{kind}"
                ours[f"{side}_norm.{kind}"] = source.take(norm, sizes.width)
            if sizes.embedding_norm:
                norm = f"model.{side}.layernorm_embedding.{kind}"
                ours[f"enter_{entrance}.norm.{kind}"] = source.take(norm, sizes.width)
        if sizes.positions == "learned":
            rows = sizes.first_position + sizes.max_positions
            table = source.take(f"model.{side}.embed_positions.weight", rows, sizes.width)
            ours[f"enter_{entrance}.table.weight"] = table
        else:
            marian = sizes.positions == "sinusoidal_marian"
            for name in ("weight",) if marian else ("weights", "weight"):
                check_positions(source, f"model.{side}.embed_positions.{name}", sizes)
    source.finish()
    return ours
