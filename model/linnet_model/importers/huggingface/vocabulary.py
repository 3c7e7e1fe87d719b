"""Reads the vocabulary of a folder of transformers (vocab.json)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from linnet_model.importers.huggingface.config import TOKENIZER, required_json
from linnet_model.network.model_config import require

ADDED, FAST = "added_tokens.json", "tokenizer.json"


def read_vocabulary(file: Path, rows: int) -> list[str]:
    """Returns the pieces in the order of their ids, which must be 0, 1, 2 … without a gap."""
    return numbered(file, required_json(file), rows)


def numbered(file: Path, table: Mapping[str, Any], rows: int) -> list[str]:
    """Returns the pieces of a table of ids by piece, in their order."""
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


def tokenizer_table(folder: Path) -> dict[str, Any]:
    """Returns the settings of the tokenizer; none if the folder has no file of them."""
    return required_json(folder / TOKENIZER) if (folder / TOKENIZER).is_file() else {}


def name_of(token: Any) -> str:
    """A token is a string, or a table with its content."""
    return token if isinstance(token, str) else str(token.get("content", ""))


def added_tokens(folder: Path, tokenizer: dict[str, Any]) -> dict[str, int]:
    """Returns the tokens beside the vocabulary with the ids that the first file with any gives
    them; none if no file does."""
    found: list[tuple[Any, Any]] = []
    table = tokenizer.get("added_tokens_decoder")
    if isinstance(table, dict) and table:
        file = folder / TOKENIZER
        found = [(token, int(i) if i.isdecimal() else i) for i, token in table.items()]
    elif (folder / ADDED).is_file():
        file = folder / ADDED
        found = list(required_json(file).items())
    elif (folder / FAST).is_file():
        file = folder / FAST
        listed = required_json(file).get("added_tokens")
        require(
            isinstance(listed, list) and all(isinstance(token, dict) for token in listed),
            f"{file} has no list added_tokens",
        )
        found = [(token, token.get("id")) for token in listed or []]
    else:
        return {}
    for token, number in found:
        require(
            isinstance(token, str | dict) and type(number) is int,
            f"{file} has an added token without an id, or with {number!r} for one",
        )
    return {name_of(token): number for token, number in found}


def refuse_added(
    folder: Path,
    tokenizer: dict[str, Any],
    known: Mapping[str, int],
    anywhere: Collection[str] = (),
) -> None:
    """Refuses tokens that were added to a tokenizer: text would be split at them. `known` are those
    of the model with their ids; those of `anywhere` may have any."""
    for name, number in added_tokens(folder, tokenizer).items():
        require(
            known.get(name) == number or name in anywhere,
            f"{folder} has the added token {name!r} with the id {number}, which is none of the "
            "special tokens of such a model; added tokens are not supported",
        )


def some(tags: Iterable[str]) -> str:
    known = sorted(tags)
    return ", ".join(known[:8]) + " …" * (len(known) > 8)
