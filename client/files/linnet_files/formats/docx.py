"""DOCX: ECMA-376. The text is found in the XML: python-docx hides insertions, fields, content
controls and text boxes, and reading its headers adds parts."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..document import Document
from ..package import Package, package
from .format import Format, Options
from .runs import Kind, document

_PARTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml").fullmatch
_CHARTS = re.compile(r"word/(?:charts/chart|diagrams/(?:data|drawing))\d*\.xml").fullmatch
WORDS = Kind({"p"}, has_space=True)
DRAWING = Kind({"p"}, has_space=False)


def _read(data: bytes, options: Options) -> Package:
    def part(name: str, bytes_of: Callable[[str], bytes]) -> Document | None:
        if _PARTS(name):
            return document(bytes_of(name), WORDS)
        return document(bytes_of(name), DRAWING) if _CHARTS(name) else None

    return package(data, part, "word/document", "word/comments")


FORMAT = Format(
    "Word",
    (".docx", ".docm"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    _read,
)
