"""Noisy-channel reranking: a model of the other direction chooses among the hypotheses of a search.

A translation that leaves words out is probable under the model that wrote it, but its source is not
probable given that translation. The chosen hypothesis y of a source x has the greatest

  log p(y|x) / |y| + weight * log p(x|y) / |x|

with lengths in tokens (Yee et al. 2019, arXiv 1908.05731, section 2.2, without the language model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linnet_model.decode_command import hypotheses_of


@dataclass(frozen=True)
class Channel:
    """The model of the other direction, and how it chooses."""

    bundle: Path
    hypotheses: int  # that the search gives it to choose from
    weight: float  # of its log-probability
    min_score: float = float(
        "-inf"
    )  # mean log-probability of a text's tokens, given its translation


def rerank_texts(
    command: Path, bundle: Path, channel: Channel, texts: Sequence[str], flags: Sequence[str] = ()
) -> list[str]:
    """Returns the chosen translation of each text. `flags` are those of linnet-decode for both
    models. Empty is the translation of a text all of whose hypotheses are empty, too long for the
    model of the other direction or below its `min_score`."""
    search = ("--beam", str(channel.hypotheses), "--n-best", str(channel.hypotheses))
    searched = hypotheses_of(command, bundle, [{"text": text} for text in texts], (*flags, *search))
    pairs = [
        (number, hypothesis)
        for number, hypotheses in enumerate(searched)
        for hypothesis in hypotheses
        if hypothesis["text"].strip()
    ]
    lines = [{"text": hypothesis["text"], "target": texts[number]} for number, hypothesis in pairs]
    scored = hypotheses_of(command, channel.bundle, lines, flags, none_if_refused=True)
    best = [(float("-inf"), "")] * len(texts)
    for (number, hypothesis), scores in zip(pairs, scored, strict=True):
        for source in scores:  # at most one
            backward = mean(source["token_scores"])
            score = mean(hypothesis["token_scores"]) + channel.weight * backward
            if backward >= channel.min_score and score > best[number][0]:
                best[number] = score, hypothesis["text"]
    return [text for _, text in best]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
