"""Reads tests/data/oracle: small fairseq models, and numbers that fairseq computed with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ORACLE = Path(__file__).resolve().parent / "oracle"
PAD = 1
CLEAR = 1e-4  # smaller score gaps may be decided by rounding

MODELS: dict[str, dict[str, Any]] = {
    model["name"]: model for model in json.loads((ORACLE / "models.json").read_text())["models"]
}
# Every file of every model: (model, generation).
CHECKPOINTS = [(name, kind) for name, model in MODELS.items() for kind in model["checkpoints"]]


def folder(name: str) -> Path:
    return ORACLE / "models" / name


def checkpoint(name: str, kind: str = "") -> Path:
    """Returns a model's file of a generation, by default its first."""
    files = MODELS[name]["checkpoints"]
    return folder(name) / files[kind or next(iter(files))]


def dictionaries(name: str) -> tuple[Path, Path]:
    return folder(name) / "dict.src.txt", folder(name) / "dict.tgt.txt"


def split(arrays: Any, field: str, offsets: str) -> list[np.ndarray]:
    """Splits a concatenated field by sentence."""
    return np.split(arrays[field], arrays[offsets][1:-1])


def forward(name: str) -> dict[str, list[np.ndarray]]:
    """Returns for each field, without _flat, a list of one array per sentence."""
    arrays = np.load(folder(name) / "forward.npz", allow_pickle=False)
    return {
        field.removesuffix("_flat"): split(
            arrays, field, f"{'source' if field[:2] in ('so', 'en') else 'target'}_offsets"
        )
        for field in arrays.files
        if field.endswith("_flat")
    }


def cap(setting: dict[str, Any], source_tokens: int) -> int:
    """Returns target tokens without the end token."""
    return int(setting["max_len_a"] * source_tokens + setting["max_len_b"])
