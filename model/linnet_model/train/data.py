"""Token ids in memory, batches of like length.

The batches of an epoch follow from (seed, epoch) alone, so a training is resumed by the numbers of
its epoch and its next batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import sentencepiece
import torch
from torch import Tensor

from linnet_model.config import DataConfig
from linnet_model.network.encoder_decoder import EOS, PAD
from linnet_model.text_files import DataError, Pair, Reading, read_split
from linnet_model.train.augment import augmented

Ids = numpy.ndarray  # of int32 or int64, one dimension


class PairDataset:
    """Token ids of all rows, in two flat arrays. What a row is for the model is `pair`."""

    def __init__(
        self,
        pairs: list[Pair],
        tokenizer: sentencepiece.SentencePieceProcessor,
        config: DataConfig,
        rng: random.Random | None = None,
    ):
        """`rng` chooses which sources are cut short; without one none is."""
        self.dropped: Counter[str] = Counter()
        self.domains: list[str] = []
        sources: list[Ids] = []
        targets: list[Ids] = []
        # A piece has at most 16 characters: what follows would be cut off after it was tokenised.
        longest = config.max_source_tokens
        maximum = 16 * longest if config.cut_source else None
        for begin in range(0, len(pairs), 10_000):
            part = pairs[begin : begin + 10_000]
            for pair, source, target in zip(
                part,
                tokenizer.encode([p.source[:maximum] for p in part]),
                tokenizer.encode([p.target for p in part]),
                strict=True,
            ):
                if config.cut_source:
                    short = rng is not None and rng.random() < config.short_share
                    source = source[: (config.short_tokens if short else longest) - 1]
                if len(source) >= longest or len(target) >= config.max_target_tokens:
                    self.dropped[pair.domain] += 1
                    continue
                sources.append(numpy.array([*source, EOS], dtype=numpy.int32))
                targets.append(numpy.array([*target, EOS], dtype=numpy.int32))
                self.domains.append(pair.domain)
        if not sources:
            raise DataError(
                f"none of {len(pairs)} rows is shorter than {longest} source and "
                f"{config.max_target_tokens} target tokens"
            )
        self.keep(sources, targets)

    def keep(self, sources: list[Ids], targets: list[Ids]) -> None:
        """Lays the ids of all rows out flat; `domains` is there already."""
        self.source_lengths = numpy.array([len(s) for s in sources])
        self.target_lengths = numpy.array([len(t) for t in targets])
        self.source_begins = numpy.concatenate([[0], numpy.cumsum(self.source_lengths)])
        self.target_begins = numpy.concatenate([[0], numpy.cumsum(self.target_lengths)])
        self.source_ids = numpy.concatenate(sources)
        self.target_ids = numpy.concatenate(targets)
        self.rows_of: dict[str, Ids] = {
            domain: numpy.array([i for i, d in enumerate(self.domains) if d == domain])
            for domain in sorted(set(self.domains))
        }

    def __len__(self) -> int:
        return len(self.domains)

    def source(self, row: int) -> Ids:
        return self.source_ids[self.source_begins[row] : self.source_begins[row + 1]]

    def target(self, row: int) -> Ids:
        return self.target_ids[self.target_begins[row] : self.target_begins[row + 1]]

    def pair(self, row: int, epoch: int) -> tuple[Ids, Ids]:
        """What the model reads and what it is to answer, of source_lengths and target_lengths. An
        objective that draws draws anew in each epoch; the lengths stay."""
        return self.source(row), self.target(row)

    def statistics(self) -> dict[str, dict[str, int]]:
        return {
            domain: {
                "rows": len(rows),
                "source_tokens": int(self.source_lengths[rows].sum()),
                "target_tokens": int(self.target_lengths[rows].sum()),
                "dropped_as_too_long": self.dropped[domain],
            }
            for domain, rows in self.rows_of.items()
        }


@dataclass
class Batch:
    """source: int64 [B, S] padded with PAD, lengths: int64 [B], target: int64 [B, T] padded with
    PAD. S is 0 for a language model."""

    source: Tensor
    lengths: Tensor
    target: Tensor

    def previous(self) -> Tensor:
        """The decoder's input: the target shifted right behind the end token."""
        return torch.cat([torch.full_like(self.target[:, :1], EOS), self.target[:, :-1]], dim=1)

    def to(self, device: torch.device) -> Batch:
        return Batch(self.source.to(device), self.lengths.to(device), self.target.to(device))


