"""Reads pairs of texts: rows of a .tsv, or the lines of two plain files.

A .tsv holds one pair per line: source TAB target TAB domain, UTF-8, plain or compressed. Errors
name the file and the line. Lines that look like text decoded with the wrong encoding are counted,
left out or refused, as the caller chooses.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from linnet_model.data_config import FILE_ENDINGS, PLAIN_DOMAIN, DataConfig

OPENERS: dict[str, Callable[[Path, str], Any]] = {
    ".xz": lzma.open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
}
BYTE_ORDER_MARK = "\ufeff"
# UTF-8 that was decoded as Windows-1252 (or Latin-1): the first byte of a character of two (C2,
# C3), three (E2) or four bytes (F0) and the bytes that must follow it, all as letters. Other first
# bytes are left out, because their letters precede punctuation in correct texts.
_FOLLOWS = "".join(
    {bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in range(0x80, 0xC0)}
    | {chr(b) for b in range(0x80, 0xC0)}
)
MOJIBAKE = re.compile(
    f"\ufffd|[ÂÃ][{re.escape(_FOLLOWS)}]|â[{re.escape(_FOLLOWS)}]{{2}}|ð[{re.escape(_FOLLOWS)}]{{3}}"
)

SUSPECT = re.compile("[\ufffdÂÃâð]")  # first letters of MOJIBAKE, a faster search


class DataError(ValueError):
    """A data file is invalid; the message names the file, the line and the expected form."""


@dataclass(frozen=True)
class Pair:
    source: str
    target: str
    domain: str


@dataclass
class Reading:
    """Counts of rows that were left out or looked wrong while files were read."""

    empty: int = 0  # rows left out because a side is empty
    mojibake: int = 0  # rows that look as if decoded with the wrong encoding
    first_mojibake: str = ""  # file, line and characters of the first one

    def warnings(self, policy: str) -> list[str]:
        """Returns warnings to print; an empty list if no row was affected."""
        found = []
        if self.empty:
            found.append(f"{self.empty} rows with an empty side were left out")
        if self.mojibake:
            done = "were left out" if policy == "drop" else 'are kept, data.mojibake = "drop" or '
            done += "" if policy == "drop" else '"refuse" would not'
            found.append(
                f"{self.mojibake} rows look like text decoded with the wrong encoding "
                f"(first {self.first_mojibake}) and {done}"
            )
        return found


def open_lines(path: Path) -> IO[bytes]:
    if not path.is_file():
        raise DataError(f"no file {path}")
    lines: IO[bytes] = OPENERS.get(path.suffix, Path.open)(path, "rb")
    return lines


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, without line ends. Only LF or CR LF ends a line; other
    separators belong to the text."""
    path, number = Path(path), 0
    try:
        with open_lines(path) as lines:
            for number, line in enumerate(lines, 1):
                text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
                yield text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number} is not UTF-8: byte 0x{error.object[error.start]:02x} after "
            f"{error.start} bytes of the line ({error.reason}), convert the file with iconv"
        ) from None
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        raise DataError(f"{path} is not a whole {path.suffix[1:]} file: {error}") from None


def read_pairs(
    path: Path | list[Path],
    domains: Iterable[str] | None = None,
    mojibake: str = "refuse",
    empty: str = "refuse",
    reading: Reading | None = None,
) -> list[Pair]:
    """Reads all pairs of one or more .tsv files, or those of `domains`, each of which must have
    rows in one of them."""
    wanted = None if domains is None else set(domains)
    paths = path if isinstance(path, list) else [path]
    reading = reading or Reading()
    pairs = []
    numbered = ((file, line) for file in paths for line in enumerate(read_lines(file), 1))
    for file, (number, line) in numbered:
        where = f"{file}:{number}"
        columns = line.split("\t")
        if len(columns) != 3:
            raise DataError(
                f"{where} has {len(columns)} columns, expected source, target and domain with tabs "
                "between"
            )
        pair = Pair(*columns)
        if wanted is not None and pair.domain not in wanted and pair.domain.strip():
            continue
        if is_good(pair, where, mojibake, empty, reading):
            pairs.append(pair)
    missing = (wanted or set()) - {pair.domain for pair in pairs}
    if missing:
        names = " and ".join(map(str, paths))
        raise DataError(
            f"{names} {'has' if len(paths) == 1 else 'have'} no rows of "
            + ", ".join(sorted(missing))
        )
    return pairs


