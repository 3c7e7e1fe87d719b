"""linnet-import-marian: makes a bundle of a Hugging Face Marian model (OPUS-MT).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm and
vocab.json, and if present generation_config.json and target_vocab.json. Unknown keys or weights and
unsupported values are refused by name.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import (
    BundleFacts,
    TokenizerFiles,
    print_files,
    read_manifest,
    sha256,
    write_bundle,
)
from linnet_model.command_line import command
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers import import_parser
from linnet_model.importers.marian.config import MarianFacts, read_facts, read_json
from linnet_model.importers.marian.weights import our_weights, read_weights
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import ModelConfig, require

SOURCE_SPM, TARGET_SPM = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
END, PADDING, UNKNOWN = "</s>", "<pad>", "<unk>"


def read_vocabulary(file: Path, rows: int) -> list[str]:
    """Returns the pieces in the order of their ids, which must be 0, 1, 2 … without a gap."""
    table = read_json(file)
    pieces: list[str | None] = [None] * len(table)
    for piece, number in table.items():
        require(
            type(number) is int and number >= 0,
            f"{file} gives {piece!r} the id {number!r}, ids are integers from 0",
        )
        require(
            "\n" not in piece,
            f"{file} has the piece {piece!r}, pieces must not contain line breaks",
        )
        require(
            number < len(pieces),
            f"{file} gives {piece!r} the id {number} among {len(pieces)} pieces, ids must be dense",
        )
        require(
            pieces[number] is None,
            f"{file} gives {piece!r} and {pieces[number]!r} the same id {number}",
        )
        pieces[number] = piece
    require(len(pieces) <= rows, f"{file} has {len(pieces)} pieces, the model's table {rows} rows")
    return [piece for piece in pieces if piece is not None]


def check_special(file: Path, pieces: list[str], facts: MarianFacts) -> None:
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
    targets = [piece for piece in pieces if piece.startswith(">>") and piece.endswith("<<")]
    require(
        not targets,
        f"{file} names target languages ({', '.join(targets[:5])}{' …' * (len(targets) > 5)}): "
        "models with several target languages are not supported",
    )


def read_tokenizer(folder: Path, facts: MarianFacts) -> TokenizerFiles:
    """Returns the SentencePiece models and the vocabularies. Sets the unknown token's id, which the
    configuration lacks."""
    for name in (SOURCE_SPM, TARGET_SPM):
        require((folder / name).is_file(), f"{folder} has no {name}")
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
    return TokenizerFiles(
        source=folder / SOURCE_SPM,
        target=folder / TARGET_SPM,
        source_vocabulary=vocabularies["source"],
        target_vocabulary=vocabularies["target"],
    )


def read_model(folder: Path, sizes: ModelConfig) -> tuple[Path, EncoderDecoder]:
    file, theirs = read_weights(folder)
    # Compared with the file before anything of these sizes is allocated.
    ours = our_weights(file, theirs, sizes)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(ours)
    return file, model


def bundle_config(
    facts: MarianFacts, name: str | None, source_language: str, target_language: str
) -> BundleConfig:
    config = BundleConfig(
        name=name or f"{source_language}-{target_language}".lower(),
        source_language=source_language,
        target_language=target_language,
        max_source_tokens=facts.max_source_tokens,
        max_target_tokens=facts.max_target_tokens,
        beam_size=facts.beam_size,
        length_penalty=facts.length_penalty,
        min_target_tokens=facts.min_target_tokens,
        no_repeat_ngram_size=facts.no_repeat_ngram_size,
        target_ratio=0.0,
        target_offset=facts.max_target_tokens,
    )
    config.check()
    return config


def model_card(model: EncoderDecoder, sizes: ModelConfig, config: BundleConfig, digest: str) -> str:
    lines = [
        f"# {config.name}",
        "",
        f"Translates from {config.source_language} to {config.target_language}. Imported from a "
        "Marian model of Hugging Face's transformers; data, training and licence are those of "
        "that model. Candidates are chosen and scored by the rules of Linnet's beam search.",
        "",
        f"- weights: sha256 `{digest}`, {parameter_count(model):,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(sizes).items()),
    ]
    return "\n".join(lines) + "\n"


def import_marian(
    folder: Path,
    out: Path,
    source_language: str,
    target_language: str,
    weight_type: str = "float32",
    name: str | None = None,
    license_text: str = "",
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    config = bundle_config(facts, name, source_language, target_language)
    tokenizer = read_tokenizer(folder, facts)
    file, model = read_model(folder, facts.sizes)
    digest = sha256(file)
    manifest = write_bundle(
        out,
        model,
        facts.sizes,
        config,
        tokenizer,
        weight_type,
        BundleFacts(
            version=f"marian-{digest[:12]}",
            license=license_text,
            description=f"imported from Marian, {parameter_count(model) / 1e6:.1f}M parameters",
        ),
        facts.special,
    )
    (out / "MODEL_CARD.md").write_text(
        model_card(model, facts.sizes, config, digest), encoding="utf-8"
    )
    return manifest


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--source-language", required=True, help="BCP-47: en, pt-BR")
    parser.add_argument("--target-language", required=True, help="BCP-47")
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest = import_marian(
        options.model,
        options.out,
        options.source_language,
        options.target_language,
        options.dtype,
        options.name,
        options.license,
    )
    read_manifest(options.out)
    print(f"{options.model}: {manifest['description']}")
    print_files(manifest)


if __name__ == "__main__":
    sys.exit(main())
