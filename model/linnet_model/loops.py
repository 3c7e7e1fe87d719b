"""Answers that repeat themselves: the typical failure of a model that was trained too little."""

from __future__ import annotations

import re
import string

MAX_WORDS = 6  # of a repeated sequence
TIMES = 3  # in a row
PUNCTUATION = string.punctuation + "„“”‚‘’«»…–—"
SYLLABLES = re.compile(r"(\w{2,8}?)\1{3,}")  # four times in a row inside a word


def has_loop(text: str) -> bool:
    """Whether 1 to 6 words stand three times or more in a row, also with punctuation at their ends,
    or a syllable four times."""
    words = [word.strip(PUNCTUATION) or word for word in text.split()]
    for size in range(1, MAX_WORDS + 1):
        for start in range(len(words) - TIMES * size + 1):
            if words[start : start + TIMES * size] == words[start : start + size] * TIMES:
                return True
    return SYLLABLES.search(text) is not None


def looping_share(sources: list[str], answers: list[str]) -> float:
    """The share of answers with a loop among those whose source has none."""
    counted = [
        has_loop(answer)
        for source, answer in zip(sources, answers, strict=True)
        if not has_loop(source)
    ]
    return sum(counted) / max(1, len(counted))
