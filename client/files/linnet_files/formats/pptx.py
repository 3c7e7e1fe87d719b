"""PPTX: ECMA-376. Slides, their notes, charts and diagrams."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..document import Document
from ..package import Package, package
from .docx import DRAWING
from .format import Format, Options
from .runs import document

_PARTS = re.compile(
    r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart|diagrams/(?:data|drawing))\d*\.xml"
).fullmatch


def _read(data: bytes, options: Options) -> Package:
    def part(name: str, bytes_of: Callable[[str], bytes]) -> Document | None:
        return document(bytes_of(name), DRAWING) if _PARTS(name) else None

    return package(data, part, "ppt/presentation", "ppt/comments")


FORMAT = Format(
    "PowerPoint",
    (".pptx", ".pptm"),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    _read,
)
