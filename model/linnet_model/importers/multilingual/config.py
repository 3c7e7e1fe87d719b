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

from linnet_model.importers.families import check_type
from linnet_model.importers.huggingface_marian.config import (
    CONFIG,
    GENERATION,
    IDS,
    SEARCH_NO_EFFECT,
    SEARCH_ONLY,
    SEARCH_READ,
    MarianFacts,
    check_known,
    check_values,
    common_sizes,
    flag,
    names,
    number,
    read_json,
    search_facts,
    special_ids,
)
from linnet_model.importers.huggingface_marian.config import NO_EFFECT as MARIAN_NO_EFFECT
from linnet_model.network.model_config import (
    MAX_VOCABULARY,
    ModelConfig,
    require,
)

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
NO_EFFECT = MARIAN_NO_EFFECT | names("tokenizer_class")


@dataclasses.dataclass
class MultilingualFacts(MarianFacts):
    """The facts of a Marian folder, of a model whose targets start with their language."""

    model_type: str = ""
    forced_bos: int | None = None  # the one target language of a many-to-one model


def read_facts(folder: Path) -> MultilingualFacts:
    """Reads and checks both files. If generation_config.json exists, all keys of the search are
    those of that file."""
    file = folder / CONFIG
    table = read_json(file)
    kind = check_type(file, table, [M2M, MBART])
    search_only = {key: value for key, value in SEARCH_ONLY.items() if key != "forced_bos_token_id"}
    of_search = SEARCH_READ | SEARCH_NO_EFFECT | search_only.keys() | {"forced_bos_token_id"}
    check_known(file, table, READ | NO_EFFECT | ONLY.keys() | of_search)
    check_values(file, table, ONLY)
    search_file, search = file, table
    if (folder / GENERATION).is_file():
        search_file = folder / GENERATION
        search = read_json(search_file)
        check_known(search_file, search, of_search | IDS)
    check_values(search_file, search, search_only)
    sizes = model_sizes(file, table, kind)
    special = dataclasses.replace(
        special_ids(file, table, search_file, search, sizes),
        bos=number(file, table, "bos_token_id", 0, sizes.vocabulary - 1, 0),
    )
    found = search_facts(search_file, search, sizes, special)
    forced = search.get("forced_bos_token_id")
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
    facts = MultilingualFacts(**fields, model_type=str(kind), forced_bos=forced)
    if sizes.positions != "learned":
        # The last input of the decoder is the target's last token.
        sizes.max_positions = longest + FORCED_TOKENS + 1
    sizes.check()
    sizes.check_lengths(facts.max_source_tokens, longest + FORCED_TOKENS)
    return facts


def model_sizes(file: Path, table: dict[str, Any], kind: str) -> ModelConfig:
    require(
        flag(file, table, "tie_word_embeddings", True),
        f"{file} has tie_word_embeddings false, supported is only true",
    )
    mbart = kind == MBART
    vocabulary = number(file, table, "vocab_size", 5, MAX_VOCABULARY)
    return ModelConfig(
        **common_sizes(file, table),
        vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        pre_norm=True,
        sharing="all",
        positions="learned" if mbart else "sinusoidal",
        first_position=2,
        scale_embedding=flag(file, table, "scale_embedding", not mbart),
        embedding_norm=mbart,
        output_bias=mbart,
    )
