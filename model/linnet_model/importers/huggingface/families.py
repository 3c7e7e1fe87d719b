"""The families of Hugging Face's models that have importers, by model_type in config.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linnet_model.network.model_config import require

# model_type: the family, and the toolkit of `linnet-model import`.
FAMILIES = {
    "marian": ("MarianMT (OPUS-MT)", "huggingface"),
    "m2m_100": ("M2M-100 or NLLB-200", "multilingual"),
    "mbart": ("mBART-50", "multilingual"),
    "bart": ("BART or distilBART", "summariser"),
    "pegasus": ("PEGASUS", "summariser"),
}
# The tokenizers of each family, and those that stand for any. transformers may add "Fast".
TOKENIZERS = {
    "marian": ("MarianTokenizer",),
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer"),
    "mbart": ("MBart50Tokenizer",),
    # transformers 5 has the byte-level BPE of both families under the name of RoBERTa.
    "bart": ("BartTokenizer", "RobertaTokenizer"),
    "pegasus": ("PegasusTokenizer",),
}
ANY_TOKENIZER = ("PreTrainedTokenizer", "TokenizersBackend")


def check_tokenizer(folder: Path, kind: str, tables: dict[Path, dict[str, Any]]) -> None:
    """Refuses a model of the family with a tokenizer of its own, such as SMALL-100 of M2M-100: it
    may put the languages elsewhere. `tables`: the files that may name the tokenizer."""
    family, known = FAMILIES[kind][0], TOKENIZERS[kind]
    code = sorted(file.name for file in folder.glob("tokenization_*.py"))
    require(
        not code,
        f"{folder} has {', '.join(code)}: a tokenizer of its own, which is not imported; models of "
        f"{family} have {' or '.join(known)}",
    )
    for file, table in tables.items():
        name = table.get("tokenizer_class")
        require(
            name is None
            or (isinstance(name, str) and name.removesuffix("Fast") in (*known, *ANY_TOKENIZER)),
            f"{file} has tokenizer_class {json.dumps(name)}, models of {family} have "
            f"{' or '.join(known)}; another tokenizer is not imported",
        )


def check_type(file: Path, table: dict[str, Any], read: Iterable[str]) -> str:
    """Returns the model_type, which must be one of `read`; names the importer of another one."""
    kind, read = table.get("model_type"), list(read)
    if isinstance(kind, str) and kind in FAMILIES:
        other = f"use linnet-model import {FAMILIES[kind][1]}"
    else:
        other = f"importers exist for {', '.join(FAMILIES)}"
    require(
        kind in read,
        f"{file} has model_type {json.dumps(kind)}, this reads {' and '.join(read)}; {other}",
    )
    return str(kind)
