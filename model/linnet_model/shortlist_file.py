"""The shortlist of a bundle on disk: the target tokens that each source token can become.

model/runtime/search/shortlist.h has the layout; ids take 2 bytes if there are at most 65,536
target tokens. Bundles of earlier versions have a JSON file with `always`, `counts` and
`candidates`, which is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linnet_model.network.model_config import require

MAGIC = b"LNSHORT1"
HEADER = 4  # numbers of 4 bytes: source tokens, target tokens, always, candidates
NARROW = 1 << 16


@dataclass
class Shortlist:
    always: NDArray[np.int64]  # candidates of every source
    offsets: NDArray[np.int64]  # [source tokens + 1]
    candidates: NDArray[np.int64]  # offsets[s] … offsets[s + 1] - 1 are those of source token s

    @classmethod
    def of_rows(cls, always: Sequence[int], rows: Sequence[Sequence[int]]) -> Shortlist:
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        flat = np.fromiter((t for row in rows for t in row), np.int64, count=int(offsets[-1]))
        return cls(np.asarray(always, np.int64), offsets, flat)

    def row(self, source: int) -> list[int]:
        """Returns the candidates of a source token."""
        row: list[int] = self.candidates[self.offsets[source] : self.offsets[source + 1]].tolist()
        return row


def write_shortlist(file: Path, shortlist: Shortlist, target_tokens: int) -> None:
    for tokens in (shortlist.always, shortlist.candidates):
        wrong = tokens[(tokens < 0) | (tokens >= target_tokens)]
        require(
            len(wrong) == 0,
            f"a shortlist cannot have the target token {wrong[:1]}, there are {target_tokens}",
        )
    sizes = (
        len(shortlist.offsets) - 1,
        target_tokens,
        len(shortlist.always),
        len(shortlist.candidates),
    )
    ids = "<u2" if target_tokens <= NARROW else "<u4"
    file.write_bytes(
        b"".join(
            (
                MAGIC,
                np.asarray(sizes, "<u4").tobytes(),
                shortlist.offsets.astype("<u4").tobytes(),
                shortlist.always.astype(ids).tobytes(),
                shortlist.candidates.astype(ids).tobytes(),
            )
        )
    )


def read_shortlist(file: Path) -> Shortlist:
    content = file.read_bytes()
    if not content.startswith(MAGIC):
        table = json.loads(content)
        return Shortlist(
            np.asarray(table.get("always", []), np.int64),
            np.cumsum([0, *table.get("counts", [])], dtype=np.int64),
            np.asarray(table.get("candidates", []), np.int64),
        )
    begin = len(MAGIC) + 4 * HEADER
    require(len(content) >= begin, f"{file} has {len(content)} bytes, its header needs {begin}")
    header = np.frombuffer(content, "<u4", HEADER, offset=len(MAGIC))
    sources, targets, always, candidates = (int(number) for number in header)
    ids, width = ("<u2", 2) if targets <= NARROW else ("<u4", 4)
    needed = begin + 4 * (sources + 1) + width * (always + candidates)
    require(
        len(content) == needed,
        f"{file} has {len(content)} bytes, its header stands for {needed}: it is damaged",
    )
    offsets = np.frombuffer(content, "<u4", sources + 1, offset=begin)
    tokens = np.frombuffer(content, ids, offset=begin + 4 * (sources + 1)).astype(np.int64)
    return Shortlist(tokens[:always], offsets.astype(np.int64), tokens[always:])
