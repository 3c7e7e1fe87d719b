"""What a format is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..document import File


@dataclass(frozen=True)
class Options:
    """How files are read."""

    source: str = ""  # BCP-47; empty: unknown
    target: str = ""  # BCP-47; empty: unknown
    encoding: str = ""  # of text files that do not name theirs; empty: UTF-8
    all_entries: bool = False  # translate also entries that have a translation
    line_length: int = 42  # characters of a line of a subtitle
    lines: int = 2  # of a subtitle
    reading_speed: float = 17.0  # characters per second of a subtitle


@dataclass(frozen=True)
class Format:
    name: str
    extensions: tuple[str, ...]  # lower case, with the dot
    media_type: str
    # Raises FileError with the place for a damaged file.
    read: Callable[[bytes, Options], File]
