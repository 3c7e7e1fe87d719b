"""Datasets of the objectives without pairs: language modelling and span corruption."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy
import sentencepiece

from linnet_model.config import ConfigError
from linnet_model.data_config import DataConfig
from linnet_model.network.encoder_decoder import EOS
from linnet_model.text_files import DataError, Pair
from linnet_model.tokenizer import known_placeholders
from linnet_model.train.datasets import Ids, PairDataset


def make_dataset(
    pairs: list[Pair],
    tokenizer: sentencepiece.SentencePieceProcessor,
    config: DataConfig,
    seed: int,
    rng: random.Random | None = None,
) -> PairDataset:
    """Returns the dataset of the recipe's objective. `rng` is given for training rows only."""
    if config.objective == "language_model":
        return LanguageModelDataset(pairs, tokenizer, config)
    if config.objective == "span_corruption":
        return SpanCorruptionDataset(pairs, tokenizer, config, seed)
    return PairDataset(pairs, tokenizer, config, rng)


class LanguageModelDataset(PairDataset):
    """Texts for a language model: the source is empty, the target is the text with its end token.
    Longer texts are split into rows, so that every token is a target; each part starts without the
    context of the one before."""

    def __init__(
        self,
        pairs: list[Pair],
        tokenizer: sentencepiece.SentencePieceProcessor,
        config: DataConfig,
    ):
        self.dropped: Counter[str] = Counter()
        self.domains: list[str] = []
        self.words: Counter[str] = Counter()  # words between blanks, plus one per end of text
        parts: list[Ids] = []
        texts = [(text, pair.domain) for pair in pairs for text in sides(pair, config.text)]
        for begin in range(0, len(texts), 10_000):
            some = texts[begin : begin + 10_000]
            for (text, domain), ids in zip(
                some, tokenizer.encode([text for text, _ in some]), strict=True
            ):
                self.words[domain] += len(text.split()) + 1
                for part in self.cut(ids, config):
                    if self.fits(part):
                        parts.append(numpy.array(part, dtype=numpy.int32))
                        self.domains.append(domain)
                    else:
                        self.dropped[domain] += 1
        if not parts:
            raise DataError(f"none of {len(texts)} texts can be used for {config.objective}")
        self.keep([numpy.zeros(0, dtype=numpy.int32)] * len(parts), parts)

    def cut(self, ids: list[int], config: DataConfig) -> Iterator[list[int]]:
        """Yields consecutive parts; the last one holds the end token."""
        whole, size = [*ids, EOS], config.max_target_tokens
        for begin in range(0, len(whole), size):
            yield whole[begin : begin + size]

    def fits(self, ids: list[int]) -> bool:
        return True


def sides(pair: Pair, which: str) -> list[str]:
    """Returns the texts of a row; two equal sides (a single plain file) count once."""
    if which == "both" and pair.source != pair.target:
        return [pair.source, pair.target]
    return [pair.source if which == "source" else pair.target]


class SpanCorruptionDataset(LanguageModelDataset):
    """Span corruption (Raffel et al. 2020, section 3.1.4; Tay et al. 2021): in the source each
    removed span is replaced by a placeholder; the target is every placeholder followed by its span.
    The spans of a row depend on (seed, epoch, row)."""

    def __init__(
        self,
        pairs: list[Pair],
        tokenizer: sentencepiece.SentencePieceProcessor,
        config: DataConfig,
        seed: int,
    ):
        self.seed, self.share, self.mean = seed, config.corrupted_share, config.mean_span_tokens
        self.sentinels = known_placeholders(tokenizer)
        longest = min(config.max_source_tokens, config.max_target_tokens) - 1
        _, needed = gaps_of(longest, self.share, self.mean)
        if needed > len(self.sentinels):
            raise ConfigError(
                f"texts of {longest} tokens have {needed} gaps and the tokenizer has "
                f"{len(self.sentinels)} placeholders, raise tokenizer.placeholders or lower "
                "data.max_source_tokens"
            )
        super().__init__(pairs, tokenizer, config)
        removed, gaps = numpy.array(
            [gaps_of(int(n), self.share, self.mean) for n in self.target_lengths]
        ).T
        self.source_lengths = self.target_lengths - removed + gaps + 1
        self.target_lengths = removed + gaps + 1

    def cut(self, ids: list[int], config: DataConfig) -> Iterator[list[int]]:
        size = min(config.max_source_tokens, config.max_target_tokens) - 1
        for begin in range(0, len(ids), size):
            yield ids[begin : begin + size]

    def fits(self, ids: list[int]) -> bool:
        """False for a single token, which has no context, and for a text that contains a
        placeholder, which would look like a gap."""
        return len(ids) > 1 and not set(self.sentinels).intersection(ids)

    def pair(self, row: int, epoch: int) -> tuple[Ids, Ids]:
        ids = self.target(row)  # the whole text
        rng = numpy.random.default_rng([self.seed, epoch, row])
        source, target = corrupted(ids.tolist(), self.sentinels, self.share, self.mean, rng)
        return numpy.array([*source, EOS]), numpy.array([*target, EOS])


def gaps_of(tokens: int, share: float, mean: float) -> tuple[int, int]:
    """Returns how many tokens to remove from a text of at least two tokens, and in how many spans.
    At least one token stays between two spans."""
    removed = min(max(1, round(tokens * share)), tokens - 1)
    return removed, min(max(1, round(removed / mean)), tokens - removed + 1)


def corrupted(
    ids: list[int], sentinels: list[int], share: float, mean: float, rng: numpy.random.Generator
) -> tuple[list[int], list[int]]:
    """Returns the text with placeholders in its gaps, and each placeholder followed by its span.

    All ways to cut the text into that many spans are equally likely; a span may be at either end.
    """
    removed, gaps = gaps_of(len(ids), share, mean)
    spans = composition(removed, gaps, rng)
    # One token more at either end allows the outer kept parts to be empty.
    kept = composition(len(ids) - removed + 2, gaps + 1, rng)
    kept[0], kept[-1] = kept[0] - 1, kept[-1] - 1
    source, target, at = ids[: kept[0]], list[int](), kept[0]
    for sentinel, span, stays in zip(sentinels, spans, kept[1:], strict=False):
        target += [sentinel, *ids[at : at + span]]
        source += [sentinel, *ids[at + span : at + span + stays]]
        at += span + stays
    return source, target


def composition(total: int, parts: int, rng: numpy.random.Generator) -> list[int]:
    """Returns `parts` positive numbers that sum to `total`, drawn uniformly from all such lists."""
    cuts = numpy.sort(rng.choice(total - 1, parts - 1, replace=False)) + 1
    return numpy.diff([0, *cuts.tolist(), total]).tolist()
