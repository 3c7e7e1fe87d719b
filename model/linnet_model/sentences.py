"""Splits English and German texts into sentences by rule, with no data of a language."""

from __future__ import annotations

import re

# A sentence ends at one of .!?… with the quotes and brackets that close behind it, before a blank
# and a character that can begin one.
END = re.compile(r"""([.!?…]["'”“’)\]]*)\s+(?=["'“‘„(\[]*[A-ZÄÖÜ0-9])""")
BEGIN = re.compile(r"""["“‘„(]?[A-ZÄÖÜ]""")
NOT_PROSE = re.compile(r"https?:|www\.|[][\\$_^{}|<>=@#*]")
MIN_WORDS, MAX_WORDS, MIN_LETTERS = 4, 40, 0.85
NO_END = re.compile(
    r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|Nr|vs|cf|ca|approx|Fig|Eq|Sec|al|e\.g|i\.e))\.$"
)
# In German, an ordinal has a full stop: am 3. Oktober.
NO_GERMAN_END = re.compile(
    r"(?:\b\d{1,3}|\b[A-Za-z]|\b(?:Dr|Prof|St|Nr|Abs|Art|Mio|Mrd|Co|bzw|ca|etc|evtl|ggf|sog|usw|vgl))\.$"
)


def split_sentences(text: str, no_end: re.Pattern[str] = NO_END) -> list[str]:
    """Returns the sentences of an English text.

    A sentence ends at a full stop, question mark or exclamation mark before a blank and a capital
    or digit, but not after an initial or a common abbreviation. A text without such an end is one
    sentence. It does not see ends before a lower-case word, and takes an unknown abbreviation
    before a name for an end.
    """
    sentences, start = [], 0
    for end in END.finditer(text):
        sentence = text[start : end.end(1)].strip()
        if no_end.search(sentence):
            continue
        sentences.append(sentence)
        start = end.end()
    return [*sentences, text[start:].strip()] if text[start:].strip() else sentences


def split_german_sentences(text: str) -> list[str]:
    """Like split_sentences, of a German text: none ends after an ordinal below 1,000 either."""
    return split_sentences(text, NO_GERMAN_END)


def whole_sentence(text: str) -> bool:
    """Returns true for one sentence of prose: 4 to 40 words from a capital to a full stop, question
    mark or exclamation mark, no address or formula, and hardly anything but letters and blanks."""
    letters = sum(character.isalpha() or character == " " for character in text)
    return (
        MIN_WORDS <= len(text.split()) <= MAX_WORDS
        and BEGIN.match(text) is not None
        and text[-1] in ".!?"
        and NOT_PROSE.search(text) is None
        and letters >= MIN_LETTERS * len(text)
    )
