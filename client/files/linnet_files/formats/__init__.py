"""The formats that can be read and written, and how one is found for a file."""

from __future__ import annotations

from pathlib import PurePath

from ..document import File, FileError
from . import (
    android,
    docx,
    epub,
    html,
    json_,
    markdown,
    odf,
    po,
    pptx,
    srt,
    text,
    vtt,
    xliff,
    xlsx,
    yaml_,
)
from .format import Format, Options

__all__ = ["FORMATS", "Format", "Options", "find", "read"]

FORMATS: list[Format] = [
    module.FORMAT
    for module in (
        *(text, srt, vtt, po, xliff, html, markdown, docx, pptx, xlsx, odf, epub),
        *(json_, yaml_, android),
    )
]


def find(name: str, data: bytes = b"") -> Format:
    """The format of a file with this name and these first bytes. Raises FileError if it is none."""
    suffix = PurePath(name).suffix.lower()
    for format_ in FORMATS:
        if suffix in format_.extensions:
            return format_
    known = " ".join(sorted(it for format_ in FORMATS for it in format_.extensions))
    raise FileError(f"{suffix or 'a name without an ending'} is no known format: use {known}")


def read(name: str, data: bytes, options: Options = Options()) -> File:  # noqa: B008
    """Reads a file. Raises FileError if it is damaged, or of no known format."""
    return find(name, data).read(data, options)
