"""linnet-model import multilingual: makes a bundle of M2M-100, NLLB-200 or mBART-50 (Hugging Face).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, sentencepiece.bpe.model, of
M2M-100 vocab.json, of NLLB-200 special_tokens_map.json, and if present generation_config.json and
tokenizer_config.json. Unknown keys or weights and unsupported values are refused by name.

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

from linnet_model.bundle import BundleFacts, new_bundle, sha256, write_bundle
from linnet_model.command_line import command
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers import import_parser, origin_of, report
from linnet_model.importers.golden import transformers_examples
from linnet_model.importers.huggingface_marian.import_huggingface_marian import (
    bundle_config,
    folder_name,
    languages_of,
    some,
)
from linnet_model.importers.huggingface_marian.weights import read_weights
from linnet_model.importers.multilingual.config import MBART, MultilingualFacts, read_facts
from linnet_model.importers.multilingual.vocabulary import Tokens, read_tokens
from linnet_model.importers.multilingual.weights import our_weights
from linnet_model.importers.origin import NO_ORIGIN, Origin
from linnet_model.languages import LanguageTokens, named_tags
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import ModelConfig, require

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


def model_card(
    model: EncoderDecoder,
    sizes: ModelConfig,
    config: BundleConfig,
    digest: str,
    pairs: Sequence[LanguageTokens],
    kind: str,
    origin: list[str],
) -> str:
    lines = [
        f"# {config.name}",
        "",
        f"Translates {languages_of(config, pairs)}. Imported from a model of Hugging Face's "
        f"transformers ({kind}); data, training and licence are those of that model. Candidates "
        "are chosen and scored by the rules of Linnet's beam search.",
        "",
        *(
            [f"The licence of NLLB-200's weights, {NLLB_LICENSE}, forbids commercial use.", ""]
            if kind == "NLLB-200"
            else []
        ),
        *origin,
        f"- weights: sha256 `{digest}`, {parameter_count(model):,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(sizes).items()),
    ]
    return "\n".join(lines) + "\n"


def import_multilingual(
    folder: Path,
    out: Path,
    languages: Sequence[str],
    weight_type: str = "float32",
    name: str | None = None,
    origin: Origin = NO_ORIGIN,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest. Languages are CODE or CODE=TAG."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    tokens = read_tokens(folder, facts)
    kind = family(facts, tokens)
    require(
        not tokens.nllb or bool(origin.license),
        f"{folder} is NLLB-200, whose weights are licensed {NLLB_LICENSE}: that forbids commercial "
        f"use. If that is yours, or the weights are your own, say so: --license {NLLB_LICENSE}",
    )
    named = named_tags(languages, "--language")
    pairs = language_pairs(folder, facts, tokens, named, sources, targets)
    config = bundle_config(
        facts, name or kind.replace("-", "").lower(), pairs[0].source, pairs[0].target
    )
    file, theirs = read_weights(folder)
    # Compared with the file before anything of these sizes is allocated.
    ours = our_weights(file, theirs, facts.sizes)
    model = EncoderDecoder(facts.sizes).eval()
    model.load_state_dict(ours)
    digest = sha256(file)
    own = (config.source_language, config.target_language)
    golden = transformers_examples(
        origin.golden,
        folder,
        facts.model_type,
        own,
        pairs,
        facts.max_source_tokens,
        tokens.control_ids,
    )
    with new_bundle(out) as partial:
        manifest = write_bundle(
            partial,
            model,
            facts.sizes,
            config,
            tokens.files,
            weight_type,
            BundleFacts(
                version=f"{facts.model_type}-{digest[:12]}",
                license=origin.license,
                description=f"imported from {kind}, {parameter_count(model) / 1e6:.1f}M parameters",
                golden_examples=golden.examples,
            ),
            facts.special,
            languages=pairs,
            control_ids=tokens.control_ids,
        )
        told = origin.card(folder_name(folder), golden)
        card = model_card(model, facts.sizes, config, digest, pairs, kind, told)
        (partial / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    return manifest


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
        origin_of(options),
        options.source_language,
        options.target_language,
    )
    report(options, "linnet-model import multilingual", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
