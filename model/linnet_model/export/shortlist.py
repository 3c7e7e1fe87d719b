"""linnet-shortlist: learns candidate target tokens for each source token from pairs of texts, and
adds them to a bundle.

The table of IBM model 1 (Brown et al. 1993, The Mathematics of Statistical Machine Translation,
section 4.2) is estimated over the bundle's tokens. Each source token keeps its most likely target
tokens and, if both sides share a vocabulary, itself, so that names can be copied. The most frequent
target tokens are candidates in every target. The engine uses the file with --shortlist true, and
without that setting if the bundle says so (--by-default). The bundle is replaced by a copy that has
the shortlist: sign its manifest again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet_model.bundle import (
    SIGNATURE,
    add_shortlist,
    new_bundle,
    print_files,
    read_manifest,
    trained_in_reverse,
)
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.text_files import Pair, read_pairs
from linnet_model.tokenizer import load_tokenizer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ids = Sequence[int]


def token_pairs(pairs: Sequence[tuple[Ids, Ids]], targets: int) -> tuple[Ints, Ints]:
    """Pairs every source token with every target token of its text pair. Returns the keys source *
    targets + target, and the index of the target token over all texts."""
    keys, positions, position = [], [], 0
    for source, target in pairs:
        s, t = np.asarray(source, np.int64), np.asarray(target, np.int64)
        keys.append((s[:, None] * targets + t[None, :]).ravel())
        positions.append(np.tile(np.arange(position, position + len(t)), len(s)))
        position += len(t)
    return np.concatenate(keys), np.concatenate(positions)


def model_one(
    pairs: Sequence[tuple[Ids, Ids]], targets: int, rounds: int
) -> tuple[Ints, Ints, Floats]:
    """Returns source tokens, target tokens and p(target | source) of all that occur in one pair,
    after `rounds` of expectation maximisation. No pair may be empty."""
    keys, positions = token_pairs(pairs, targets)
    known, at = np.unique(keys, return_inverse=True)
    del keys
    sources, found = known // targets, known % targets
    table = np.ones(len(known))
    for _ in range(rounds):
        shares = table[at]
        shares /= np.bincount(positions, weights=shares)[positions]
        counts = np.bincount(at, weights=shares, minlength=len(known))
        table = counts / np.bincount(sources, weights=counts)[sources]
    return sources, found, table


def candidates(
    table: tuple[Ints, Ints, Floats], maximum: int, min_probability: float
) -> dict[int, list[int]]:
    """Returns for each source token its most likely target tokens, at most `maximum`, each with at
    least `min_probability`."""
    sources, targets, probabilities = table
    kept = probabilities >= min_probability
    sources, targets, probabilities = sources[kept], targets[kept], probabilities[kept]
    order = np.lexsort((targets, -probabilities, sources))
    chosen: dict[int, list[int]] = {}
    for source, target in zip(sources[order].tolist(), targets[order].tolist(), strict=True):
        row = chosen.setdefault(source, [])
        if len(row) < maximum:
            row.append(target)
    return chosen


def frequent(targets: Sequence[Ids], count: int, vocabulary: int) -> list[int]:
    """Returns the `count` most frequent target tokens; of equally frequent ones the lower id."""
    times = np.bincount(np.concatenate([np.asarray(t, np.int64) for t in targets]),
                        minlength=vocabulary)  # fmt: skip
    order = np.lexsort((np.arange(vocabulary), -times))[:count]
    return sorted(int(token) for token in order if times[token] > 0)


def encoders(folder: Path, manifest: dict[str, Any]) -> tuple[Callable[[str], Ids], ...]:
    """Returns the functions that encode sources and targets of the bundle."""
    if not manifest.get("source_tokenizer_file"):
        raise ConfigError(f"{folder} has no tokenizer, a shortlist needs one")
    for key in ("source_vocabulary_file", "word_tokenizer", "subword_kind"):
        if manifest.get(key):
            raise ConfigError(
                f"{folder} has a {key}, shortlists need a SentencePiece model with its own ids"
            )
    mark = manifest.get("capitals_mark", "")
    names = (manifest["source_tokenizer_file"], manifest["target_tokenizer_file"])
    tokenizers = [load_tokenizer(folder / name, mark) for name in names]
    return tuple(tokenizer.encode for tokenizer in tokenizers)


def is_ensemble(model_file: Path) -> bool:
    """Returns whether a TorchScript module is an ensemble, by the code in its archive: to load it
    would take the memory of all its members."""
    with zipfile.ZipFile(model_file) as archive:
        return any("/linnet_model/network/ensemble" in name for name in archive.namelist())


def read_rows(files: Sequence[Path], maximum: int) -> list[Pair]:
    """Returns at most `maximum` rows, evenly spaced. Rows with encoding errors are left out."""
    rows = [row for file in files for row in read_pairs(file, mojibake="drop", empty="drop")]
    chosen = np.linspace(0, len(rows), min(maximum, len(rows)), endpoint=False)
    return [rows[int(i)] for i in chosen]


def learn(
    folder: Path, rows: Sequence[Pair], max_tokens: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Learns the shortlist of a bundle from the pairs that have at most `max_tokens` per side."""
    manifest = read_manifest(folder)
    if is_ensemble(folder / manifest["model_file"]):
        raise ConfigError(f"{folder} is an ensemble, which has no shortlists")
    encode_source, encode_target = encoders(folder, manifest)
    eos, size = manifest["vocabulary"]["eos_id"], manifest["vocabulary"]["size"]
    reverse = options.reverse
    if reverse is None:
        reverse = trained_in_reverse(folder)
    pairs = []
    for row in rows:
        texts = (row.target, row.source) if reverse else (row.source, row.target)
        source, target = [*encode_source(texts[0]), eos], encode_target(texts[1])
        if len(source) <= max_tokens and 0 < len(target) <= max_tokens:
            pairs.append((source, target))
    if not pairs:
        raise ConfigError(f"none of {len(rows)} pairs has at most {max_tokens} tokens per side")
    always = frequent([target for _, target in pairs], options.frequent, size)
    chosen = candidates(
        model_one(pairs, size, options.rounds), options.candidates, options.probability
    )
    if manifest["source_tokenizer_file"] == manifest["target_tokenizer_file"]:
        for token in range(size):
            chosen[token] = list(dict.fromkeys([*chosen.get(token, []), token]))
    with new_bundle(folder, replace=True) as partial:
        left_out = shutil.ignore_patterns(SIGNATURE)
        shutil.copytree(folder, partial, ignore=left_out, dirs_exist_ok=True)
        return add_shortlist(partial, always, chosen, by_default=options.by_default)


