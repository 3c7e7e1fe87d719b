"""linnet-model import marian: makes a bundle of a model of Marian, or of Firefox Translations.

Reads a folder with one model, .npz or .bin (float32, or int8 of intgemm), whose configuration is
inside; SentencePiece models, one .spm for both sides or src….spm and trg….spm; if present the
shortlist lex….bin, and the search's configuration config….yml or decoder.yml. The names of
Firefox's files tell the languages. int8 weights stay the integers that they are, and the engine
computes with them. Unknown settings or weights and unsupported values are refused by name. For
folders of Hugging Face use `linnet-model import huggingface`.
"""

from __future__ import annotations

import argparse
import copy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.bundle import (
    BundleFacts,
    SpecialIds,
    TokenizerFiles,
    add_shortlist,
    new_bundle,
    read_manifest,
    sha256,
    write_bundle,
)
from linnet_model.command_line import command
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers import card_flags_of, import_parser, report
from linnet_model.importers.card_flags import NO_CARD_FLAGS, CardFlags
from linnet_model.importers.golden import Golden, GoldenChoice, given_examples
from linnet_model.importers.marian.binary import has_int8_matrices
from linnet_model.importers.marian.config import model_sizes
from linnet_model.importers.marian.decoder_config import DecoderConfig, read_decoder_config
from linnet_model.importers.marian.file_names import confirmed, languages_of
from linnet_model.importers.marian.folder import (
    PADDING,
    ModelFiles,
    Pieces,
    find_files,
    read_arrays,
    read_pieces,
)
from linnet_model.importers.marian.settings import read_settings
from linnet_model.importers.marian.shortlist import LexicalShortlist, read_shortlist
from linnet_model.importers.marian.weights import SETTINGS, our_weights
from linnet_model.importers.own_answers import add_own_examples, has_answers
from linnet_model.importers.tensors import WithoutRandomNumbers
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import ConfigError, ModelConfig, require

DEFAULT_TOKENS = 512  # default limit of sources and targets
# Marian never chooses the unknown token; this far below all others no search does.
UNKNOWN_PENALTY = 1e4
TARGET_RATIO, TARGET_OFFSET = 3.0, 10  # Marian's max-length-factor, with room for short sources


@dataclass(frozen=True)
class MarianFlags:
    """The caller's choices for the bundle. None: as the folder says."""

    name: str | None = None  # SOURCE-TARGET
    source_language: str | None = None  # BCP-47
    target_language: str | None = None
    max_source_tokens: int = DEFAULT_TOKENS
    max_target_tokens: int = DEFAULT_TOKENS
    weight_type: str | None = None


def read_model(files: ModelFiles) -> tuple[EncoderDecoder, ModelConfig]:
    """Returns the model and its sizes, with `<pad>` as the last row of every table."""
    arrays = read_arrays(files.model)
    settings = arrays.get(SETTINGS)
    require(
        settings is not None and settings.dtype.name == "int8",
        f"{files.model} has no {SETTINGS}, the configuration that Marian writes into a model",
    )
    assert settings is not None
    where = f"{files.model}: {SETTINGS}"
    theirs = model_sizes(where, read_settings(where, settings.tobytes()))
    try:
        theirs.check()
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    ours = copy.deepcopy(theirs)
    rows = max(theirs.vocabulary, theirs.target_vocabulary) + 1
    ours.vocabulary = ours.target_vocabulary = rows
    # Compared with the file before anything of these sizes is allocated.
    weights = our_weights(files.model, arrays, theirs, rows)
    with WithoutRandomNumbers():
        model = EncoderDecoder(ours).eval()
    model.load_state_dict(weights, assign=True)
    return model, ours


def file_names(files: ModelFiles) -> list[str]:
    found = [files.model, files.source_spm, files.target_spm, files.shortlist]
    return list(dict.fromkeys(file.name for file in found if file is not None))


def stored_type(file: Path) -> str:
    """Returns the type in which a bundle has the weights of a model unchanged."""
    return "int8" if file.suffix == ".bin" and has_int8_matrices(file) else "float32"


def bundle_config(
    flags: MarianFlags, files: ModelFiles, search: DecoderConfig | None
) -> BundleConfig:
    """Returns what the bundle is called, its languages, limits and default options."""
    given = (flags.source_language, flags.target_language)
    languages = confirmed(languages_of(file_names(files)), given)
    if None in given:
        print(f"languages: {languages[0]} to {languages[1]}, by the names of the files")
    if search is not None:
        print(f"search: as {search.file.name} says")
    config = BundleConfig(
        name=flags.name or "-".join(languages).lower(),
        source_language=languages[0],
        target_language=languages[1],
        max_source_tokens=flags.max_source_tokens,
        max_target_tokens=flags.max_target_tokens,
        beam_size=1,
        min_target_tokens=0,
        target_ratio=TARGET_RATIO,
        target_offset=min(TARGET_OFFSET, flags.max_target_tokens),
        unknown_penalty=UNKNOWN_PENALTY,
    )
    for ours in ("beam_size", "length_penalty", "target_ratio"):
        theirs = getattr(search, ours, None)
        if theirs is not None:
            setattr(config, ours, theirs)
    config.check()
    return config


