"""Texts that were written for Linnet, one per line. Those of the cards and of the tests were
written before any was decoded; only messages-en and points-en are training texts
(linnet_model.data.messages). These two are compressed: `xzcat` shows them."""

from __future__ import annotations

import lzma
from pathlib import Path

FOLDER = Path(__file__).parent


def lines_of(name: str) -> list[str]:
    """Returns the lines of NAME.txt or NAME.txt.xz; none if there is no such file."""
    path, compressed = FOLDER / f"{name}.txt", FOLDER / f"{name}.txt.xz"
    if compressed.is_file():
        return lzma.decompress(compressed.read_bytes()).decode().splitlines()
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def card_examples(task: str, source_language: str) -> list[str]:
    """Returns the texts that cards of this task and language show beside the recipe's examples."""
    return lines_of(f"examples-{task}-{source_language}")
