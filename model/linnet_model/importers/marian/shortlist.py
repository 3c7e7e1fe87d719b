"""Reads the lexical shortlist of a Firefox model, lex.*.s2t.bin.

    u64 magic, checksum, first, best, W, S;  u64 offset[W];  u32 target[S]

The target tokens 0 … first - 1 are candidates of every source, target[offset[s]] … of source token
s. W is the source vocabulary and one more; all numbers are little-endian. Marian fills a source's
candidates up to a multiple of 8 with further ids, for its products; these are left out.

Source: src/data/shortlist.{h,cpp} of browsermt/marian-dev.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linnet_model.importers.marian.binary import Bytes
from linnet_model.network.model_config import require

MAGIC = 0xF11A48D5013417F5
HEADER = 6  # numbers of 8 bytes
MASK = 2**64 - 1


@dataclass
class LexicalShortlist:
    first: int
    candidates: list[list[int]]  # of each source token


def checksum(content: bytes) -> int:
    """Hashes the 64-bit words behind the checksum itself; a last half word is left out."""
    words = content[16:]
    seed = 0
    for word in np.frombuffer(words, "<u8", len(words) // 8).tolist():
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & MASK
    return seed


def is_shortlist(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(8) == MAGIC.to_bytes(8, "little")


def read_shortlist(file: Path, source_tokens: int, target_tokens: int) -> LexicalShortlist:
    """Reads and checks the file of a model with such vocabularies."""
    content = file.read_bytes()
    read = Bytes(file, content)
    magic, found, first, _best, width, size = read.numbers("Q", HEADER, "its header")
    require(magic == MAGIC, f"{file} is no shortlist: it begins with {magic:#x}")
    require(
        width == source_tokens + 1,
        f"{file} has {width - 1} source tokens, the vocabulary has {source_tokens}",
    )
    require(
        first <= target_tokens,
        f"{file} gives every source {first} candidates, the vocabulary has {target_tokens} tokens",
    )
    require(
        len(content) == 8 * (HEADER + width) + 4 * size,
        f"{file} has {len(content)} bytes, {width} offsets and {size} candidates need "
        f"{8 * (HEADER + width) + 4 * size}",
    )
    computed = checksum(content)
    require(
        computed == found,
        f"{file} has the checksum {found:#x}, its content {computed:#x}: it is damaged",
    )
    offsets = np.frombuffer(read.take(8 * width, "its offsets"), "<u8")
    require(
        int(offsets[0]) == 0
        and int(offsets[-1]) == size
        and bool((offsets[:-1] <= offsets[1:]).all()),
        f"{file} has offsets that do not ascend from 0 to {size}",
    )
    targets = np.frombuffer(read.take(4 * size, "its candidates"), "<u4")
    highest = int(targets.max(initial=0))
    require(
        highest < target_tokens,
        f"{file} has the target token {highest}, the vocabulary has {target_tokens}",
    )
    bounds = offsets.tolist()
    return LexicalShortlist(
        first,
        [targets[a:b].tolist() for a, b in itertools.pairwise(bounds)],
    )
