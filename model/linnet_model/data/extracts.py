"""Rows that teach a summariser to select: the sentences of a text that are closest to its summary.

Extractive summarisers are trained on such sentences (Nallapati et al. 2017, section 3.3, who add
sentences while ROUGE grows); here a fixed number is taken, each by its own.
"""

from __future__ import annotations

import random
import re

from linnet_model.sentences import split_sentences
from linnet_model.styles import PARAGRAPHS, SENTENCES
from linnet_model.text_files import Pair

# Sentences of the part of a text that is summarised; a shorter one would be its own summary.
MIN_SENTENCES = {SENTENCES: 3, PARAGRAPHS: 4}
LONG_TEXT = 6  # from so many sentences on a paragraph has three, else two
SENTENCE_WORDS = range(6, 51)
WORD = re.compile(r"[^\W\d_]{4,}|\d+")  # words that carry meaning; shorter ones mostly do not


def content_words(text: str) -> set[str]:
    """Returns the words of a text in lower case, cut at six letters as a stem."""
    return {word[:6] for word in WORD.findall(text.lower())}


def closeness(sentence: str, wanted: set[str]) -> float:
    """Returns the F1 of the content words of a sentence and those of the summary."""
    words = content_words(sentence)
    shared = len(words & wanted)
    return 2 * shared / (len(words) + len(wanted)) if shared else 0.0


def extract(sentences: list[str], target: str, count: int) -> str | None:
    """Returns the `count` sentences closest to the target, in their order; None if they have
    nothing of it."""
    wanted = content_words(target)
    rated = [
        (closeness(sentence, wanted), -place)  # of equal ones the first
        for place, sentence in enumerate(sentences)
        if len(sentence.split()) in SENTENCE_WORDS
    ]
    best = [(score, place) for score, place in sorted(rated, reverse=True)[:count] if score > 0]
    if len(best) < count:
        return None
    return " ".join(sentences[place] for place in sorted(-place for _, place in best))


def extract_pair(pair: Pair, domain: str, rng: random.Random) -> Pair | None:
    """Returns a row of this domain (SENTENCES or PARAGRAPHS) from a random part of the text, so
    that short texts occur as well; None if the text does not give one."""
    sentences, fewest = split_sentences(pair.source), MIN_SENTENCES[domain]
    if len(sentences) < fewest:
        return None
    length = rng.randint(fewest, len(sentences))
    begin = rng.randint(0, len(sentences) - length)
    part = sentences[begin : begin + length]
    count = 1 if domain == SENTENCES else 2 if length < LONG_TEXT else 3
    target = extract(part, pair.target, count)
    return None if target is None else Pair(" ".join(part), target, domain)


def extracts(
    pairs: list[Pair], shares: dict[str, float], count: int, rng: random.Random
) -> list[Pair]:
    """Makes `count` rows, each of another pair, half of them paragraphs; fewer if few of the texts
    give one. A domain's share is the weight of its pairs in the draw."""
    # Weighted sampling without replacement (Efraimidis and Spirakis 2006, algorithm A).
    drawn = sorted(pairs, key=lambda pair: rng.random() ** (1 / shares.get(pair.domain, 1.0)))
    found: list[Pair] = []
    for pair in reversed(drawn):
        if len(found) == count:
            break
        row = extract_pair(pair, (SENTENCES, PARAGRAPHS)[len(found) % 2], rng)
        if row is not None:
            found.append(row)
    return found
