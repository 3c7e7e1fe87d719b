"""Texts that were written for Linnet, one per line; `bzcat` shows them. The everyday sentences,
which are in tests/data, and messages-test-en were written before any was decoded; messages-en and
points-en are training texts (linnet_research.data.messages)."""

from __future__ import annotations

import bz2
from pathlib import Path

FOLDER = Path(__file__).parent
EVERYDAY = Path(__file__).resolve().parents[3] / "tests/data"


def lines_of(name: str) -> list[str]:
    """Returns the lines of NAME.txt.bz2."""
    return bz2.decompress((FOLDER / f"{name}.txt.bz2").read_bytes()).decode().splitlines()


def everyday_sentences(language: str) -> list[str]:
    """Returns the everyday sentences in "en" or "de"; none of another language."""
    path = EVERYDAY / f"everyday-{language}.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
