"""Inline casing: a mark before a lower-case text stands for a text in capitals.

A vocabulary trained on running text splits THE DOG into letters. With the mark, a piece of the
vocabulary, the model reads "THE DOG RUNS." as "<ph7> The dog runs.", and its answer
"<ph7> Der Hund läuft." is returned as "DER HUND LÄUFT.". The mark is part of the text, so encoding
and decoding share no state. Source: Berard et al. 2019, Naver Labs Europe's Systems for the WMT19
Machine Translation Robustness Task, section 4. The same in C++:
model/runtime/tokenizer/capitals.h.
"""

from __future__ import annotations

import re
from typing import Any

import sentencepiece

# The server marks a text by what is left of it beside the placeholders, and keeps their names
# (Tokenizer::EncodeCopying). Their letters are no capitals, and no lower case either.
PLACEHOLDER = re.compile("<ph[0-9]+>")


def in_capitals(text: str) -> bool:
    """True for at least two words whose cased letters are all upper case. A single word may be an
    abbreviation."""
    text = PLACEHOLDER.sub("", text)
    if not text.isupper():
        return False
    return sum(any(c.isupper() for c in word) for word in text.split()) >= 2


def without_capitals(text: str) -> str:
    """Returns the text in lower case; its first letter stays a capital unless a digit or a
    placeholder precedes it."""
    small = text.lower()
    for i, letter in enumerate(small):
        if letter.isalnum():
            if PLACEHOLDER.match(small, i - 1):
                return small
            return small[:i] + letter.title() + small[i + 1 :]
    return small


def mark_capitals(text: str, mark: str) -> str:
    """Returns the text that the model reads instead of `text`; with an empty mark, or where the
    mark is there already, `text` itself."""
    if not mark or text.startswith(mark) or not in_capitals(text):
        return text
    return f"{mark} {without_capitals(text)}"


def restore_capitals(text: str, mark: str) -> str:
    """Returns the answer that the model's output stands for."""
    if not mark or not text.startswith(mark):
        return text
    return text[len(mark) :].removeprefix(" ").upper()


class CapitalsTokenizer(sentencepiece.SentencePieceProcessor):
    """A SentencePiece model that marks texts in capitals when encoding and restores them when
    decoding."""

    def __init__(self, model_file: str, mark: str):
        super().__init__(model_file=model_file)
        self.mark = mark

    def encode(self, texts: str | list[str], **options: Any) -> Any:
        if isinstance(texts, str):
            return super().encode(mark_capitals(texts, self.mark), **options)
        return super().encode([mark_capitals(text, self.mark) for text in texts], **options)

    def decode(self, ids: list[int]) -> str:
        return restore_capitals(super().decode(ids), self.mark)
