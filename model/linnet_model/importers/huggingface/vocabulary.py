"""Reads the vocabulary of a folder of transformers (vocab.json)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from linnet_model.importers.huggingface.config import read_json
from linnet_model.network.model_config import require


def read_vocabulary(file: Path, rows: int) -> list[str]:
    """Returns the pieces in the order of their ids, which must be 0, 1, 2 … without a gap."""
    table = read_json(file)
    pieces: list[str | None] = [None] * len(table)
    for piece, number in table.items():
        require(
            type(number) is int and number >= 0,
            f"{file} gives {piece!r} the id {number!r}, ids are integers from 0",
        )
        require(
            "\n" not in piece,
            f"{file} has the piece {piece!r}, pieces must not contain line breaks",
        )
        require(
            number < len(pieces),
            f"{file} gives {piece!r} the id {number} among {len(pieces)} pieces, ids must be dense",
        )
        require(
            pieces[number] is None,
            f"{file} gives {piece!r} and {pieces[number]!r} the same id {number}",
        )
        pieces[number] = piece
    require(len(pieces) <= rows, f"{file} has {len(pieces)} pieces, the model's table {rows} rows")
    return [piece for piece in pieces if piece is not None]


def some(tags: Iterable[str]) -> str:
    known = sorted(tags)
    return ", ".join(known[:8]) + " …" * (len(known) > 8)
