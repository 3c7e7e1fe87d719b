"""XLSX: ECMA-376. Texts of cells, comments, drawings and charts; formulas, numbers and names of
sheets stay. The headings of tables stay too: formulas name them."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..document import Document
from ..markup import CLOSE, xml_source, xml_tokens
from ..package import Package, package
from .docx import DRAWING
from .format import Format, Options
from .runs import Kind, document

_TABLES = re.compile(r"xl/tables/[^/]+\.xml").fullmatch
_CELLS = re.compile(r"xl/(?:sharedStrings|comments\d*|worksheets/[^/]+)\.xml").fullmatch
_DRAWINGS = re.compile(r"xl/(?:drawings/drawing|charts/chart)\d*\.xml").fullmatch
_CELL = Kind({"si", "is", "text"}, has_space=True)


def _read(data: bytes, options: Options) -> Package:
    headings: set[str] = set()

    def table(name: str, bytes_of: Callable[[str], bytes]) -> None:
        if _TABLES(name):
            for token in xml_tokens(xml_source(bytes_of(name))):
                if token.name.endswith("tableColumn") and token.kind != CLOSE:
                    headings.add(token.attributes.get("name", "").strip())

    def part(name: str, bytes_of: Callable[[str], bytes]) -> Document | None:
        if _CELLS(name):
            return document(bytes_of(name), _CELL, lambda text: text.strip() in headings)
        return document(bytes_of(name), DRAWING) if _DRAWINGS(name) else None

    package(data, table)
    found = package(data, part, "xl/workbook")
    if headings:
        found.notes.append(f"{len(headings)} headings of tables are left as they are")
    return found


FORMAT = Format(
    "Excel",
    (".xlsx", ".xlsm"),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    _read,
)
