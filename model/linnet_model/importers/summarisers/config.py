"""Reads config.json and generation_config.json of a folder with BART, distilBART or PEGASUS.

Every key is read, or restricted to the supported values, or known to have no effect on the output.
Unknown keys and unsupported values are errors.

Source: transformers 4.57, BartConfig, PegasusConfig and GenerationConfig.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from linnet_model.importers.huggingface.config import NO_EFFECT as COMMON_NO_EFFECT
from linnet_model.importers.huggingface.config import (
    ModelFacts,
    common_sizes,
    flag,
    names,
    number,
    one_vocabulary,
    read_tables,
    search_facts,
    special_ids,
)
from linnet_model.network.model_config import ModelConfig, require

BART, PEGASUS = "bart", "pegasus"

READ = names(
    "model_type d_model vocab_size encoder_layers decoder_layers encoder_ffn_dim decoder_ffn_dim "
    "encoder_attention_heads decoder_attention_heads activation_function scale_embedding "
    "max_position_embeddings tie_word_embeddings eos_token_id pad_token_id decoder_start_token_id "
    "forced_bos_token_id force_bos_token_to_be_generated"
)
# Values that some files have although transformers reads only the model type.
LAYOUT: dict[str, dict[str, tuple[Any, ...]]] = {
    BART: {
        "normalize_before": (False,),
        "normalize_embedding": (True,),
        "add_final_layer_norm": (False,),
        "static_position_embeddings": (False,),
    },
    PEGASUS: {
        "normalize_before": (True,),
        "normalize_embedding": (False,),
        "add_final_layer_norm": (True,),
        "static_position_embeddings": (True,),
    },
}
ONLY: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (True,),
    "is_decoder": (False,),
    "add_bias_logits": (False,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "chunk_size_feed_forward": (0,),
    "quantization_config": (None,),
}
# `prefix` is what transformers' pipelines put before a text; generate() does not.
NO_EFFECT = COMMON_NO_EFFECT | names(
    "prefix eos_token_ids replacing_rate student_encoder_layers student_decoder_layers save_step "
    "max_source_length max_target_length do_blenderbot_90_layernorm"
)


@dataclasses.dataclass
class SummariserFacts(ModelFacts):
    """The facts of a folder, of a model whose targets may start with a forced token.
    max_target_tokens is what its positions allow."""

    model_type: str = ""
    default_target_tokens: int = 0  # of a request that sets no limit: max_length of the files
    forced_bos: int | None = None
    early_stopping: Any = False  # as in the file; Linnet's rule is that of true


def read_facts(folder: Path) -> SummariserFacts:
    only = {kind: ONLY | layout for kind, layout in LAYOUT.items()}
    tables = read_tables(folder, only, READ, NO_EFFECT)
    kind, table, search = tables.model_type, tables.model, tables.search
    file, search_file = tables.file, tables.search_file
    sizes = model_sizes(file, table, kind)
    special = special_ids(tables, sizes)
    if kind == BART:
        bos = number(file, table, "bos_token_id", 0, sizes.vocabulary - 1, 0)
        special = dataclasses.replace(special, bos=bos)
    forced = search.get("forced_bos_token_id")
    if forced is None and search is table and table.get("force_bos_token_to_be_generated") is True:
        forced = special.bos
    require(
        forced is None
        or (
            type(forced) is int
            and 0 <= forced < sizes.vocabulary
            and forced not in (special.eos, special.pad)
        ),
        f"{search_file} has forced_bos_token_id {json.dumps(forced)}, it must be an id below "
        f"{sizes.vocabulary}, and neither the end token nor padding",
    )
    found = search_facts(tables, sizes, special)
    # transformers counts a forced token among the target tokens, the manifest does not.
    beside = 0 if forced is None else 1
    default = found.max_target_tokens - beside
    require(default > 0, f"{search_file} leaves no target tokens beside the forced one")
    longest = sizes.max_positions - 1 - beside  # each input has a position, the start token too
    fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)} | {
        "max_target_tokens": longest,
        "min_target_tokens": max(found.min_target_tokens - beside, 0),
    }
    facts = SummariserFacts(
        **fields,
        model_type=kind,
        default_target_tokens=default,
        forced_bos=forced,
        early_stopping=search.get("early_stopping", False),
    )
    sizes.check()
    sizes.check_lengths(facts.max_source_tokens, longest + beside)
    return facts


def model_sizes(file: Path, table: dict[str, Any], kind: str) -> ModelConfig:
    bart = kind == BART
    return ModelConfig(
        **common_sizes(file, table),
        **one_vocabulary(file, table),
        pre_norm=not bart,
        positions="learned" if bart else "sinusoidal_marian",
        first_position=2 if bart else 0,
        scale_embedding=flag(file, table, "scale_embedding", False),
        embedding_norm=bart,
        output_bias=True,
    )
