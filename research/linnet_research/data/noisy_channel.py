"""Noisy-channel reranking: a model of the other direction chooses among the hypotheses of a search.

A translation that leaves words out is probable under the model that wrote it, but its source is not
probable given that translation. The chosen hypothesis y of a source x has the greatest

  log p(y|x) / |y| + weight * log p(x|y) / |x|

with lengths in tokens (Yee et al. 2019, arXiv 1908.05731, section 2.2, without the language model).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from linnet_model.bundle import read_manifest
from linnet_model.command_line import count_from
from linnet_model.config import ConfigError
from linnet_model.decode_command import hypotheses_of

HYPOTHESES, WEIGHT = 8, 0.2  # defaults


@dataclass(frozen=True)
class Channel:
    """The model of the other direction, and how it chooses. `min_score` is the least mean
    log-probability of a text's tokens, given the translation that is chosen."""

    bundle: Path
    hypotheses: int  # that the search gives it to choose from
    weight: float  # of its log-probability
    min_score: float = -math.inf


def add_channel_flags(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    add = parser.add_argument
    add("--channel", type=Path, metavar="DIR",
        help="bundle of the other direction, to choose among --hypotheses")  # fmt: skip
    add("--hypotheses", type=count_from(2), metavar="N",
        help=f"with --channel, translations of a text, and the beam [{HYPOTHESES}]")  # fmt: skip
    add("--channel-weight", type=float, metavar="X",
        help=f"weight of its log-probability [{WEIGHT}]")  # fmt: skip


def channel_of(options: argparse.Namespace, bundle: Path) -> Channel | None:
    """Returns what the flags ask for. Raises ConfigError if its languages are not those of `bundle`
    turned round, and if only flags of a channel are given."""
    defaults: dict[str, Any] = {
        "hypotheses": HYPOTHESES,
        "channel_weight": WEIGHT,
        "channel_min_score": -math.inf,
    }
    given = {name: value for name in defaults if (value := vars(options).get(name)) is not None}
    if options.channel is None:
        for name, value in given.items():
            raise ConfigError(
                f"--{name.replace('_', '-')} is {value} and no --channel is given, the bundle that "
                "chooses among the hypotheses: name one, or leave the flag out"
            )
        return None
    there, back = languages_of(bundle), languages_of(options.channel)
    if there != back[::-1] or there == back:
        raise ConfigError(
            f"{options.channel} translates {' to '.join(back)}, to choose among translations from "
            f"{' to '.join(there)} name a bundle of the other direction"
        )
    hypotheses, weight, min_score = (defaults | given).values()
    return Channel(options.channel, hypotheses, weight, min_score)


def languages_of(bundle: Path) -> tuple[str, str]:
    manifest = read_manifest(bundle)
    return manifest.get("source_language_code", ""), manifest.get("target_language_code", "")


def rerank_texts(
    command: Path,
    bundle: Path,
    channel: Channel,
    texts: Sequence[str],
    flags: Sequence[str] = (),
) -> list[str]:
    """Returns the chosen translation of each text. `flags` are those of linnet-decode for both
    models. The translation is empty if all hypotheses of a text are empty, too long for the model
    of the other direction, or below its `min_score`."""
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
    best = [(-math.inf, "")] * len(texts)
    for (number, hypothesis), scores in zip(pairs, scored, strict=True):
        for source in scores:  # at most one
            backward = fmean(source["token_scores"])
            score = fmean(hypothesis["token_scores"]) + channel.weight * backward
            if backward >= channel.min_score and score > best[number][0]:
                best[number] = score, hypothesis["text"]
    return [text for _, text in best]
