"""Reads config.json and generation_config.json of a folder with M2M-100, NLLB-200 or mBART-50.

Every key is read, or restricted to the supported values, or known to have no effect on the output.
Unknown keys and unsupported values are errors. The search is Linnet's: options of transformers' own
beam search (early_stopping) are ignored.

Source: transformers 4.57, M2M100Config, MBartConfig and GenerationConfig.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

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

M2M, MBART = "m2m_100", "mbart"
FORCED_TOKENS = 1  # a target starts with its language

READ = names(
    "model_type d_model vocab_size encoder_layers decoder_layers encoder_ffn_dim decoder_ffn_dim "
    "encoder_attention_heads decoder_attention_heads activation_function scale_embedding "
    "max_position_embeddings tie_word_embeddings eos_token_id pad_token_id decoder_start_token_id "
    "forced_bos_token_id"
)
ONLY: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (True,),
    "is_decoder": (False,),
    "normalize_before": (True,),
    "normalize_embedding": (True,),
    "add_final_layer_norm": (True,),
    "add_bias_logits": (False,),
    "static_position_embeddings": (False,),
    "share_encoder_decoder_embeddings": (True,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "chunk_size_feed_forward": (0,),
    "quantization_config": (None,),
    "force_bos_token_to_be_generated": (False,),
}


@dataclasses.dataclass
class MultilingualFacts(ModelFacts):
    """The facts of a folder, of a model whose targets start with their language."""

    model_type: str = ""
    forced_bos: int | None = None  # the one target language of a many-to-one model


def read_facts(folder: Path) -> MultilingualFacts:
    tables = read_tables(folder, {M2M: ONLY, MBART: ONLY}, READ)
    sizes = model_sizes(tables.file, tables.model, tables.model_type)
    special = dataclasses.replace(
        special_ids(tables, sizes),
        bos=number(tables.file, tables.model, "bos_token_id", 0, sizes.vocabulary - 1, 0),
    )
    found = search_facts(tables, sizes, special)
    search_file = tables.search_file
    forced = tables.search.get("forced_bos_token_id")
    require(
        forced is None or (type(forced) is int and 0 <= forced < sizes.vocabulary),
        f"{search_file} has forced_bos_token_id {json.dumps(forced)}, it must be an id below "
        f"{sizes.vocabulary}",
    )
    # transformers counts the language among the target tokens, the manifest does not.
    longest = found.max_target_tokens - FORCED_TOKENS
    shortest = max(found.min_target_tokens - FORCED_TOKENS, 0)
    require(longest > 0, f"{search_file} leaves no target tokens beside the language")
    fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)} | {
        "max_target_tokens": longest,
        "min_target_tokens": shortest,
    }
    facts = MultilingualFacts(**fields, model_type=tables.model_type, forced_bos=forced)
    if sizes.positions != "learned":
        # The last input of the decoder is the target's last token.
        sizes.max_positions = longest + FORCED_TOKENS + 1
    sizes.check()
    sizes.check_lengths(facts.max_source_tokens, longest + FORCED_TOKENS)
    return facts


def model_sizes(file: Path, table: dict[str, Any], kind: str) -> ModelConfig:
    mbart = kind == MBART
    return ModelConfig(
        **common_sizes(file, table),
        **one_vocabulary(file, table),
        pre_norm=True,
        positions="learned" if mbart else "sinusoidal",
        first_position=2,
        scale_embedding=flag(file, table, "scale_embedding", not mbart),
        embedding_norm=mbart,
        output_bias=mbart,
    )