def make_batch(corpus: PairDataset, rows: Ids, epoch: int = 0) -> Batch:
    lengths = corpus.source_lengths[rows]
    source = numpy.full((len(rows), lengths.max()), PAD, dtype=numpy.int64)
    target = numpy.full((len(rows), corpus.target_lengths[rows].max()), PAD, dtype=numpy.int64)
    for i, row in enumerate(rows):
        given, wanted = corpus.pair(int(row), epoch)
        source[i, : lengths[i]] = given
        target[i, : corpus.target_lengths[row]] = wanted
    return Batch(torch.from_numpy(source), torch.from_numpy(lengths), torch.from_numpy(target))


def epoch_rows(corpus: PairDataset, shares: dict[str, float], rng: numpy.random.Generator) -> Ids:
    """The rows of one epoch: of each domain its share, whole repeats first, then a random part."""
    parts = []
    for domain, rows in corpus.rows_of.items():
        share = shares.get(domain, 1.0)
        whole, part = int(share), round((share - int(share)) * len(rows))
        parts += [rows] * whole + [rng.permutation(rows)[:part]]
    return numpy.concatenate(parts)


def batches(corpus: PairDataset, rows: Ids, target_tokens: int, source_tokens: int) -> list[Ids]:
    """Cuts rows, already in order of length, into batches whose padded sizes stay within the two
    limits.

    A row that alone is longer than a limit is a batch of its own.
    """
    result, begin, longest_source, longest_target = [], 0, 0, 0
    for i, row in enumerate(rows):
        source = max(longest_source, int(corpus.source_lengths[row]))
        target = max(longest_target, int(corpus.target_lengths[row]))
        count = i - begin + 1
        if count > 1 and (source * count > source_tokens or target * count > target_tokens):
            result.append(rows[begin:i])
            begin, source, target = (
                i,
                int(corpus.source_lengths[row]),
                int(corpus.target_lengths[row]),
            )
        longest_source, longest_target = source, target
    if begin < len(rows):
        result.append(rows[begin:])
    return result


def epoch_batches(
    corpus: PairDataset,
    shares: dict[str, float],
    seed: int,
    epoch: int,
    target_tokens: int,
    source_tokens: int,
) -> list[Ids]:
    """The batches of an epoch, in the order of training: like lengths together, the batches
    shuffled."""
    rng = numpy.random.default_rng([seed, epoch])
    rows = epoch_rows(corpus, shares, rng)
    rng.shuffle(rows)  # so that rows of one length meet other company in each epoch
    if source_tokens >= 4 * target_tokens:  # sources are the long side
        keys = (corpus.target_lengths[rows] // 4, corpus.source_lengths[rows])
    else:
        keys = (corpus.source_lengths[rows] // 2, corpus.target_lengths[rows])
    result = batches(corpus, rows[numpy.lexsort(keys)], target_tokens, source_tokens)
    order = rng.permutation(len(result))
    return [result[i] for i in order]


def training_pairs(
    folder: Path, config: DataConfig, seed: int, reading: Reading | None = None
) -> list[Pair]:
    """The rows to train on, of the domains that the recipe names, varied as it says."""
    pairs = read_split(folder, config, "train", config.domains, reading or Reading())
    return labelled(augmented(pairs, config, seed), config)


def validation_pairs(
    folder: Path, config: DataConfig, reading: Reading | None = None
) -> list[Pair]:
    """The rows to validate on, as they are."""
    domains = config.valid_domains or list(config.domains)
    return labelled(read_split(folder, config, "valid", domains, reading or Reading()), config)


def labelled(pairs: list[Pair], config: DataConfig) -> list[Pair]:
    """Where the recipe asks for labels, each row's domain in the place of its target."""
    if config.target_column == "target":
        return pairs
    return [Pair(pair.source, pair.domain, pair.domain) for pair in pairs]


def sequential_batches(
    corpus: PairDataset, target_tokens: int, source_tokens: int
) -> Iterator[tuple[Ids, Batch]]:
    """All rows once, in order of length: for validation."""
    rows = numpy.lexsort((corpus.source_lengths, corpus.target_lengths))
    for part in batches(corpus, rows, target_tokens, source_tokens):
        yield part, make_batch(corpus, part)
