"""The keys of config.json and generation_config.json that the models of transformers share.

An importer reads each key, or restricts it to the supported values, or knows that it has no effect
on the output. Unknown keys and unsupported values are errors, so that an imported model gives the
same answers. The search is Linnet's.

Source: transformers 4.57, PretrainedConfig and GenerationConfig.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.bundle import SpecialIds
from linnet_model.importers.huggingface.families import check_tokenizer, check_type
from linnet_model.network.model_config import (
    MAX_FFN_WIDTH,
    MAX_LAYERS,
    MAX_TOKENS,
    MAX_VOCABULARY,
    MAX_WIDTH,
    ConfigError,
    ModelConfig,
    require,
)

CONFIG, GENERATION = "config.json", "generation_config.json"
TOKENIZER = "tokenizer_config.json"
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
MAX_BEAMS = 32  # limit of the engine


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class SearchOption:
    default: float
    least: float
    most: float


# Keys of training, bookkeeping, or repeated by other keys or the weights.
NO_EFFECT = names(
    "_name_or_path _num_labels architectures transformers_version torch_dtype dtype use_cache "
    "init_std dropout attention_dropout activation_dropout encoder_layerdrop decoder_layerdrop "
    "classif_dropout classifier_dropout id2label label2id num_labels num_hidden_layers "
    "extra_pos_embeddings gradient_checkpointing output_past total_flos task_specific_params "
    "finetuning_task problem_type tokenizer_class return_dict output_attentions "
    "output_hidden_states torchscript use_bfloat16 tf_legacy_loss bos_token_id "
    "attn_implementation _attn_implementation_autoset"
)

# Keys of the search. Older folders have them in config.json.
SEARCH_READ = names(
    "max_length min_length num_beams length_penalty no_repeat_ngram_size bad_words_ids "
    "forced_eos_token_id"
)
# Keys that become default options of the bundle, by the same names, with the ranges of
# search_options.h. transformers' default has no effect and is left out.
SEARCH_OPTIONS = {"repetition_penalty": SearchOption(default=1.0, least=0.1, most=10.0)}
# Supported values of other keys: those without effect. Null is always supported.
SEARCH_ONLY: dict[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0.0,),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "max_new_tokens": (),
    "min_new_tokens": (),
    "forced_bos_token_id": (),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "exponential_decay_length_penalty": (),
    "sequence_bias": (),
    "constraints": (),
    "force_words_ids": (),
    "guidance_scale": (1.0,),
    "penalty_alpha": (0.0,),
    "stop_strings": (),
    "max_time": (),
    "token_healing": (False,),
    "watermarking_config": (),
    "dola_layers": (),
}
# Keys of sampling, of the returned values, of caches, and of transformers' own beam search.
SEARCH_NO_EFFECT = names(
    "temperature top_k top_p min_p typical_p epsilon_cutoff eta_cutoff num_return_sequences "
    "output_scores output_logits output_attentions output_hidden_states return_dict_in_generate "
    "remove_invalid_values use_cache low_memory cache_implementation early_stopping "
    "renormalize_logits transformers_version _from_model_config"
)
IDS = {"eos_token_id", "pad_token_id", "bos_token_id", "decoder_start_token_id"}


@dataclass
class ModelFacts:
    """Sizes, special ids, limits and decoding options of a folder."""

    sizes: ModelConfig
    special: SpecialIds  # the unknown token's id comes from the vocabulary
    max_source_tokens: int
    max_target_tokens: int
    min_target_tokens: int
    beam_size: int
    length_penalty: float
    no_repeat_ngram_size: int
    options: dict[str, float]  # others of the search, by their names in bundle.proto


def required_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object without duplicate keys."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, count in Counter(key for key, _ in found).items() if count > 1]
        require(not twice, f"{path} has {', '.join(map(repr, twice))} twice")
        return dict(found)

    require(path.is_file(), f"{path.parent} has no {path.name}")
    try:
        table = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:  # also of a number of thousands of digits
        raise ConfigError(f"{path} is not JSON: {error}") from None
    require(isinstance(table, dict), f"{path} is not a JSON object")
    return table


def check_known(file: Path, table: dict[str, Any], known: Iterable[str]) -> None:
    unknown = sorted(table.keys() - set(known))
    require(
        not unknown,
        f"{file} has unknown keys, which would be ignored: {', '.join(unknown)}",
    )


def check_values(file: Path, table: dict[str, Any], only: dict[str, tuple[Any, ...]]) -> None:
    """Refuses unsupported values; null is always supported."""
    for key in only.keys() & table.keys():
        value = table[key]
        require(
            value is None or value in only[key],
            f"{file} has {key} {json.dumps(value)}, supported is only "
            f"{' or '.join(map(json.dumps, only[key])) or 'null'}",
        )


@dataclass(frozen=True)
class Tables:
    """The checked keys of a folder: those of the model, and those of the search."""

    model_type: str
    file: Path
    model: dict[str, Any]
    search_file: Path
    search: dict[str, Any]


def read_tables(
    folder: Path,
    only: dict[str, dict[str, tuple[Any, ...]]],
    read: frozenset[str],
    no_effect: frozenset[str] = NO_EFFECT,
) -> Tables:
    """Reads and checks both files. `only` has the supported values of keys for each model_type that
    is read. If generation_config.json exists, all keys of the search are those of that file."""
    file = folder / CONFIG
    table = required_json(file)
    kind = check_type(file, table, only)
    told = {file: table}
    if (folder / TOKENIZER).is_file():
        told[folder / TOKENIZER] = required_json(folder / TOKENIZER)
    check_tokenizer(folder, kind, told)
    of_search = SEARCH_READ | SEARCH_NO_EFFECT | SEARCH_ONLY.keys() | SEARCH_OPTIONS.keys()
    check_known(file, table, read | no_effect | only[kind].keys() | of_search)
    check_values(file, table, only[kind])
    search_file, search = file, table
    if (folder / GENERATION).is_file():
        search_file = folder / GENERATION
        search = required_json(search_file)
        check_known(search_file, search, of_search | IDS)
    search_only = {key: values for key, values in SEARCH_ONLY.items() if key not in read}
    check_values(search_file, search, search_only)
    return Tables(kind, file, table, search_file, search)


def search_options(file: Path, table: dict[str, Any]) -> dict[str, float]:
    """Returns the default options of a bundle that differ from transformers' defaults."""
    options = {}
    for key, option in SEARCH_OPTIONS.items():
        value = table.get(key)
        value = option.default if value is None else value
        require(
            type(value) in (int, float) and option.least <= value <= option.most,
            f"{file} has {key} {json.dumps(value)}, it must be between {option.least:g} and "
            f"{option.most:g}",
        )
        if value != option.default:
            options[key] = float(value)
    return options


