"""linnet-model import multilingual: makes a bundle of M2M-100, NLLB-200 or mBART-50 (Hugging Face).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, sentencepiece.bpe.model (or
tokenizer.json, as transformers 5 saves it), of M2M-100 vocab.json, of NLLB-200
special_tokens_map.json or tokenizer_config.json with the languages, and if present
generation_config.json and tokenizer_config.json. Unknown keys or weights and unsupported values are
refused by name.

Name each language that is to be served with its name in the model, --language de=de_DE
--language en=en_XX; the bundle has all pairs of them, or those that --source-language and
--target-language leave.

The weights of NLLB-200 are licensed CC-BY-NC 4.0, which forbids commercial use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linnet_model.command_line import command
from linnet_model.importers import card_flags_of, import_parser, report
from linnet_model.importers.card_flags import NO_CARD_FLAGS, CardFlags
from linnet_model.importers.huggingface.bart_weights import our_weights
from linnet_model.importers.huggingface.bundle import (
    TransformersModel,
    bundle_config,
    read_model,
    write_transformers_bundle,
)
from linnet_model.importers.huggingface.vocabulary import some
from linnet_model.importers.multilingual.config import MBART, MultilingualFacts, read_facts
from linnet_model.importers.multilingual.vocabulary import Tokens, read_tokens
from linnet_model.languages import LanguageTokens, named_tags
from linnet_model.network.model_config import require

NLLB_LICENSE = "CC-BY-NC-4.0"


def token_of(folder: Path, tokens: Tokens, code: str, tag: str) -> int:
    """The id of a language by its name, with or without the underscores of M2M-100."""
    for name in (tag, f"__{tag}__"):
        if name in tokens.languages:
            return tokens.languages[name]
    known = [name.strip("_") for name in tokens.languages]
    require(False, f"{folder} has no language {tag!r} for {code!r}: it has {some(known)}")
    raise AssertionError


def language_pairs(
    folder: Path,
    facts: MultilingualFacts,
    tokens: Tokens,
    named: dict[str, str],
    sources: Sequence[str],
    targets: Sequence[str],
) -> list[LanguageTokens]:
    """Returns all pairs of different languages whose sides are among `sources` and `targets` (none:
    any)."""
    ids = {code: token_of(folder, tokens, code, tag) for code, tag in named.items()}
    for flag, codes in (("--source-language", sources), ("--target-language", targets)):
        for code in codes:
            require(code in ids, f"{flag} {code} is not among the languages: {', '.join(ids)}")
    pairs = [
        LanguageTokens(
            source,
            target,
            before=() if tokens.legacy else (ids[source],),
            after=(ids[source],) if tokens.legacy else (),
            forced=(ids[target],),
        )
        for source in sources or ids
        for target in targets or ids
        if source != target and facts.forced_bos in (None, ids[target])
    ]
    require(
        bool(pairs),
        f"no pair is left of {', '.join(ids)}"
        + ("" if facts.forced_bos is None else ": the model forces another target language"),
    )
    return pairs


def family(facts: MultilingualFacts, tokens: Tokens) -> str:
    if facts.model_type == MBART:
        return "mBART-50"
    return "NLLB-200" if tokens.nllb else "M2M-100"


def import_multilingual(
    folder: Path,
    out: Path,
    languages: Sequence[str],
    weight_type: str = "float32",
    name: str | None = None,
    stated: CardFlags = NO_CARD_FLAGS,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest. Languages are CODE or CODE=TAG."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    tokens = read_tokens(folder, facts)
    kind = family(facts, tokens)
    require(
        not tokens.nllb or bool(stated.license),
        f"{folder} is NLLB-200, whose weights are licensed {NLLB_LICENSE}: that forbids commercial "
        f"use. If that is yours, or the weights are your own, say so: --license {NLLB_LICENSE}",
    )
    named = named_tags(languages, "--language")
    pairs = language_pairs(folder, facts, tokens, named, sources, targets)
    config = bundle_config(
        facts, name or kind.replace("-", "").lower(), pairs[0].source, pairs[0].target
    )
    model = read_model(folder, facts.sizes, our_weights)
    read = TransformersModel(
        folder=folder,
        model_type=facts.model_type,
        family=kind,
        model=model,
        sizes=facts.sizes,
        config=config,
        options=facts.options,
        tokenizer=tokens.files,
        special=facts.special,
        pairs=pairs,
        control_ids=tokens.control_ids,
    )
    forbids = f"The licence of NLLB-200's weights, {NLLB_LICENSE}, forbids commercial use."
    warnings = [forbids] if tokens.nllb else []
    return write_transformers_bundle(read, out, weight_type, stated, warnings=warnings)


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument(
        "--language",
        action="append",
        required=True,
        metavar="CODE[=TAG]",
        help="BCP-47 code of a language and its name in the model: de=de_DE; once for each",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-language",
            action="append",
            default=[],
            metavar="CODE",
            help=f"serve only pairs with this {side}; once for each [all]",
        )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest = import_multilingual(
        options.model,
        options.out,
        options.language,
        options.dtype,
        options.name,
        card_flags_of(options),
        options.source_language,
        options.target_language,
    )
    report(options, "linnet-model import multilingual", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
