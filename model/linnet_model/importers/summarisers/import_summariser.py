"""linnet-model import summariser: makes a bundle of BART, distilBART or PEGASUS (Hugging Face).

Reads a folder with config.json, model.safetensors or pytorch_model.bin, of BART vocab.json and
merges.txt, of PEGASUS spiece.model (or of both tokenizer.json, as transformers 5 saves it), and if
present generation_config.json and tokenizer_config.json. Unknown keys or weights and unsupported
values are refused by name.

The bundle has the decoding options of the files: beam, length penalty, lengths, n-grams that are
not repeated, and the forced first token.
"""

from __future__ import annotations

import argparse
import json
import sys
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
from linnet_model.importers.summarisers.config import BART, SummariserFacts, read_facts
from linnet_model.importers.summarisers.vocabulary import read_tokens
from linnet_model.languages import LanguageTokens
from linnet_model.network.model_config import require

FAMILIES = {BART: "BART", "pegasus": "PEGASUS"}


def language_tokens(facts: SummariserFacts, language: str) -> list[LanguageTokens]:
    """Returns the model's one pair with the tokens around a text: none for PEGASUS."""
    before = (facts.special.bos,) if facts.model_type == BART else ()
    forced = () if facts.forced_bos is None else (facts.forced_bos,)
    if not before and not forced:
        return []
    return [LanguageTokens(language, language, before=before, forced=forced)]


def search_note(facts: SummariserFacts) -> str:
    if facts.early_stopping is True:
        return (
            "Linnet's beam search ends by the same rule as that of transformers with "
            "early_stopping."
        )
    return (
        f"The files have early_stopping {json.dumps(facts.early_stopping)}; Linnet's beam search "
        "ends as that of transformers does with true, when as many hypotheses have ended as the "
        "beam has, so some answers differ."
    )


def import_summariser(
    folder: Path,
    out: Path,
    language: str,
    weight_type: str = "float32",
    name: str | None = None,
    stated: CardFlags = NO_CARD_FLAGS,
) -> dict[str, Any]:
    """Writes the bundle and returns its manifest."""
    require(folder.is_dir(), f"no folder at {folder}")
    facts = read_facts(folder)
    tokens = read_tokens(folder, facts)
    config = bundle_config(
        facts,
        name or f"{language}-{facts.model_type}".lower(),
        language,
        language,
        task="summarize",
        default_target_tokens=facts.default_target_tokens,
    )
    model = read_model(folder, facts.sizes, our_weights)
    read = TransformersModel(
        folder=folder,
        model_type=facts.model_type,
        family=FAMILIES[facts.model_type],
        model=model,
        sizes=facts.sizes,
        config=config,
        options=facts.options,
        tokenizer=tokens.files,
        special=tokens.special,
        pairs=language_tokens(facts, language),
        control_ids=tokens.control_ids,
    )
    return write_transformers_bundle(read, out, weight_type, stated, search_note(facts))


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
        card_flags_of(options),
    )
    report(options, "linnet-model import summariser", str(options.model), manifest)


if __name__ == "__main__":
    sys.exit(main())
