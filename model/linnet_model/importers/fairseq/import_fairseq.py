"""linnet-model import fairseq: makes a bundle of a fairseq translation model.

Reads LightConv, DynamicConv and Transformer checkpoints from 2019 on, also averaged ones, without
executing pickled code. The import fails and lists the names if a weight is unknown or missing.
Without --sentencepiece or --bpe-codes the bundle serves token ids.

Several --checkpoint with the same dictionaries make one bundle of an ensemble, whose probabilities
are the average of the models'.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linnet_model.bundle import (
    BundleFacts,
    TokenizerFiles,
    joined_digest,
    new_bundle,
    sha256,
    write_bundle,
)
from linnet_model.command_line import command
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers import card_flags_of, import_parser, report
from linnet_model.importers.card_flags import NO_CARD_FLAGS, CardFlags
from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.fairseq.dictionary import Dictionary, read_dictionary
from linnet_model.importers.fairseq.names import from_fairseq, to_new_names
from linnet_model.importers.fairseq.options import ModelFacts, model_facts
from linnet_model.importers.files import load_sentencepiece
from linnet_model.importers.golden import Golden, given_examples
from linnet_model.importers.own_answers import add_own_examples, has_answers
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.ensemble import Ensemble, check_members
from linnet_model.network.model_config import ConfigError, ModelConfig, require

# Kept in the bundle for export_fairseq. The manifest does not list them; the server ignores them.
SOURCE_DICTIONARY, TARGET_DICTIONARY = "dict.source.txt", "dict.target.txt"

# Languages whose abbreviations model/runtime/tokenizer/moses_prefixes.cc has.
MOSES_LANGUAGES = ("de", "en", "fr", "zh")


@dataclass
class Imported:
    """An imported checkpoint, or several; then options and sizes are those of the first, and the
    limits those of all."""

    model: EncoderDecoder | Ensemble
    facts: ModelFacts
    options: dict[str, Any]
    generation: str


@dataclass
class TextFiles:
    """Tokenizer files that turn text into symbols of the dictionaries; none: token ids only."""

    sentencepiece: Path | None = None
    target_sentencepiece: Path | None = None  # None: same as the source's
    bpe_codes: Path | None = None
    word_tokenizer: str = "none"  # or "moses"

    def check(self) -> None:
        require(
            self.sentencepiece is None or self.bpe_codes is None,
            "--sentencepiece and --bpe-codes are both given, a model has one of them",
        )
        require(
            self.target_sentencepiece is None or self.sentencepiece is not None,
            "--target-sentencepiece is given without --sentencepiece",
        )
        require(
            self.word_tokenizer == "none" or self.bpe_codes is not None,
            f"--tokenizer {self.word_tokenizer} needs --bpe-codes",
        )
        for file in (self.sentencepiece, self.target_sentencepiece, self.bpe_codes):
            require(file is None or file.is_file(), f"no file at {file}")
        for file in (self.sentencepiece, self.target_sentencepiece):
            if file is not None:
                load_sentencepiece(file)

    def notes(self, languages: Sequence[str]) -> list[str]:
        """Says for which of the languages words may be cut differently from sacremoses."""
        if self.word_tokenizer != "moses":
            return []
        return [
            f"Moses's abbreviations of {language!r} are not known, those of English are used: "
            "words before a full stop may be cut differently from the training"
            for language in languages
            if language.partition("-")[0].lower() not in MOSES_LANGUAGES
        ]

    def tokenizer(self, source: Dictionary, target: Dictionary) -> TokenizerFiles | None:
        file = self.sentencepiece or self.bpe_codes
        if file is None:
            return None
        return TokenizerFiles(
            source=file,
            target=self.target_sentencepiece,
            source_vocabulary=source.pieces(),
            target_vocabulary=target.pieces(),
            bpe_codes=self.bpe_codes is not None,
            moses=self.word_tokenizer == "moses",
        )


def read_model(
    checkpoint: Path, max_source_tokens: int | None = None, max_target_tokens: int | None = None
) -> Imported:
    """Reads the model of a checkpoint with float32 weights; its limits may be lowered."""
    read = read_checkpoint(checkpoint)
    try:
        fairseq_weights = to_new_names(read.weights)
        facts = model_facts(read.options, fairseq_weights)
        facts.limit(max_source_tokens, max_target_tokens)
        model = EncoderDecoder(facts.config).eval()
        load_weights(model, from_fairseq(fairseq_weights, facts.config))
    except ConfigError as error:
        raise ConfigError(f"{checkpoint}: {error}") from None
    return Imported(model, facts, read.options, read.generation)


def read_ensemble(
    checkpoints: Sequence[Path],
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
) -> Imported:
    """Reads one model, or the members of an ensemble."""
    read = [read_model(file, max_source_tokens, max_target_tokens) for file in checkpoints]
    if len(read) == 1:
        return read[0]
    require(
        len({file.resolve() for file in checkpoints}) == len(checkpoints),
        "--checkpoint names a file twice",
    )
    check_members([one.facts.config for one in read])
    facts = read[0].facts
    facts.max_source_tokens = min(one.facts.max_source_tokens for one in read)
    facts.max_target_tokens = min(one.facts.max_target_tokens for one in read)
    notes = dict.fromkeys(note for one in read for note in one.facts.notes)
    facts.notes[:] = notes
    members = []
    for one in read:
        assert isinstance(one.model, EncoderDecoder)
        members.append(one.model)
    return Imported(Ensemble(members).eval(), facts, read[0].options, read[0].generation)


def load_weights(model: EncoderDecoder, weights: dict[str, torch.Tensor]) -> None:
    """Copies weights into the model, which must have the same names and shapes."""
    parameters = dict(model.named_parameters())
    require(
        parameters.keys() == weights.keys(),
        f"weights do not match the model: {', '.join(sorted(parameters.keys() ^ weights.keys()))}",
    )
    with torch.no_grad():
        for name, parameter in parameters.items():
            weight = weights[name]
            require(
                weight.shape == parameter.shape,
                f"{name} has the shape {list(weight.shape)}, the options ask for "
                f"{list(parameter.shape)}",
            )
            require(bool(torch.isfinite(weight).all()), f"{name} has numbers that are not finite")
            parameter.copy_(weight)


def check_dictionaries(source: Dictionary, target: Dictionary, config: ModelConfig) -> None:
    for side, dictionary, rows in (
        ("source", source, config.vocabulary),
        ("target", target, config.target_vocabulary),
    ):
        require(
            len(dictionary.symbols) == rows,
            f"the {side} dictionary has {len(dictionary.symbols)} symbols with the four special "
            f"ones and the model's embedding {rows} rows, they must be equal",
        )
    require(
        config.sharing != "all" or source.symbols == target.symbols,
        "the dictionaries differ, though source and target share one embedding",
    )


def bundle_config(
    options: dict[str, Any],
    facts: ModelFacts,
    name: str | None,
    source_language: str | None,
    target_language: str | None,
) -> BundleConfig:
    """Returns the bundle's names, limits and fairseq's default decoding options."""
    source = source_language or options.get("source_lang")
    target = target_language or options.get("target_lang")
    require(
        bool(source and target),
        "the checkpoint names no languages, set --source-language and --target-language",
    )
    config = BundleConfig(
        name=name or f"{source}-{target}".lower(),
        source_language=str(source),
        target_language=str(target),
        max_source_tokens=facts.max_source_tokens,
        max_target_tokens=facts.max_target_tokens,
        beam_size=5,
        target_ratio=0.0,
        target_offset=min(200, facts.max_target_tokens),
    )
    config.check()
    return config


def model_card(
    imported: Imported,
    config: BundleConfig,
    digests: list[tuple[str, str]],
    stated: list[str],
) -> str:
    sizes = imported.facts.config
    several = len(digests) > 1
    lines = [
        f"# {config.name}",
        "",
        f"Translates from {config.source_language} to {config.target_language}. Imported from "
        + (
            f"{len(digests)} checkpoints of fairseq, whose probabilities are averaged; data, "
            "training and licence are theirs. The sizes are those of the first."
            if several
            else "a checkpoint of fairseq; data, training and licence are those of the checkpoint."
        ),
        "",
        *stated,
        *(f"- checkpoint: `{name}`, sha256 `{digest}`" for name, digest in digests),
        f"- architecture: {imported.options.get('arch')}, "
        f"{parameter_count(imported.model):,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(sizes).items()),
        *(f"- {note}" for note in imported.facts.notes),
    ]
    return "\n".join(lines) + "\n"


def import_fairseq(
    checkpoints: Sequence[Path],
    source_dictionary: Path,
    target_dictionary: Path,
    out: Path,
    text: TextFiles,
    weight_type: str = "float32",
    name: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    stated: CardFlags = NO_CARD_FLAGS,
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
) -> tuple[dict[str, Any], Imported]:
    """Writes the bundle; returns its manifest and the imported model."""
    text.check()
    source, target = read_dictionary(source_dictionary), read_dictionary(target_dictionary)
    imported = read_ensemble(checkpoints, max_source_tokens, max_target_tokens)
    sizes = imported.facts.config
    check_dictionaries(source, target, sizes)
    config = bundle_config(imported.options, imported.facts, name, source_language, target_language)
    imported.facts.notes += text.notes([config.source_language, config.target_language])
    digests = [(file.name, sha256(file)) for file in checkpoints]
    digest = joined_digest([digest for _, digest in digests])
    golden = Golden(told="the bundle reads token ids only")
    if has_answers(stated.golden):
        golden = given_examples(stated.golden, "fairseq-interactive")
    tokenizer = text.tokenizer(source, target)
    require(
        tokenizer is not None or stated.golden.file is None,
        "--golden has texts, but the bundle reads token ids only; give --sentencepiece or "
        "--bpe-codes",
    )
    several = f"{len(checkpoints)} models of " if len(checkpoints) > 1 else ""
    with new_bundle(out) as partial:
        manifest = write_bundle(
            partial,
            imported.model,
            sizes,
            config,
            tokenizer,
            weight_type,
            BundleFacts(
                version=f"fairseq-{digest[:12]}",
                license=stated.license,
                description=f"imported from {several}fairseq ({imported.options.get('arch')}), "
                f"{parameter_count(imported.model) / 1e6:.1f}M parameters",
                golden_examples=golden.examples,
            ),
        )
        (partial / SOURCE_DICTIONARY).write_bytes(source_dictionary.read_bytes())
        (partial / TARGET_DICTIONARY).write_bytes(target_dictionary.read_bytes())
        if not golden.examples and tokenizer is not None:
            golden, manifest = add_own_examples(partial, manifest, stated.golden)
        found = ", ".join(f"`{file.resolve().parent.name}/{file.name}`" for file in checkpoints)
        card = model_card(imported, config, digests, stated.card(found, golden))
        (partial / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    return manifest, imported


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(__doc__)
    parser.add_argument(
        "--checkpoint",
        type=Path,
        action="append",
        required=True,
        help="FILE.pt of fairseq; once for each model of an ensemble",
    )
    parser.add_argument("--source-dict", type=Path, required=True, help="dict.<source>.txt")
    parser.add_argument("--target-dict", type=Path, required=True, help="dict.<target>.txt")
    parser.add_argument("--source-language", help="BCP-47 [that of the checkpoint]")
    parser.add_argument("--target-language", help="BCP-47 [that of the checkpoint]")
    parser.add_argument(
        "--max-source-tokens", type=int, help="limit with the end token [that of the training]"
    )
    parser.add_argument(
        "--max-target-tokens",
        type=int,
        help="limit without the end token; a Transformer reserves memory for it [as above]",
    )
    parser.add_argument(
        "--sentencepiece", type=Path, help="SentencePiece model whose pieces the dictionaries list"
    )
    parser.add_argument(
        "--target-sentencepiece", type=Path, help="SentencePiece model of the target, if different"
    )
    parser.add_argument("--bpe-codes", type=Path, help="merge operations of subword-nmt")
    parser.add_argument(
        "--tokenizer",
        choices=("moses", "none"),
        default="none",
        help="word tokenizer applied before --bpe-codes",
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest, imported = import_fairseq(
        options.checkpoint,
        options.source_dict,
        options.target_dict,
        options.out,
        TextFiles(
            options.sentencepiece,
            options.target_sentencepiece,
            options.bpe_codes,
            options.tokenizer,
        ),
        options.dtype,
        options.name,
        options.source_language,
        options.target_language,
        card_flags_of(options),
        options.max_source_tokens,
        options.max_target_tokens,
    )
    files, more = ", ".join(map(str, options.checkpoint)), f", options in {imported.generation}"
    report(options, "linnet-model import fairseq", files, manifest, more)
    for note in imported.facts.notes:
        print(f"note: {note}")


if __name__ == "__main__":
    sys.exit(main())
