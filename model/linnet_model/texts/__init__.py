"""Texts that programs read, one per line. Those that cards show were written before any was
decoded."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def lines_of(name: str) -> list[str]:
    """Returns the lines of NAME.txt; none if there is no such file."""
    path = FOLDER / f"{name}.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def card_examples(task: str, source_language: str) -> list[str]:
    """Returns the texts that cards of this task and language show beside the recipe's examples."""
    return lines_of(f"examples-{task}-{source_language}")