def read_plain(
    source: Path | None,
    target: Path | None,
    mojibake: str = "refuse",
    empty: str = "refuse",
    reading: Reading | None = None,
) -> list[Pair]:
    """Reads the pairs of two plain files, line by line; the lines of a single file are both
    sides."""
    first, second = source or target, target or source
    assert first is not None
    assert second is not None
    reading = reading or Reading()
    pairs = []
    both = itertools.zip_longest(read_lines(first), read_lines(second))
    for number, (left, right) in enumerate(both, 1):
        if left is None or right is None:
            short, long = (first, second) if left is None else (second, first)
            count = sum(1 for _ in read_lines(long))
            raise DataError(
                f"{short} has {number - 1} lines and {long} has {count}, line n of one must belong "
                "to line n of the other"
            )
        pair = Pair(left, right, PLAIN_DOMAIN)
        where = f"{first}:{number}" if first == second else f"line {number} of {first} and {second}"
        if is_good(pair, where, mojibake, empty, reading):
            pairs.append(pair)
    if not pairs:
        raise DataError(f"{first} has no lines that can be used")
    return pairs


def is_good(pair: Pair, where: str, mojibake: str, empty: str, reading: Reading) -> bool:
    """True if the row is to be used. Raises DataError for a row that the policies refuse."""
    columns = {"domain": pair.domain, "source": pair.source, "target": pair.target}
    blank = [name for name, column in columns.items() if not column.strip()]
    if blank:
        if empty == "refuse" or "domain" in blank:
            raise DataError(
                f"{where} has an empty {blank[0]}"
                + (
                    ', data.empty_lines = "drop" leaves such rows out'
                    if "domain" not in blank
                    else ""
                )
            )
        reading.empty += 1
        return False
    for name, column in columns.items():
        found = MOJIBAKE.search(column) if SUSPECT.search(column) else None
        if found:
            sign = f"{where} has {found.group()!r} in its {name}"
            if mojibake == "refuse":
                raise DataError(f"{sign}, text decoded with the wrong encoding")
            reading.mojibake += 1
            reading.first_mojibake = reading.first_mojibake or sign
            return mojibake == "warn"
    return True


def turned(pairs: list[Pair], config: DataConfig) -> list[Pair]:
    """Returns the rows of a file in the direction that the recipe learns."""
    if not config.reverse:
        return pairs
    return [Pair(pair.target, pair.source, pair.domain) for pair in pairs]


def rows_file(folder: Path, name: str) -> Path:
    """Returns the path of name.tsv.xz, or of name.tsv if only that exists."""
    paths = [folder / (name + ending) for ending in FILE_ENDINGS]
    return next((path for path in paths if path.is_file()), paths[0])


def read_split(
    folder: Path, config: DataConfig, split: str, domains: Iterable[str], reading: Reading
) -> list[Pair]:
    """Reads the rows of "train" or "valid" from the recipe's plain files or from .tsv files, for
    "train" from all of data.files."""
    source, target = config.plain(split)
    if source or target:
        pairs = read_plain(
            folder / source if source else None,
            folder / target if target else None,
            config.mojibake,
            config.empty_lines,
            reading,
        )
        return turned(pairs, config)
    paths = [rows_file(folder, name) for name in (config.files if split == "train" else [split])]
    pairs = read_pairs(paths, domains, config.mojibake, config.empty_lines, reading)
    return turned(pairs, config)