def probability(text: str) -> float:
    """The type of an argument from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:  # a NaN is not between
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--bundle", type=Path, required=True, metavar="DIR", help="folder of the bundle, replaced")
    add("--pairs", type=Path, required=True, action="append", metavar="FILE",
        help="a .tsv of source, target and domain, plain or compressed (repeatable)")  # fmt: skip
    add("--reverse", action=argparse.BooleanOptionalAction,
        help="the second column is the source [data.reverse of its training]")  # fmt: skip
    add("--by-default", action=argparse.BooleanOptionalAction,
        help="searches use it unless a setting says otherwise [what the bundle says]")  # fmt: skip
    add("--sentences", type=count_from(1), default=100_000, metavar="N",
        help="max pairs used, evenly spaced; 100,000 pairs of 25 tokens take 3 GB of memory "
        "[%(default)s]")  # fmt: skip
    add("--tokens", type=count_from(1), default=60, metavar="N",
        help="max tokens of a side; longer pairs are left out [%(default)s]")  # fmt: skip
    add("--rounds", type=count_from(1), default=4, metavar="N",
        help="rounds of expectation maximisation [%(default)s]")  # fmt: skip
    add("--candidates", type=count_from(0), default=50, metavar="N",
        help="max candidates of a source token [%(default)s]")  # fmt: skip
    add("--probability", type=probability, default=0.001, metavar="P",
        help="min probability of a candidate [%(default)s]")  # fmt: skip
    add("--frequent", type=count_from(0), default=200, metavar="N",
        help="frequent target tokens that are always candidates [%(default)s]")  # fmt: skip
    options = parser.parse_args(arguments)
    rows = read_rows(options.pairs, options.sentences)
    manifest = learn(options.bundle, rows, options.tokens, options)
    print_files(manifest)


if __name__ == "__main__":
    sys.exit(main())
