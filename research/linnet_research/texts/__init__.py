"""Texts that were written for Linnet, one per line; `xzcat` shows them. The everyday sentences,
which are in tests/data, and messages-test-en were written before any was decoded; messages-en and
points-en are training texts (linnet_research.data.messages)."""

from __future__ import annotations

import lzma
from pathlib import Path

FOLDER = Path(__file__).parent
EVERYDAY = Path(__file__).resolve().parents[3] / "tests/data"


def lines_of(name: str) -> list[str]:
    """Returns the lines of NAME.txt or NAME.txt.xz; none if there is no such file."""
    path, compressed = FOLDER / f"{name}.txt", FOLDER / f"{name}.txt.xz"
    if compressed.is_file():
        return lzma.decompress(compressed.read_bytes()).decode().splitlines()
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def everyday_sentences(language: str) -> list[str]:
    """Returns the everyday sentences in "en" or "de"; none of another language."""
    path = EVERYDAY / f"everyday-{language}.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
