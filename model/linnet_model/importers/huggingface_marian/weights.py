"""Converts the weights of a Hugging Face Marian folder to our names.

Copies of a shared table must be equal.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from linnet_model.importers.huggingface.weights import check_positions, layer_weights
from linnet_model.importers.tensors import Source
from linnet_model.network.model_config import ModelConfig, require


def our_weights(file: Path, weights: dict[str, Tensor], sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of EncoderDecoder(sizes) by name."""
    source = Source(file, weights)
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
    shared, width = "model.shared.weight", sizes.width
    encoder, decoder = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    ours = {"output_bias": source.take("final_logits_bias", 1, sizes.target_vocabulary).flatten()}
    if shared in source.weights:
        # One table for both sides; the file may have copies of it.
        table = source.take(shared, sizes.vocabulary, width)
        for name in (encoder, decoder):
            source.drop_copy(name, shared, table)
        tables = (table, table)
    else:
        of_source = source.take(encoder, sizes.vocabulary, width)
        both = sizes.sharing == "all" and decoder not in source.weights
        tables = (
            of_source,
            of_source if both else source.take(decoder, sizes.target_vocabulary, width),
        )
        if sizes.sharing == "all":
            require(
                both or tables[0].numel() == 0 or torch.equal(*tables),
                f"{source.file}: {encoder} differs from {decoder}, though the configuration ties "
                "them",
            )
    ours["embed_source.weight"] = tables[0]
    if sizes.sharing != "all":
        ours["embed_target.weight"] = tables[1]
    if sizes.sharing == "none":
        ours["output.weight"] = source.take("lm_head.weight", sizes.target_vocabulary, width)
    else:
        source.drop_copy("lm_head.weight", decoder, tables[1])
    return ours
