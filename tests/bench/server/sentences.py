"""Generates everyday English sentences like those that the bundle en-de was trained on."""

from __future__ import annotations

import itertools
import random

WHO = ["A man", "The little girl", "My brother", "Our neighbour", "The young teacher", "A dog",
       "Her old friend", "The woman in the red coat", "Nobody", "Everyone in the village",
       "The driver of the bus", "One of the children"]  # fmt: skip
DOES = ["is waiting", "runs", "was reading a book", "has lost a key", "wants to eat something",
        "sings", "talked for a long time about the weather", "fell asleep",
        "bought two tickets", "is looking for a place to sit", "forgot everything"]  # fmt: skip
WHERE = ["", "in the kitchen", "at the station", "near the river", "in front of the old church",
         "on the way home from work", "behind the house", "in a small town by the sea"]  # fmt: skip
WHEN = ["", "today", "every morning", "before the rain came", "while the others were playing",
        "because it was already too late", "when the train finally arrived"]  # fmt: skip


def sentences(count: int, seed: int = 1) -> list[str]:
    """Different sentences of 2 to about 25 words, at most 7000, ordered by the seed."""
    parts = list(itertools.product(WHO, DOES, WHERE, WHEN))
    random.Random(seed).shuffle(parts)
    return [" ".join(word for word in part if word) + "." for part in parts[:count]]
