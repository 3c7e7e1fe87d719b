"""Pairs of text on disk, token ids in memory, batches of like length.

A file holds one pair a line: source TAB target TAB domain, UTF-8, plain or xz. The batches of an
epoch follow from (seed, epoch) alone, so a training is resumed by the numbers of its epoch and its
next batch.
"""

from __future__ import annotations

import io
import lzma
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import sentencepiece
import torch
from torch import Tensor

from linnet_model.augment import copied_pairs, varied
from linnet_model.config import DataConfig
from linnet_model.transducer import EOS, PAD

# What UTF-8 read as Latin-1 or Windows-1252 and written again looks like, and what could not be
# decoded at all.
MOJIBAKE = ("\ufffd", "Ã¤", "Ã¶", "Ã¼", "ÃŸ", "Ã©", "â€™", "â€œ", "â€“", "Â ")


class DataError(ValueError):
    """A data file is not as it should be; the message names file, line and what was expected."""


@dataclass(frozen=True)
class Pair:
    source: str
    target: str
    domain: str


def open_text(path: Path) -> io.TextIOBase:
    if not path.is_file():
        raise DataError(f"no file {path}")
    binary = lzma.open(path) if path.suffix == ".xz" else path.open("rb")  # noqa: SIM115
    return io.TextIOWrapper(binary, encoding="utf-8", newline="\n")


def read_pairs(path: Path, domains: Iterable[str] | None = None) -> list[Pair]:
    """All pairs of a file, or those of some domains. The first bad line is an error."""
    wanted = None if domains is None else set(domains)
    pairs = []
    with open_text(Path(path)) as lines:
        try:
            for number, line in enumerate(lines, 1):
                pair = parse_pair(line.rstrip("\n"), f"{path}:{number}")
                if wanted is None or pair.domain in wanted:
                    pairs.append(pair)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path} is not UTF-8: {error.reason} at byte {error.start} of a piece"
            ) from None
        except (lzma.LZMAError, EOFError) as error:
            raise DataError(f"{path} is not a whole xz file: {error}") from None
    if wanted is not None:
        missing = wanted - {pair.domain for pair in pairs}
        if missing:
            raise DataError(f"{path} has no rows of {', '.join(sorted(missing))}")
    return pairs


def parse_pair(line: str, where: str) -> Pair:
    columns = line.split("\t")
    if len(columns) != 3:
        raise DataError(
            f"{where} has {len(columns)} columns, expected source, target and domain with tabs "
            "between"
        )
    for name, column in zip(("source", "target", "domain"), columns, strict=True):
        if not column.strip():
            raise DataError(f"{where} has an empty {name}")
        for sign in MOJIBAKE:
            if sign in column:
                raise DataError(
                    f"{where} has {sign!r} in its {name}, text decoded with the wrong encoding"
                )
    return Pair(*columns)


class Corpus:
    """Token ids of all pairs, in two flat arrays."""

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
        sources, targets = [], []
        # A piece has at most 16 characters: what follows would be cut off after it was tokenised.
        longest = config.max_source_tokens
        most = 16 * longest if config.cut_source else None
        for begin in range(0, len(pairs), 10_000):
            part = pairs[begin : begin + 10_000]
            for pair, source, target in zip(
                part,
                tokenizer.encode([p.source[:most] for p in part]),
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
        self.source_lengths = numpy.array([len(s) for s in sources])
        self.target_lengths = numpy.array([len(t) for t in targets])
        self.source_begins = numpy.concatenate([[0], numpy.cumsum(self.source_lengths)])
        self.target_begins = numpy.concatenate([[0], numpy.cumsum(self.target_lengths)])
        self.source_ids = numpy.concatenate(sources)
        self.target_ids = numpy.concatenate(targets)
        self.rows_of: dict[str, numpy.ndarray] = {
            domain: numpy.array([i for i, d in enumerate(self.domains) if d == domain])
            for domain in sorted(set(self.domains))
        }

    def __len__(self) -> int:
        return len(self.domains)

    def source(self, row: int) -> numpy.ndarray:
        return self.source_ids[self.source_begins[row] : self.source_begins[row + 1]]

    def target(self, row: int) -> numpy.ndarray:
        return self.target_ids[self.target_begins[row] : self.target_begins[row + 1]]

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
    PAD."""

    source: Tensor
    lengths: Tensor
    target: Tensor

    def previous(self) -> Tensor:
        """The decoder's input: the target shifted right behind the end token."""
        return torch.cat([torch.full_like(self.target[:, :1], EOS), self.target[:, :-1]], dim=1)

    def to(self, device: torch.device) -> Batch:
        return Batch(self.source.to(device), self.lengths.to(device), self.target.to(device))


def make_batch(corpus: Corpus, rows: numpy.ndarray) -> Batch:
    lengths = corpus.source_lengths[rows]
    source = numpy.full((len(rows), lengths.max()), PAD, dtype=numpy.int64)
    target = numpy.full((len(rows), corpus.target_lengths[rows].max()), PAD, dtype=numpy.int64)
    for i, row in enumerate(rows):
        source[i, : lengths[i]] = corpus.source(row)
        target[i, : corpus.target_lengths[row]] = corpus.target(row)
    return Batch(torch.from_numpy(source), torch.from_numpy(lengths), torch.from_numpy(target))


def epoch_rows(
    corpus: Corpus, shares: dict[str, float], rng: numpy.random.Generator
) -> numpy.ndarray:
    """The rows of one epoch: of each domain its share, whole repeats first, then a random part."""
    parts = []
    for domain, rows in corpus.rows_of.items():
        share = shares.get(domain, 1.0)
        whole, part = int(share), round((share - int(share)) * len(rows))
        parts += [rows] * whole + [rng.permutation(rows)[:part]]
    return numpy.concatenate(parts)


def batches(
    corpus: Corpus, rows: numpy.ndarray, target_tokens: int, source_tokens: int
) -> list[numpy.ndarray]:
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
    corpus: Corpus,
    shares: dict[str, float],
    seed: int,
    epoch: int,
    target_tokens: int,
    source_tokens: int,
) -> list[numpy.ndarray]:
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


def training_pairs(path: Path, config: DataConfig, seed: int) -> list[Pair]:
    """The pairs of the domains that the recipe names, varied and with copies added as it says."""
    pairs = read_pairs(path, config.domains)
    rng = random.Random(seed)
    pairs = [Pair(*varied(p.source, p.target, config, rng), p.domain) for p in pairs]
    copies = copied_pairs(round(len(pairs) * config.copy_share), rng)
    echoes = rng.sample(pairs, round(len(pairs) * config.echo_share))
    return [
        *pairs,
        *(Pair(source, target, "copies") for source, target in copies),
        *(Pair(pair.target, pair.target, "echoes") for pair in echoes),
    ]


def sequential_batches(
    corpus: Corpus, target_tokens: int, source_tokens: int
) -> Iterator[tuple[numpy.ndarray, Batch]]:
    """All rows once, in order of length: for validation."""
    rows = numpy.lexsort((corpus.source_lengths, corpus.target_lengths))
    for part in batches(corpus, rows, target_tokens, source_tokens):
        yield part, make_batch(corpus, part)
