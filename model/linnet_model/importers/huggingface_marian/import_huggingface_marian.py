"""linnet-model import huggingface: makes a bundle of a Hugging Face Marian model (OPUS-MT).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm and
vocab.json, and if present generation_config.json and target_vocab.json. Unknown keys or weights and
unsupported values are refused by name.

A model with several target languages names them in its vocabulary (">>deu<<"): give each that is to
be served with its name, --target-language de=deu --target-language zh-Hant=cmn_Hant. A model that
reads several languages has one --source-language for each.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linnet_model.bundle import TokenizerFiles
from linnet_model.command_line import command
from linnet_model.importers import card_flags_of, import_parser, report
from linnet_model.importers.card_flags import NO_CARD_FLAGS, CardFlags
from linnet_model.importers.files import load_sentencepiece
from linnet_model.importers.huggingface.bundle import (
    TransformersModel,
    bundle_config,
    read_model,
    write_transformers_bundle,
)
from linnet_model.importers.huggingface.config import ModelFacts
from linnet_model.importers.huggingface.tokenizer_json import copy_from
from linnet_model.importers.huggingface.vocabulary import (
    read_vocabulary,
    refuse_added,
    some,
    tokenizer_table,
)
from linnet_model.importers.huggingface_marian.config import read_facts
from linnet_model.importers.huggingface_marian.weights import our_weights
from linnet_model.languages import LanguageTokens, named_tags
from linnet_model.network.model_config import require

SOURCE_SPM, TARGET_SPM = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
END, PADDING, UNKNOWN = "</s>", "<pad>", "<unk>"


def check_special(file: Path, pieces: list[str], facts: ModelFacts) -> None:
    for name, piece, number in (
        ("the end", END, facts.special.eos),
        ("padding", PADDING, facts.special.pad),
        ("unknown pieces", UNKNOWN, facts.special.unk),
    ):
        found = pieces.index(piece) if piece in pieces else None
        require(found is not None, f"{file} has no {piece!r}, which stands for {name}")
        require(
            found == number,
            f"{file} gives {piece!r} the id {found}, the model has {number} for {name}",
        )


def language_tags(pieces: list[str]) -> dict[str, int]:
    """Returns the ids of the target languages by their names: {"deu": 5} for ">>deu<<"."""
    return {
        piece[2:-2]: i
        for i, piece in enumerate(pieces)
        if piece.startswith(">>") and piece.endswith("<<") and len(piece) > 4
    }


def language_pairs(
    file: Path, pieces: list[str], sources: Sequence[str], targets: Sequence[str]
) -> list[LanguageTokens]:
    """Returns all pairs of the source languages and the targets, CODE=TAG; none if the model has
    one pair and no tags. No tag is guessed from a code."""
    tags = language_tags(pieces)
    named = named_tags(targets, "--target-language")
    require(len(set(sources)) == len(sources), "--source-language names a language twice")
    if not tags:
        tagged = [f"{code}={tag}" for code, tag in named.items() if tag != code]
        require(not tagged, f"{file} names no target languages, but {', '.join(tagged)} is given")
        require(
            len(named) == 1,
            f"{file} names no target languages, so the model has one, but {', '.join(named)} are "
            "given",
        )
    pairs = []
    for code, tag in named.items():
        require(
            not tags or tag in tags,
            f"{file} names target languages, but not {tag!r} for {code!r}: it has "
            f"{some(tags)}; give each language with its name, as in --target-language de=deu",
        )
        before = (tags[tag],) if tags else ()
        pairs += [LanguageTokens(s, code, before=before) for s in sources if s != code]
    require(bool(pairs), f"no language pair is left of {', '.join(sources)} to {', '.join(named)}")
    return pairs if tags or len(pairs) > 1 else []


def read_tokenizer(folder: Path, facts: ModelFacts) -> TokenizerFiles:
    """Returns the SentencePiece models and the vocabularies. Sets the unknown token's id, which the
    configuration lacks."""
    for name in (SOURCE_SPM, TARGET_SPM):
        require((folder / name).is_file(), f"{folder} has no {name}: {copy_from(name)}")
        load_sentencepiece(folder / name)
    files = {"source": folder / VOCABULARY, "target": folder / VOCABULARY}
    if (folder / TARGET_VOCABULARY).is_file():
        files["target"] = folder / TARGET_VOCABULARY
    rows = {"source": facts.sizes.vocabulary, "target": facts.sizes.target_vocabulary}
    vocabularies = {side: read_vocabulary(file, rows[side]) for side, file in files.items()}
    if UNKNOWN in vocabularies["source"]:
        facts.special = dataclasses.replace(
            facts.special, unk=vocabularies["source"].index(UNKNOWN)
        )
    for side, file in files.items():
        check_special(file, vocabularies[side], facts)
    special = (facts.special.eos, facts.special.pad, facts.special.unk)
    known = {
        piece: i
        for i, piece in enumerate(vocabularies["source"])
        if i in special or piece.startswith(">>")  # the names of target languages
    }
    refuse_added(folder, tokenizer_table(folder), known)
    return TokenizerFiles(
        source=folder / SOURCE_SPM,
        target=folder / TARGET_SPM,
        source_vocabulary=vocabularies["source"],
        target_vocabulary=vocabularies["target"],
    )


def side_name(languages: Sequence[str]) -> str:
    return languages[0] if len(languages) == 1 else "mul"


def import_huggingface_marian(
    folder: Path,
    out: Path,
    source_languages: Sequence[str],
    target_languages: Sequence[str],
    weight_type: str = "float32",
    name: str | None = None,
    stated: CardFlags = NO_CARD_FLAGS,
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest. Target languages are CODE or CODE=TAG."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    tokenizer = read_tokenizer(folder, facts)
    assert tokenizer.source_vocabulary is not None
    pairs = language_pairs(
        folder / VOCABULARY, tokenizer.source_vocabulary, source_languages, target_languages
    )
    targets = list(named_tags(target_languages, "--target-language"))
    own = (pairs[0].source, pairs[0].target) if pairs else (source_languages[0], targets[0])
    name = name or f"{side_name(source_languages)}-{side_name(targets)}".lower()
    config = bundle_config(facts, name, *own)
    shared = tokenizer.source_vocabulary == tokenizer.target_vocabulary
    tags = sorted(language_tags(tokenizer.source_vocabulary).values()) if shared else []
    model = read_model(folder, facts.sizes, our_weights)
    read = TransformersModel(
        folder=folder,
        model_type="marian",
        family="Marian",
        model=model,
        sizes=facts.sizes,
        config=config,
        options=facts.options,
        tokenizer=tokenizer,
        special=facts.special,
        pairs=pairs,
        control_ids=tags,
    )
    return write_transformers_bundle(read, out, weight_type, stated)


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument(
        "--source-language",
        action="append",
        required=True,
        metavar="CODE",
        help="BCP-47: en, pt-BR; once for each language that the model reads",
    )
    parser.add_argument(
        "--target-language",
        action="append",
        required=True,
        metavar="CODE[=TAG]",
        help="BCP-47; of a model with several targets, once for each, with its name in the model: "
        "de=deu",
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest = import_huggingface_marian(
        options.model,
        options.out,
        options.source_language,
        options.target_language,
        options.dtype,
        options.name,
        card_flags_of(options),
    )
    report(options, "linnet-model import huggingface", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
