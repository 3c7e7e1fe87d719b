"""Converts the weights of M2M-100, NLLB-200, mBART-50, BART and PEGASUS to our names.

Every tensor of the file is compared with the configuration, as marian/weights.py does.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from linnet_model.importers.huggingface_marian.weights import (
    POSITION_TOLERANCE,
    Source,
    layer_weights,
)
from linnet_model.importers.huggingface_marian.weights import (
    check_positions as check_marian_positions,
)
from linnet_model.network.encoder_decoder import sinusoids
from linnet_model.network.model_config import ModelConfig, require


def our_weights(file: Path, weights: dict[str, Tensor], sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of EncoderDecoder(sizes) by name."""
    source = Source(file, weights)
    ours = {}
    shared = source.take("model.shared.weight", sizes.vocabulary, sizes.width)
    for copy in ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        source.drop_copy(f"{copy}.weight", "model.shared.weight", shared)
    ours["embed_source.weight"] = shared
    if sizes.output_bias:
        ours["output_bias"] = source.take("final_logits_bias", 1, sizes.vocabulary).flatten()
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
        elif sizes.positions == "sinusoidal_marian":
            check_marian_positions(source, f"model.{side}.embed_positions.weight", sizes.width)
        else:
            for name in ("weights", "weight"):
                check_positions(source, f"model.{side}.embed_positions.{name}", sizes.width)
    source.finish()
    return ours


def check_positions(source: Source, name: str, width: int) -> None:
    """Refuses a stored position table that is not that of fairseq's sinusoids; newer files have
    none. Row 1, that of padding, is zero there."""
    table = source.weights.pop(name, None)
    if table is None:
        return
    require(
        table.dim() == 2 and table.size(1) == width,
        f"{source.file}: {name} has shape {list(table.shape)}, rows have {width} values",
    )
    expected = sinusoids(torch.arange(table.size(0)), width, width // 2 - 1)
    distance = float((table - expected)[2:].abs().max()) if table.size(0) > 2 else 0.0
    require(
        distance <= POSITION_TOLERANCE,
        f"{source.file}: {name} is up to {distance:.3g} from the sinusoids of M2M-100",
    )
