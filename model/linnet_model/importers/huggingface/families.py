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
