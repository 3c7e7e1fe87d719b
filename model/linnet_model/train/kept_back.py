"""The texts that no training row may have: those of the tests, and the everyday sentences."""

from __future__ import annotations

from pathlib import Path

from linnet_model.evaluation.texts import lines_of
from linnet_model.text_files import read_pairs


def folded(text: str) -> str:
    """Returns the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def kept_back(folder: Path) -> set[str]:
    """Returns both sides, folded, of the rows of test.*.tsv and valid.tsv or valid.tsv.xz of a
    folder, and the everyday sentences of the cards. Empty if the folder has none of these files."""
    files = [*folder.glob("test.*.tsv"), *folder.glob("valid.tsv*")]
    if not files:
        return set()
    pairs = read_pairs(files, None, mojibake="keep", empty="drop")
    everyday = (*lines_of("everyday-en"), *lines_of("everyday-de"))
    sides = (text for pair in pairs for text in (pair.source, pair.target))
    return {folded(text) for text in (*sides, *everyday)}