def tokenizer_of(source: Pieces, target: Pieces, pad: int) -> tuple[TokenizerFiles, SpecialIds]:
    for name in ("eos", "unk"):
        one, other = getattr(source, name), getattr(target, name)
        require(
            one == other,
            f"{source.file} has {name} at {one} and {target.file.name} at {other}, they must be "
            "equal",
        )
    tokenizer = TokenizerFiles(
        source=source.file,
        target=target.file,
        source_vocabulary=vocabulary_lines(source, pad),
        target_vocabulary=vocabulary_lines(target, pad),
    )
    return tokenizer, SpecialIds(bos=source.eos, pad=pad, eos=source.eos, unk=source.unk, start=pad)


def vocabulary_lines(side: Pieces, pad: int) -> list[str]:
    """Returns the pieces and, at its id, the padding; an empty line is an id without a piece."""
    require(
        len(side.pieces) <= pad,
        f"{side.file} has {len(side.pieces)} pieces, the model's tables have {pad} rows",
    )
    return [*side.pieces, *[""] * (pad - len(side.pieces)), PADDING]


def with_own_tokens(shortlist: LexicalShortlist) -> dict[int, list[int]]:
    """Adds each source token to its candidates, as Marian does if both sides share a vocabulary."""
    return {
        token: list(dict.fromkeys([*targets, token]))
        for token, targets in enumerate(shortlist.candidates)
    }


def model_card(
    parameters: int,
    sizes: ModelConfig,
    config: BundleConfig,
    digest: str,
    stated: list[str],
) -> str:
    lines = [
        f"# {config.name}",
        "",
        f"Translates from {config.source_language} to {config.target_language}. Imported from a "
        "model of Marian; data, training and licence are those of that model. Candidates are "
        "chosen and scored by the rules of Linnet's beam search.",
        "",
        *stated,
        f"- weights: sha256 `{digest}`, {parameters:,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(sizes).items()),
    ]
    return "\n".join(lines) + "\n"


def import_marian(
    folder: Path,
    out: Path,
    flags: MarianFlags = MarianFlags(),
    stated: CardFlags = NO_CARD_FLAGS,
) -> dict[str, Any]:
    """Writes the bundle, all at once, and returns its manifest. Prints what it learns from the
    folder in place of flags."""
    files = find_files(folder)
    search = read_decoder_config(folder, files)
    config = bundle_config(flags, files, search)
    weight_type = flags.weight_type or stored_type(files.model)
    model, sizes = read_model(files)
    # The last input of a decoder that attends to the whole target is the target's last token.
    sizes.max_positions = max(2, config.max_target_tokens + 1)
    sides = read_pieces(files.source_spm), read_pieces(files.target_spm)
    tokenizer, special = tokenizer_of(*sides, pad=sizes.vocabulary - 1)
    digest = sha256(files.model)
    golden = Golden()
    if has_answers(stated.golden):
        golden = given_examples(stated.golden, "marian-decoder")
    facts = BundleFacts(
        version=f"marian-{digest[:12]}",
        license=stated.license,
        description=f"imported from Marian, {parameter_count(model) / 1e6:.1f}M parameters",
        golden_examples=golden.examples,
    )
    with new_bundle(out) as partial:
        manifest = write_bundle(
            partial, model, sizes, config, tokenizer, weight_type, facts, special
        )
        parameters = parameter_count(model)
        del model  # a large one has no room beside the shortlist
        if files.shortlist is not None:
            shortlist = read_shortlist(files.shortlist, *(len(side.pieces) for side in sides))
            shared = files.source_spm == files.target_spm
            chosen = with_own_tokens(shortlist) if shared else dict(enumerate(shortlist.candidates))
            # Firefox uses a shortlist that stands beside a model; a configuration may leave it out.
            enabled = search is None or search.shortlist
            manifest = add_shortlist(partial, range(shortlist.first), chosen, by_default=enabled)
        if not golden.examples:
            golden, manifest = add_own_examples(partial, manifest, stated.golden)
        found = f"folder `{folder.resolve().name}`, file `{files.model.name}`"
        card = model_card(parameters, sizes, config, digest, stated.card(found, golden))
        (partial / "MODEL_CARD.md").write_text(card, encoding="utf-8")
        read_manifest(partial)
    return manifest


def import_downloaded(
    folder: Path, out: Path, license_text: str, source: str, flags: MarianFlags = MarianFlags()
) -> dict[str, Any]:
    """Imports the files of a download, with the licence and origin that its catalogue states, as
    the command does without further flags. Returns the manifest."""
    stated = CardFlags(license_text, source, GoldenChoice(wanted=True))
    return import_marian(folder, out, flags, stated)


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(
        __doc__, dtype=None, dtype_told="int8 if the model's weights are int8, else float32"
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="folder of the model")
    for side, example in (("source", ": en, pt-BR"), ("target", "")):
        add(f"--{side}-language", help=f"BCP-47{example} [as the files' names say]")
    for side, also in (("source", ", with the end token"), ("target", "")):
        add(
            f"--max-{side}-tokens",
            type=int,
            default=DEFAULT_TOKENS,
            metavar="N",
            help=f"limit of {side}s{also} [%(default)s]",
        )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    flags = MarianFlags(
        name=options.name,
        source_language=options.source_language,
        target_language=options.target_language,
        max_source_tokens=options.max_source_tokens,
        max_target_tokens=options.max_target_tokens,
        weight_type=options.dtype,
    )
    manifest = import_marian(options.model, options.out, flags, card_flags_of(options))
    report(options, "linnet-model import marian", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
