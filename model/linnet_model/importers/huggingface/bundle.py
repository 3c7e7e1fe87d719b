"""The part that all importers of Hugging Face's transformers share: a model from the weights of a
folder, and a bundle with its card from a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from linnet_model.bundle import (
    BundleFacts,
    SpecialIds,
    TokenizerFiles,
    joined_digest,
    new_bundle,
    sha256,
    write_bundle,
)
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers.card_flags import CardFlags
from linnet_model.importers.golden import transformers_examples
from linnet_model.importers.huggingface.config import CONFIG, ModelFacts, required_json
from linnet_model.importers.huggingface.weights import read_weights, weight_files
from linnet_model.languages import LanguageTokens
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import ModelConfig

# Converts the tensors of a folder to those of EncoderDecoder(sizes), by name.
Conversion = Callable[[Path, dict[str, Tensor], ModelConfig], dict[str, Tensor]]


@dataclass(frozen=True, kw_only=True)
class TransformersModel:
    """A model of transformers as its importer has read it."""

    folder: Path
    model_type: str  # of config.json
    family: str  # what people call it: "BART"
    model: EncoderDecoder
    sizes: ModelConfig
    config: BundleConfig
    options: dict[str, float]  # of the search, beside those of the recipe
    tokenizer: TokenizerFiles
    special: SpecialIds
    pairs: Sequence[LanguageTokens]  # none: the model has one pair, and no tokens for it
    control_ids: Sequence[int]  # beside those of the pairs, ids that are no text


def read_model(folder: Path, sizes: ModelConfig, our_weights: Conversion) -> EncoderDecoder:
    theirs = read_weights(folder)
    # Compared with the files before anything of these sizes is allocated.
    ours = our_weights(folder, theirs, sizes)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(ours)
    return model


def folder_name(folder: Path) -> str:
    """The name of a folder, and the name that transformers has written into it."""
    named = required_json(folder / CONFIG).get("_name_or_path")
    told = f", in its {CONFIG} `{named}`" if isinstance(named, str) and named.strip() else ""
    return f"folder `{folder.resolve().name}`{told}"


def bundle_config(
    facts: ModelFacts,
    name: str,
    source_language: str,
    target_language: str,
    task: str = "translate",
    default_target_tokens: int | None = None,
) -> BundleConfig:
    """Returns the decoding options of the files. Where a call names no length, a target has at most
    `default_target_tokens`, by default as many as the model has positions for."""
    config = BundleConfig(
        name=name,
        task=task,
        source_language=source_language,
        target_language=target_language,
        max_source_tokens=facts.max_source_tokens,
        max_target_tokens=facts.max_target_tokens,
        beam_size=facts.beam_size,
        length_penalty=facts.length_penalty,
        min_target_tokens=facts.min_target_tokens,
        no_repeat_ngram_size=facts.no_repeat_ngram_size,
        target_ratio=0.0,
        target_offset=default_target_tokens or facts.max_target_tokens,
    )
    config.check()
    return config


def task_of(config: BundleConfig, pairs: Sequence[LanguageTokens]) -> str:
    """Returns "Translates from en to de", or with all languages of both sides."""
    if config.task == "summarize":
        return f"Summarises texts in {config.source_language}"
    sources = list(dict.fromkeys(pair.source for pair in pairs)) or [config.source_language]
    targets = list(dict.fromkeys(pair.target for pair in pairs)) or [config.target_language]
    return f"Translates from {', '.join(sources)} to {', '.join(targets)}"


def write_transformers_bundle(
    read: TransformersModel,
    out: Path,
    weight_type: str,
    stated: CardFlags,
    search_note: str = "Candidates are chosen and scored by the rules of Linnet's beam search.",
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Writes the bundle, all at once, and returns its manifest. `search_note` says in the card how
    the search differs from that of transformers; `warnings` are paragraphs of the card."""
    digest = joined_digest([sha256(file) for file in weight_files(read.folder)])
    config = read.config
    golden = transformers_examples(
        stated.golden,
        read.folder,
        read.model_type,
        read.tokenizer,
        (config.source_language, config.target_language),
        read.pairs,
        config.max_source_tokens,
        read.control_ids,
        config.task,
    )
    size = f"{parameter_count(read.model) / 1e6:.1f}M parameters"
    card = [
        f"# {config.name}",
        "",
        f"{task_of(config, read.pairs)}. Imported from a model of Hugging Face's transformers "
        f"({read.family}); data, training and licence are those of that model. {search_note}",
        "",
        *(line for warning in warnings for line in (warning, "")),
        *stated.card(folder_name(read.folder), golden),
        f"- weights: sha256 `{digest}`, {parameter_count(read.model):,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(read.sizes).items()),
    ]
    with new_bundle(out) as partial:
        manifest = write_bundle(
            partial,
            read.model,
            read.sizes,
            config,
            read.tokenizer,
            weight_type,
            BundleFacts(
                version=f"{read.model_type}-{digest[:12]}",
                license=stated.license,
                description=f"imported from {read.family}, {size}",
                golden_examples=golden.examples,
                options=read.options,
            ),
            read.special,
            languages=read.pairs,
            control_ids=read.control_ids,
        )
        (partial / "MODEL_CARD.md").write_text("\n".join(card) + "\n", encoding="utf-8")
    return manifest
