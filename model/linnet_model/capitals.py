"""A text in capitals is read in small letters behind a mark, and answered in capitals.

A vocabulary learnt from running text spells THE DOG letter by letter. With the mark, a piece of
the vocabulary, the model reads what it knows: "THE DOG RUNS." as "<ph7> The dog runs.", and its
answer "<ph7> Der Hund läuft." is shown as "DER HUND LÄUFT.". The mark is part of the text, so
nothing has to be remembered between reading and answering (inline casing: Berard et al. 2019,
Naver Labs Europe's Systems for the WMT19 Machine Translation Robustness Task, section 4).
model/runtime/text/capitals.h is the same in C++.
"""

from __future__ import annotations

from typing import Any

import sentencepiece


def in_capitals(text: str) -> bool:
    """Two words or more, all letters that have a case upper: one word alone may be an
    abbreviation."""
    if not text.isupper():
        return False
    return sum(any(c.isupper() for c in word) for word in text.split()) >= 2


def without_capitals(text: str) -> str:
    """In small letters, but for the first letter of the text, if it does not begin with a
    number."""
    small = text.lower()
    for i, letter in enumerate(small):
        if letter.isalnum():
            return small[:i] + letter.title() + small[i + 1 :]
    return small


def mark_capitals(text: str, mark: str) -> str:
    """What the model reads in the place of `text`; with an empty mark the text itself."""
    if not mark or not in_capitals(text):
        return text
    return f"{mark} {without_capitals(text)}"


def restore_capitals(text: str, mark: str) -> str:
    """What an answer of the model says."""
    if not mark or not text.startswith(mark):
        return text
    return text[len(mark) :].removeprefix(" ").upper()


class CapitalsTokenizer(sentencepiece.SentencePieceProcessor):
    """A SentencePiece model whose texts are marked before they are read and restored after they
    are written."""

    def __init__(self, model_file: str, mark: str):
        super().__init__(model_file=model_file)
        self.mark = mark

    def encode(self, texts: str | list[str], **options: Any) -> Any:
        if isinstance(texts, str):
            return super().encode(mark_capitals(texts, self.mark), **options)
        return super().encode([mark_capitals(text, self.mark) for text in texts], **options)

    def decode(self, ids: list[int]) -> str:
        return restore_capitals(super().decode(ids), self.mark)
