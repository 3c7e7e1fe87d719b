"""Plain text: lines, paragraphs that were wrapped at a width, and rows of a table.

The cells of a row have three blanks or more between them. The server tells which lines are a
paragraph (docs/TRANSLATION.md, line breaks); it gets lines that may be one together. A paragraph is
wrapped again at its width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..document import BLANKS, Document, Slot, Source, one
from ..fragment import Fragment, Part
from .format import Format, Options

_LINE_END = re.compile(r"\r\n?|\n")
# A line that is no continuation of the line before.
_BEGINS = re.compile(r"(?:[-*•]|\d{1,3}[.)]|\(?[a-z]\))\s|[>#|]")
# Blanks between the cells of a row; not behind a sentence or the mark of a list.
_GAP = re.compile(r"(?<![\s.!?])(?<!^[-*•])(?<!^.\))(?<!^..\)) {3,}(?=\S)")
_SENTENCE_END = re.compile(r"[.!?:。！？]\W?$")
# A block of lines is cut into texts that the server takes: at the first end of a sentence from the
# first number of lines on, and in any case at the second.
_LINES, _MAX_LINES = 20, 100


class _Line(NamedTuple):
    indent: str
    text: str  # without white space at its ends
    start: int  # of the text

    @classmethod
    def of(cls, line: str, begun: int) -> _Line:
        text = line.lstrip(BLANKS)
        indent = line[: len(line) - len(text)]
        return cls(indent, text.rstrip(BLANKS), begun + len(indent))


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    slots = []
    for start, end, indent in _texts(source.text):
        if cells := _cells(source.text[start:end]):
            place = source.place(start)
            fragments = tuple(Fragment((text,), place) for _, text in cells)
            slots.append(Slot(start, end, fragments, _write_row(cells)))
            continue
        text = _LINE_END.sub("\n", source.text[start:end])
        fragment = Fragment((text,), source.place(start))
        slots.append(one(start, end, fragment, _write(source.text[start:end], indent)))
    return Document(source, slots)


def _texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Lines that may be a paragraph: where they begin and end, and how the last is indented."""
    begins = [0, *(it.end() for it in _LINE_END.finditer(text)), len(text), len(text)]
    lines: list[_Line] = []
    for begun, end in pairwise(begins):
        line = _Line.of(text[begun:end], begun)
        if lines and not _goes_on(lines, line):
            yield lines[0].start, lines[-1].start + len(lines[-1].text), lines[-1].indent
            lines = []
        if line.text:
            lines.append(line)


def _goes_on(lines: list[_Line], line: _Line) -> bool:
    if not line.text or _BEGINS.match(line.text) or len(lines) >= _MAX_LINES:
        return False
    if _cells(line.text) or _cells(lines[-1].text):
        return False
    if len(lines) >= _LINES and _SENTENCE_END.search(lines[-1].text[-2:]):
        return False
    return len(lines) == 1 or line.indent == lines[-1].indent


def _cells(line: str) -> list[tuple[int, str]]:
    """The cells of a row and their columns; none if it is no row."""
    begins = [0, *(gap.end() for gap in _GAP.finditer(line))]
    if len(begins) == 1 or _LINE_END.search(line):
        return []
    return [(begin, line[begin:end].rstrip()) for begin, end in pairwise([*begins, len(line)])]


def _write_row(cells: list[tuple[int, str]]) -> Callable[[Sequence[tuple[Part, ...] | None]], str]:
    """Writes the answers to cells in their columns, or behind a cell that has become longer."""

    def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
        row = ""
        for (column, text), answer in zip(cells, answers, strict=True):
            row = row and (row + "   ").ljust(column)
            row += text if answer is None else " ".join("".join(map(str, answer)).split("\n"))
        return row

    return write


def _write(source: str, indent: str) -> Callable[[tuple[Part, ...]], str]:
    """Writes an answer to `source` with its line ends."""
    lines = _LINE_END.split(source)
    width = max(map(len, lines))
    newline = "\r\n" if "\r\n" in source else "\r" if "\r" in source else "\n"

    def write(parts: tuple[Part, ...]) -> str:
        said = "".join(map(str, parts)).split("\n")
        if len(said) < len(lines):  # the server has joined some
            said = [
                part
                for line in said
                for part in textwrap.wrap(
                    line,
                    width,
                    subsequent_indent=indent,
                    expand_tabs=False,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            ]
        return newline.join(said)

    return write


FORMAT = Format("Text", (".txt",), "text/plain", _read)
