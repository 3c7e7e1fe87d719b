"""The texts that no training row may have: those of the tests, and the everyday sentences."""

from __future__ import annotations

from pathlib import Path

from linnet_model.text_files import read_lines, read_pairs
from linnet_research.texts import everyday_sentences


def folded(text: str) -> str:
    """Returns the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def held_out(folder: Path) -> set[str]:
    """Returns, folded, both sides of the rows of test.*.tsv and valid.tsv or valid.tsv.xz of a
    folder, the further references of refs.*.tsv, and the everyday sentences of the cards. Empty if
    the folder has no tests and no validation."""
    files = [*folder.glob("test.*.tsv"), *folder.glob("valid.tsv*")]
    if not files:
        return set()
    pairs = read_pairs(files, None, mojibake="warn", empty="drop")
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    for file in folder.glob("refs.*.tsv"):
        texts += [text for line in read_lines(file) for text in line.split("\t")]
    texts += (*everyday_sentences("en"), *everyday_sentences("de"))
    return {folded(text) for text in texts} - {""}
