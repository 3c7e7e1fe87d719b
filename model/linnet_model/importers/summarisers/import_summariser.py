"""linnet-model import summariser: makes a bundle of BART, distilBART or PEGASUS (Hugging Face).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, of BART vocab.json and
merges.txt, of PEGASUS spiece.model, and if present generation_config.json and
tokenizer_config.json. Unknown keys or weights and unsupported values are refused by name.

The bundle has the decoding options of the files: beam, length penalty, lengths, n-grams that are
not repeated, and the forced first token.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import BundleFacts, new_bundle, sha256, write_bundle
from linnet_model.command_line import command
from linnet_model.config import BundleConfig, to_tables
from linnet_model.importers import import_parser, origin_of, report
from linnet_model.importers.golden import transformers_examples
from linnet_model.importers.huggingface_marian.import_huggingface_marian import folder_name
from linnet_model.importers.huggingface_marian.weights import read_weights
from linnet_model.importers.multilingual.weights import our_weights
from linnet_model.importers.origin import NO_ORIGIN, Origin
from linnet_model.importers.summarisers.config import BART, SummariserFacts, read_facts
from linnet_model.importers.summarisers.vocabulary import read_tokens
from linnet_model.languages import LanguageTokens
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import require

FAMILIES = {BART: "BART", "pegasus": "PEGASUS"}


def bundle_config(facts: SummariserFacts, name: str, language: str) -> BundleConfig:
    config = BundleConfig(
        name=name,
        task="summarize",
        source_language=language,
        target_language=language,
        max_source_tokens=facts.max_source_tokens,
        max_target_tokens=facts.max_target_tokens,
        beam_size=facts.beam_size,
        length_penalty=facts.length_penalty,
        min_target_tokens=facts.min_target_tokens,
        no_repeat_ngram_size=facts.no_repeat_ngram_size,
        target_ratio=0.0,
        target_offset=facts.default_target_tokens,
    )
    config.check()
    return config


def language_tokens(facts: SummariserFacts, language: str) -> list[LanguageTokens]:
    """Returns the model's one pair with the tokens around a text: none for PEGASUS."""
    before = (facts.special.bos,) if facts.model_type == BART else ()
    forced = () if facts.forced_bos is None else (facts.forced_bos,)
    if not before and not forced:
        return []
    return [LanguageTokens(language, language, before=before, forced=forced)]


def model_card(
    model: EncoderDecoder,
    facts: SummariserFacts,
    config: BundleConfig,
    digest: str,
    origin: list[str],
) -> str:
    stopping = (
        "Linnet's beam search ends by the same rule as that of transformers with early_stopping."
        if facts.early_stopping is True
        else f"The files have early_stopping {json.dumps(facts.early_stopping)}; Linnet's beam "
        "search ends as that of transformers does with true, when as many hypotheses have ended "
        "as the beam has, so some answers differ."
    )
    lines = [
        f"# {config.name}",
        "",
        f"Summarises texts in {config.source_language}. Imported from a model of Hugging Face's "
        f"transformers ({FAMILIES[facts.model_type]}); data, training and licence are those of "
        f"that model. {stopping}",
        "",
        *origin,
        f"- weights: sha256 `{digest}`, {parameter_count(model):,} parameters",
        *(f"- {key}: {value}" for key, value in to_tables(facts.sizes).items()),
    ]
    return "\n".join(lines) + "\n"


def import_summariser(
    folder: Path,
    out: Path,
    language: str,
    weight_type: str = "float32",
    name: str | None = None,
    origin: Origin = NO_ORIGIN,
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    tokens = read_tokens(folder, facts)
    config = bundle_config(facts, name or f"{language}-{facts.model_type}".lower(), language)
    file, theirs = read_weights(folder)
    # Compared with the file before anything of these sizes is allocated.
    ours = our_weights(file, theirs, facts.sizes)
    model = EncoderDecoder(facts.sizes).eval()
    model.load_state_dict(ours)
    digest = sha256(file)
    pairs = language_tokens(facts, language)
    golden = transformers_examples(
        origin.golden,
        folder,
        facts.model_type,
        (language, language),
        pairs,
        facts.max_source_tokens,
        tokens.control_ids,
        task="summarize",
    )
    size = f"{parameter_count(model) / 1e6:.1f}M parameters"
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
                description=f"imported from {FAMILIES[facts.model_type]}, {size}",
                golden_examples=golden.examples,
            ),
            tokens.special,
            languages=pairs,
            control_ids=tokens.control_ids,
        )
        told = origin.card(folder_name(folder), golden)
        card = model_card(model, facts, config, digest, told)
        (partial / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    return manifest


def command_line() -> argparse.ArgumentParser:
    parser = import_parser(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument(
        "--language", required=True, metavar="CODE", help="BCP-47 code of the texts: en"
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest = import_summariser(
        options.model,
        options.out,
        options.language,
        options.dtype,
        options.name,
        origin_of(options),
    )
    report(options, "linnet-model import summariser", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
