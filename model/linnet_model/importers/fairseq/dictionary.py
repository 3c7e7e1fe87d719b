"""fairseq's dictionaries: each line has a symbol and its count; ids start at 4.

Ids 0 to 3 are <s>, <pad>, </s> and <unk>. fairseq-preprocess pads to a multiple of 8 with symbols
madeupword0000 and so on. A line that ends in #fairseq:overwrite gives an existing symbol a new id;
no text encodes to the old id then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linnet_model.network.model_config import ConfigError, require

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
OVERWRITE = "#fairseq:overwrite"


@dataclass
class Dictionary:
    symbols: list[str]  # by id; the special ones first
    indices: dict[str, int]  # of a repeated symbol, the last id

    def pieces(self) -> list[str]:
        """Returns the symbols by id for a tokenizer; overwritten ids have the empty string."""
        return [
            symbol if self.indices[symbol] == i else "" for i, symbol in enumerate(self.symbols)
        ]


def read_dictionary(path: Path) -> Dictionary:
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no dictionary at {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: {error}") from None
    symbols, indices = list(SPECIAL), {symbol: i for i, symbol in enumerate(SPECIAL)}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        symbol, _, count = line.rstrip().rpartition(" ")
        overwrite = count == OVERWRITE
        if overwrite:
            symbol, _, count = symbol.rpartition(" ")
        require(
            count.isdecimal() and symbol != "",
            f"{path}:{number} is {line!r}, expected a symbol, a space and its count",
        )
        require(
            overwrite or symbol not in indices,
            f"{path}:{number} has {symbol!r} a second time, without {OVERWRITE}",
        )
        indices[symbol] = len(symbols)
        symbols.append(symbol)
    return Dictionary(symbols, indices)


def dictionary_bytes(symbols: Iterable[str]) -> bytes:
    """Returns the file of symbols, by id and the special ones first; empty ones become fillers.
    Counts decrease with the ids, because fairseq sorts by them."""
    ordinary = list(symbols)[len(SPECIAL) :]
    fillers = (f"madeupword{i:04d}" for i in itertools.count())
    seen = {*SPECIAL, *ordinary}
    twice = set(SPECIAL)
    lines = []
    for i, symbol in enumerate(ordinary):
        name = symbol or next(filler for filler in fillers if filler not in seen)
        flag = f" {OVERWRITE}" if name in twice else ""
        twice.add(name)
        lines.append(f"{name} {len(ordinary) - i}{flag}\n")
    return "".join(lines).encode()
