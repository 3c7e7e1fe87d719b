"""Converts the weights of a Hugging Face Marian folder to our names.

Copies of a shared table must be equal.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from linnet_model.importers.huggingface.weights import (
    check_positions,
    layer_weights,
    shared_table,
)
from linnet_model.importers.tensors import Source
from linnet_model.network.model_config import ModelConfig


def our_weights(folder: Path, weights: dict[str, Tensor], sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of EncoderDecoder(sizes) by name."""
    source = Source(folder, weights)
    ours = embeddings(source, sizes)
    for side, layers in (("encoder", sizes.encoder_mixers), ("decoder", sizes.decoder_mixers)):
        for layer in range(len(layers)):
            theirs, prefix = f"model.{side}.layers.{layer}", f"{side}.{layer}"
            for name, tensor in layer_weights(source, theirs, side, sizes).items():
                ours[f"{prefix}.{name}"] = tensor
        check_positions(source, f"model.{side}.embed_positions.weight", sizes)
    source.finish()
    return ours


def embeddings(source: Source, sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the tables of source, target and output; shared tables appear once."""
    ours = {"output_bias": source.take("final_logits_bias", 1, sizes.target_vocabulary).flatten()}
    if sizes.sharing == "all":
        return ours | {"embed_source.weight": shared_table(source, sizes.vocabulary, sizes.width)}
    shared, width = "model.shared.weight", sizes.width
    encoder, decoder = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    if shared in source.weights:
        # One table for both sides; the file may have copies of it.
        table = source.take(shared, sizes.vocabulary, width)
        for name in (encoder, decoder):
            source.drop_copy(name, shared, table)
        tables = (table, table)
    else:
        tables = (
            source.take(encoder, sizes.vocabulary, width),
            source.take(decoder, sizes.target_vocabulary, width),
        )
    ours["embed_source.weight"], ours["embed_target.weight"] = tables
    if sizes.sharing == "none":
        ours["output.weight"] = source.take("lm_head.weight", sizes.target_vocabulary, width)
    else:
        source.drop_copy("lm_head.weight", decoder, tables[1])
    return ours
