"""Reads config.json and generation_config.json of a Hugging Face Marian folder.

Options of transformers' own beam search (early_stopping, renormalize_logits) are ignored.

Source: transformers 4.57, MarianConfig.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from linnet_model.importers.huggingface.config import (
    ModelFacts,
    common_sizes,
    flag,
    names,
    number,
    read_tables,
    search_facts,
    special_ids,
)
from linnet_model.network.model_config import MAX_VOCABULARY, ModelConfig, require

READ = names(
    "model_type d_model vocab_size decoder_vocab_size encoder_layers decoder_layers "
    "encoder_ffn_dim decoder_ffn_dim encoder_attention_heads decoder_attention_heads "
    "activation_function scale_embedding max_position_embeddings share_encoder_decoder_embeddings "
    "tie_word_embeddings eos_token_id pad_token_id decoder_start_token_id"
)
ONLY: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (True,),
    "is_decoder": (False,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "add_bias_logits": (False,),
    "static_position_embeddings": (True,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "chunk_size_feed_forward": (0,),
    "quantization_config": (None,),
    "force_bos_token_to_be_generated": (False,),
}


def read_facts(folder: Path) -> ModelFacts:
    tables = read_tables(folder, {"marian": ONLY}, READ)
    sizes = model_sizes(tables.file, tables.model)
    special = special_ids(tables, sizes)
    facts = search_facts(tables, sizes, special)
    # The last input of the decoder is the target's last token.
    sizes.max_positions = facts.max_target_tokens + 1
    sizes.check()
    sizes.check_lengths(facts.max_source_tokens, facts.max_target_tokens)
    return facts


def model_sizes(file: Path, table: dict[str, Any]) -> ModelConfig:
    vocabulary = number(file, table, "vocab_size", 5, MAX_VOCABULARY)
    shared = flag(file, table, "share_encoder_decoder_embeddings", True)
    tied = flag(file, table, "tie_word_embeddings", True)
    target = number(file, table, "decoder_vocab_size", 5, MAX_VOCABULARY, vocabulary)
    require(
        not shared or target == vocabulary,
        f"{file} has vocab_size {vocabulary} and decoder_vocab_size {target}, though "
        "share_encoder_decoder_embeddings says that they share a table",
    )
    return ModelConfig(
        **common_sizes(file, table),
        vocabulary=vocabulary,
        target_vocabulary=target,
        pre_norm=False,
        sharing=("all" if shared else "output") if tied else "none",
        positions="sinusoidal_marian",
        first_position=0,
        scale_embedding=flag(file, table, "scale_embedding", False),
        output_bias=True,
    )
