"""The attention that is the alignment in fairseq's transformer_align models (Garg et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linnet_model.network.model_config import ModelConfig, require


def read_alignment(options: Mapping[str, Any], config: ModelConfig) -> list[str]:
    """Sets layer and head of a transformer_align model, with fairseq's defaults; returns notes.
    Other models keep our defaults: fairseq ignores these options there."""
    if "align" not in str(options.get("arch") or options.get("_name")):
        return []
    layers = len(config.decoder_kernels)
    layer = options.get("alignment_layer", 4)
    require(
        type(layer) is int and 0 <= layer < layers,
        f"alignment_layer is {layer!r}, the decoder has the layers 0 to {layers - 1}",
    )
    heads = options.get("alignment_heads", 1)
    heads = config.heads if heads is None else heads
    # fairseq takes the mean of the first heads, and of all if there are fewer.
    require(
        type(heads) is int and (heads == 1 or heads >= config.heads),
        f"alignment_heads is {heads!r}, supported are 1 and {config.heads}, all heads of the model",
    )
    config.alignment_layer, config.alignment_head = layer, 0 if heads == 1 else -1
    if not options.get("full_context_alignment"):
        return []
    return [
        "full_context_alignment is left out: alignments are worse than those of fairseq, which "
        "runs the decoder once more over the whole translation for them"
    ]


def written_alignment(config: ModelConfig) -> dict[str, Any]:
    """Returns fairseq's options of a Transformer that has an alignment layer."""
    if config.alignment_layer < 0:
        return {}
    require(
        config.alignment_head in (-1, 0),
        f"model.alignment_head is {config.alignment_head}, fairseq aligns with the first head or "
        "with all",
    )
    return {
        "arch": "transformer_align",
        "_name": "transformer_align",
        "alignment_layer": config.alignment_layer,
        "alignment_heads": 1 if config.alignment_head == 0 else config.heads,
        "full_context_alignment": False,
    }
