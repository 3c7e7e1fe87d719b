"""Datasets of token ids in memory, and batches of rows of similar length.

The batches of an epoch depend on (seed, epoch) alone, so the epoch and the number of the next batch
suffice to resume a training.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import sentencepiece
import torch
from torch import Tensor

from linnet_model.data.augment import augmented
from linnet_model.data_config import ADDED_BY, DataConfig
from linnet_model.network.encoder_decoder import EOS, PAD
from linnet_model.styles import ADDED, style_ids, style_of
from linnet_model.text_files import DataError, Pair, Reading, read_split

Ids = numpy.ndarray  # int32 or int64, one dimension


class PairDataset:
    """Token ids of all rows in two flat arrays; `pair` returns the source and target of a row."""

    def __init__(
        self,
        pairs: list[Pair],
        tokenizer: sentencepiece.SentencePieceProcessor,
        config: DataConfig,
        rng: random.Random | None = None,
    ):
        """`rng` draws the sources that are cut to short_tokens; without it none is cut."""
        self.dropped: Counter[str] = Counter()
        self.domains: list[str] = []
        sources: list[Ids] = []
        targets: list[Ids] = []
        # A piece has at most 16 characters, so later characters cannot reach the kept tokens.
        longest = config.max_source_tokens
        maximum = 16 * longest if config.cut_source else None
        marks = style_ids(tokenizer, config.styles)
        for begin in range(0, len(pairs), 10_000):
            part = pairs[begin : begin + 10_000]
            for pair, source, target in zip(
                part,
                tokenizer.encode([p.source[:maximum] for p in part]),
                tokenizer.encode([p.target for p in part]),
                strict=True,
            ):
                if config.styles:
                    source = [marks[style_of(config.styles, pair.domain)], *source]
                if config.cut_source:
                    short = (
                        rng is not None
                        and pair.domain not in ADDED  # whose targets are anywhere in the source
                        and rng.random() < config.short_share
                    )
                    kept = source[: (min(config.short_tokens, longest) if short else longest) - 1]
                    if len(kept) < len(source) and pair.domain in ADDED:
                        self.dropped[pair.domain] += 1  # its target may be in what was cut
                        continue
                    source = kept
                if len(source) >= longest or len(target) >= config.max_target_tokens:
                    self.dropped[pair.domain] += 1
                    continue
                sources.append(numpy.array([*source, EOS], dtype=numpy.int32))
                targets.append(numpy.array([*target, EOS], dtype=numpy.int32))
                self.domains.append(pair.domain)
        for domain in sorted(self.dropped.keys() - set(self.domains)):
            raise DataError(
                f"none of the {self.dropped[domain]} rows of {domain} is shorter than {longest} "
                f"source and {config.max_target_tokens} target tokens: raise "
                "data.max_source_tokens or data.max_target_tokens, or "
                + (
                    f"set data.{ADDED_BY[domain]} to 0"
                    if domain in ADDED_BY
                    else "leave the domain out"
                )
            )
        self.keep(sources, targets)

    def keep(self, sources: list[Ids], targets: list[Ids]) -> None:
        """Stores the ids of all rows in flat arrays. Requires `domains`."""
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
        """Returns source and target of a row; random ones depend on the epoch. The batches of an
        epoch are cut by source_lengths and target_lengths."""
        return self.source(row), self.target(row)

    def sha256(self) -> str:
        """Returns a digest of the token ids, by which texts with equal statistics differ."""
        digest = hashlib.sha256(self.source_ids.data)
        digest.update(self.target_ids.data)
        return digest.hexdigest()

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
    PAD. S is 0 for a language model.

    inside: int64, the flat positions of the target's tokens; padded: whether a source is padded.
    Both are known where the batch is made: to read them from a GPU would wait for it."""

    source: Tensor
    lengths: Tensor
    target: Tensor
    inside: Tensor
    padded: bool

    def previous(self) -> Tensor:
        """Returns the decoder's input: the end token and the target without its last token."""
        return torch.cat([torch.full_like(self.target[:, :1], EOS), self.target[:, :-1]], dim=1)

    def to(self, device: torch.device) -> Batch:
        """Does not wait for a GPU if the batch is pinned."""
        return self.moved(lambda part: part.to(device, non_blocking=True))

    def pinned(self) -> Batch:
        """Returns the batch in memory from which a GPU copies by itself."""
        return self.moved(Tensor.pin_memory)

    def moved(self, move: Callable[[Tensor], Tensor]) -> Batch:
        source, lengths, target = move(self.source), move(self.lengths), move(self.target)
        return Batch(source, lengths, target, move(self.inside), self.padded)


