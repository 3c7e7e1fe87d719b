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

PARAGRAPH_SENTENCES = 3
# A shorter text would mostly be its own summary.
MIN_SENTENCES = PARAGRAPH_SENTENCES + 2
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


def extract(source: str, target: str, count: int) -> str | None:
    """Returns the `count` sentences closest to the target, in the order of the text; None if the
    text is too short or the sentences have nothing of the target."""
    sentences = split_sentences(source)
    wanted = content_words(target)
    if len(sentences) < MIN_SENTENCES:
        return None
    rated = [
        (closeness(sentence, wanted), -place)  # of equal ones the first
        for place, sentence in enumerate(sentences)
        if len(sentence.split()) in SENTENCE_WORDS
    ]
    best = [(score, place) for score, place in sorted(rated, reverse=True)[:count] if score > 0]
    if len(best) < count:
        return None
    return " ".join(sentences[place] for place in sorted(-place for _, place in best))


def extracts(
    pairs: list[Pair], shares: dict[str, float], count: int, rng: random.Random
) -> list[Pair]:
    """Makes `count` rows, each of another pair, a third of them paragraphs; fewer if few of the
    texts are long enough. A domain's share is the weight of its pairs in the draw."""
    # Weighted sampling without replacement (Efraimidis and Spirakis 2006, algorithm A).
    drawn = sorted(pairs, key=lambda pair: rng.random() ** (1 / shares.get(pair.domain, 1.0)))
    found: list[Pair] = []
    for pair in reversed(drawn):
        if len(found) == count:
            break
        paragraph = len(found) % 3 == 2
        target = extract(pair.source, pair.target, PARAGRAPH_SENTENCES if paragraph else 1)
        if target is not None:
            found.append(Pair(pair.source, target, PARAGRAPHS if paragraph else SENTENCES))
    return found