def number(
    file: Path,
    table: dict[str, Any],
    key: str,
    minimum: int,
    maximum: int,
    default: int | None = None,
) -> int:
    """Returns an integer within both limits; it is required if there is no default."""
    value = table.get(key)
    value = default if value is None else value
    require(value is not None, f"{file} has no {key}")
    require(
        type(value) is int and minimum <= value <= maximum,
        f"{file} has {key} {json.dumps(value)}, it must be an integer from {minimum} to {maximum}",
    )
    assert isinstance(value, int)
    return value


def flag(file: Path, table: dict[str, Any], key: str, default: bool) -> bool:
    value = table.get(key, default)
    require(type(value) is bool, f"{file} has {key} {json.dumps(value)}, it must be true or false")
    assert isinstance(value, bool)
    return value


def same_on_both_sides(file: Path, table: dict[str, Any], what: str, maximum: int) -> int:
    """Returns a size that must be equal in encoder and decoder."""
    encoder, decoder = (
        number(file, table, f"{side}_{what}", 1, maximum) for side in ("encoder", "decoder")
    )
    require(
        encoder == decoder,
        f"{file} has encoder_{what} {encoder} and decoder_{what} {decoder}, they must be equal",
    )
    return encoder


def common_sizes(file: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of ModelConfig that all these Transformers state in the same keys."""
    activation = table.get("activation_function")
    require(
        isinstance(activation, str) and activation in ACTIVATIONS,
        f"{file} has activation_function {json.dumps(activation)}, known are "
        f"{', '.join(ACTIVATIONS)}",
    )
    return {
        "width": number(file, table, "d_model", 4, MAX_WIDTH),
        "ffn_width": same_on_both_sides(file, table, "ffn_dim", MAX_FFN_WIDTH),
        "heads": same_on_both_sides(file, table, "attention_heads", MAX_WIDTH),
        "encoder_kernels": [0] * number(file, table, "encoder_layers", 1, MAX_LAYERS),
        "decoder_kernels": [0] * number(file, table, "decoder_layers", 1, MAX_LAYERS),
        "encoder_mixers": ["self_attention"],
        "decoder_mixers": ["self_attention"],
        "max_positions": number(file, table, "max_position_embeddings", 2, MAX_TOKENS),
        "activation": ACTIVATIONS[str(activation)],
        "dropout": 0.0,
        "weight_dropout": 0.0,
    }


def one_vocabulary(file: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of ModelConfig of a model with one table of embeddings, for the encoder,
    the decoder and the output."""
    require(
        flag(file, table, "tie_word_embeddings", True),
        f"{file} has tie_word_embeddings false, supported is only true",
    )
    vocabulary = number(file, table, "vocab_size", 5, MAX_VOCABULARY)
    return {"vocabulary": vocabulary, "target_vocabulary": vocabulary, "sharing": "all"}


def special_ids(tables: Tables, sizes: ModelConfig) -> SpecialIds:
    file, table = tables.file, tables.model
    ids = {}
    rows = min(sizes.vocabulary, sizes.target_vocabulary)
    for key in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        ids[key] = number(file, table, key, 0, MAX_VOCABULARY)
        require(
            ids[key] < rows, f"{file} has {key} {ids[key]}, the smaller vocabulary has {rows} rows"
        )
        other = tables.search.get(key)
        require(
            other is None or other in (ids[key], [ids[key]]),
            f"{tables.search_file} has {key} {json.dumps(other)} and {file.name} "
            f"{ids[key]}, they must be equal",
        )
    eos, pad = ids["eos_token_id"], ids["pad_token_id"]
    require(eos != pad, f"{file} has eos_token_id and pad_token_id {eos}, they must differ")
    return SpecialIds(bos=eos, pad=pad, eos=eos, start=ids["decoder_start_token_id"])


def search_facts(tables: Tables, sizes: ModelConfig, special: SpecialIds) -> ModelFacts:
    file, search = tables.search_file, tables.search
    bad = search.get("bad_words_ids")
    require(
        bad in (None, [[special.pad]]),
        f"{file} has bad_words_ids {json.dumps(bad)}, supported is only the padding "
        f"[[{special.pad}]]",
    )
    forced = search.get("forced_eos_token_id")
    require(
        forced in (None, special.eos, [special.eos]),
        f"{file} has forced_eos_token_id {json.dumps(forced)}, supported is only eos_token_id "
        f"{special.eos}",
    )
    penalty = search.get("length_penalty")
    penalty = 1.0 if penalty is None else penalty
    require(
        type(penalty) in (int, float) and 0 <= penalty <= 10,
        f"{file} has length_penalty {json.dumps(penalty)}, it must be between 0 and 10",
    )
    # max_length and min_length include the start token and the end token. Each input of the
    # decoder, including the start token, has a position.
    positions = sizes.max_positions
    longest = min(number(file, search, "max_length", 3, MAX_TOKENS, positions), positions + 1) - 2
    shortest = max(0, number(file, search, "min_length", 0, MAX_TOKENS, 0) - 1)
    require(
        shortest <= longest,
        f"{file} has min_length {shortest + 1}, targets have at most {longest} tokens",
    )
    return ModelFacts(
        sizes=sizes,
        special=special,
        max_source_tokens=positions,
        max_target_tokens=longest,
        min_target_tokens=shortest,
        beam_size=number(file, search, "num_beams", 1, MAX_BEAMS, 1),
        length_penalty=float(penalty),
        no_repeat_ngram_size=number(file, search, "no_repeat_ngram_size", 0, MAX_TOKENS, 0),
        options=search_options(file, search),
    )