def make_batch(dataset: PairDataset, rows: Ids, epoch: int = 0) -> Batch:
    pairs = [dataset.pair(int(row), epoch) for row in rows]
    source, target = (padded([pair[side] for pair in pairs]) for side in (0, 1))
    lengths = [len(source) for source, _ in pairs]
    inside = torch.from_numpy(numpy.flatnonzero(target.numpy() != PAD))
    return Batch(source, torch.tensor(lengths), target, inside, min(lengths) < max(lengths))


def padded(rows: list[Ids]) -> Tensor:
    """Returns int64 [len(rows), longest], padded with PAD."""
    values = numpy.full((len(rows), max(map(len, rows))), PAD, dtype=numpy.int64)
    for value, row in zip(values, rows, strict=True):
        value[: len(row)] = row
    return torch.from_numpy(values)


def epoch_rows(dataset: PairDataset, shares: dict[str, float], rng: numpy.random.Generator) -> Ids:
    """Returns the rows of one epoch: each domain repeated by the whole part of its share, and a
    random sample for the rest."""
    parts = []
    for domain, rows in dataset.rows_of.items():
        share = shares.get(domain, 1.0)
        whole, part = int(share), round((share - int(share)) * len(rows))
        parts += [rows] * whole + [rng.permutation(rows)[:part]]
    if sum(map(len, parts)) == 0:
        raise DataError(
            f"the shares of data.domains leave none of {len(dataset)} rows in an epoch, raise one"
        )
    return numpy.concatenate(parts)


def batches(dataset: PairDataset, rows: Ids, target_tokens: int, source_tokens: int) -> list[Ids]:
    """Cuts rows, sorted by length, into batches whose padded sizes stay within the two limits.

    A row longer than a limit is a batch of its own.
    """
    result, begin, longest_source, longest_target = [], 0, 0, 0
    for i, row in enumerate(rows):
        source = max(longest_source, int(dataset.source_lengths[row]))
        target = max(longest_target, int(dataset.target_lengths[row]))
        count = i - begin + 1
        if count > 1 and (source * count > source_tokens or target * count > target_tokens):
            result.append(rows[begin:i])
            begin, source, target = (
                i,
                int(dataset.source_lengths[row]),
                int(dataset.target_lengths[row]),
            )
        longest_source, longest_target = source, target
    if begin < len(rows):
        result.append(rows[begin:])
    return result


def epoch_batches(
    dataset: PairDataset,
    shares: dict[str, float],
    seed: int,
    epoch: int,
    target_tokens: int,
    source_tokens: int,
) -> list[Ids]:
    """Returns the batches of an epoch in training order: rows of similar length together, the
    batches shuffled."""
    rng = numpy.random.default_rng([seed, epoch])
    rows = epoch_rows(dataset, shares, rng)
    rng.shuffle(rows)  # rows of equal length are batched differently in each epoch
    if source_tokens >= 4 * target_tokens:  # sources are longer than targets
        keys = (dataset.target_lengths[rows] // 4, dataset.source_lengths[rows])
    else:
        keys = (dataset.source_lengths[rows] // 2, dataset.target_lengths[rows])
    result = batches(dataset, rows[numpy.lexsort(keys)], target_tokens, source_tokens)
    order = rng.permutation(len(result))
    return [result[i] for i in order]


def training_pairs(
    folder: Path, config: DataConfig, seed: int, reading: Reading | None = None
) -> list[Pair]:
    """Reads the training rows of the recipe's domains and augments them."""
    pairs = read_split(folder, config, "train", config.domains, reading or Reading())
    pairs = augmented(pairs, config, seed)
    return labelled(pairs, config)


def validation_pairs(
    folder: Path, config: DataConfig, reading: Reading | None = None
) -> list[Pair]:
    """Reads the validation rows, without augmentation."""
    domains = config.valid_domains or list(config.domains)
    return labelled(read_split(folder, config, "valid", domains, reading or Reading()), config)


def labelled(pairs: list[Pair], config: DataConfig) -> list[Pair]:
    """Replaces each target by the row's domain if the recipe trains a classifier."""
    if config.target_column == "target":
        return pairs
    return [Pair(pair.source, pair.domain, pair.domain) for pair in pairs]


def sequential_batches(
    dataset: PairDataset, target_tokens: int, source_tokens: int
) -> Iterator[tuple[Ids, Batch]]:
    """Yields all rows once in batches, sorted by length, for validation."""
    rows = numpy.lexsort((dataset.source_lengths, dataset.target_lengths))
    for part in batches(dataset, rows, target_tokens, source_tokens):
        yield part, make_batch(dataset, part)
