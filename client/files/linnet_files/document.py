"""A file in memory: its characters, and the slots in which its fragments stand."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from .fragment import ALONE, Code, Fragment, Part, joined, pairs

Write = Callable[[tuple[Part, ...]], str]
BLANKS = " \t\r\n\f"


class FileError(Exception):
    """A file that cannot be read as what it should be, or cannot be written."""


@dataclass(frozen=True)
class Slot:
    """The place of one or several fragments: characters `start` to `end` of the file. `write` gives
    the new characters from the answers, of which None is an answer that does not change. A slot
    without fragments is always written."""

    start: int
    end: int
    fragments: tuple[Fragment, ...]
    write: Callable[[Sequence[tuple[Part, ...] | None]], str]


_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass
class Source:
    """The characters of a file and how they are encoded."""

    text: str
    encoding: str
    bom: bytes = b""

    @classmethod
    def of(cls, data: bytes, encoding: str = "") -> Source:
        """Decodes a file: by its byte order mark, else as `encoding`, else as UTF-8. Raises
        FileError for bytes that are not text."""
        bom = next((bom for bom in _BOMS if data.startswith(bom)), b"")
        used = _BOMS.get(bom) or encoding or "utf-8"
        try:
            text = data[len(bom) :].decode(used)
        except UnicodeDecodeError as error:
            line = data[len(bom) :].count(b"\n", 0, error.start) + 1
            raise FileError(
                f"line {line}: byte {error.start + len(bom)} is not {used}; name the encoding of "
                "the file with --encoding, or convert the file to UTF-8"
            ) from None
        except LookupError:
            raise FileError(f"the encoding {used[:40]!r} is not known: convert to UTF-8") from None
        if "\0" in text:
            raise FileError(f"character {text.index(chr(0))} is NUL: this is not a text file")
        return cls(text, used, bom)

    @cached_property
    def _line_ends(self) -> list[int]:
        return [found.end() for found in re.finditer("\n", self.text)]

    def line(self, position: int) -> int:
        return bisect_right(self._line_ends, position) + 1

    def place(self, position: int) -> str:
        return f"line {self.line(position)}"


@dataclass
class Document:
    """A file that was read. `write` puts the answers into their slots; all other characters, and a
    slot without a changed answer, stay as they are."""

    source: Source
    slots: list[Slot]
    # How a character is written that the encoding of the file lacks: an error handler of codecs.
    # With "strict" the file becomes UTF-8, and `declare_utf8` says so in it.
    unencodable: str = "strict"
    declare_utf8: Callable[[str], str] = str
    notes: list[str] = field(default_factory=list)  # what was left alone, for the report

    @cached_property
    def fragments(self) -> list[Fragment]:
        return [fragment for slot in self.slots for fragment in slot.fragments]

    def write(self, answers: Sequence[tuple[Part, ...] | None]) -> bytes:
        """The file with these answers, one per fragment; None leaves a fragment as it is."""
        text = self.written(answers)
        try:
            return self.source.bom + text.encode(self.source.encoding, self.unencodable)
        except UnicodeEncodeError:
            return self.declare_utf8(text).encode()

    def written(self, answers: Sequence[tuple[Part, ...] | None]) -> str:
        said: list[str] = []
        end = number = 0
        for slot in self.slots:
            given = [
                None if answer is None or answer == fragment.parts else answer
                for fragment, answer in zip(
                    slot.fragments, answers[number : number + len(slot.fragments)], strict=True
                )
            ]
            number += len(slot.fragments)
            if not given or any(answer is not None for answer in given):
                said += [self.source.text[end : slot.start], slot.write(given)]
                end = slot.end
        return "".join([*said, self.source.text[end:]])


def spliced(write_text: Callable[[str], str]) -> Write:
    """Writes an answer: its text by `write_text`, its codes as they were."""

    def write(parts: tuple[Part, ...]) -> str:
        return "".join(part.raw if isinstance(part, Code) else write_text(part) for part in parts)

    return write


def one(start: int, end: int, fragment: Fragment, write: Write) -> Slot:
    """A slot with one fragment."""
    return Slot(start, end, (fragment,), lambda answers: write(answers[0] or fragment.parts))


class Collector:
    """Gathers adjacent parts of a file to fragments."""

    def __init__(self, source: Source, write_text: Callable[[str], str]):
        self._source, self._write = source, spliced(write_text)
        self.slots: list[Slot] = []
        self._inner: list[Slot] = []
        self._parts: list[tuple[Part, int, int]] = []

    def add_inner(self, slot: Slot) -> None:
        """Adds a slot with one fragment within the next code: the text of an attribute."""
        self._inner.append(slot)

    def add(self, part: Part, start: int, end: int) -> None:
        """Adds what stands at `start` to `end` of the file, where the part before ended."""
        self._parts.append((part, start, end))

    def end(self, place: str = "") -> None:
        """Ends a fragment. What needs no translation at both ends stays outside: white space, codes
        that are no words, and pairs around everything. The end of a pair whose other end is
        elsewhere stays where it is, between two fragments."""
        parts, self._parts = self._parts, []
        ends = pairs([part for part, _, _ in parts])
        matched = {*ends, *ends.values()}
        begun = 0
        for index, (part, _, _) in enumerate(parts):
            if isinstance(part, Code) and part.kind != ALONE and index not in matched:
                self._end(parts[begun:index], place)
                begun = index + 1
        self._end(parts[begun:], place)
        self.slots = sorted([*self.slots, *self._inner], key=lambda slot: slot.start)
        self._inner = []

    def _end(self, parts: list[tuple[Part, int, int]], place: str) -> None:
        first, last = trimmed([part for part, _, _ in parts])
        if first == last:
            return
        parts = parts[first:last]
        head, start, _ = parts[0]
        tail, _, end = parts[-1]
        kept = [part for part, _, _ in parts]
        # White space that the file has as such; a reference like &nbsp; belongs to the text.
        raw = self._source.text[start:end]
        before, after = len(raw) - len(raw.lstrip(BLANKS)), len(raw) - len(raw.rstrip(BLANKS))
        if before and isinstance(head, str):
            kept[0], start = head.lstrip(BLANKS), start + before
        if after and isinstance(tail, str):
            kept[-1], end = str(kept[-1]).rstrip(BLANKS), end - after
        fragment = Fragment(joined(kept), place or self._source.place(start))
        inner = [slot for slot in self._inner if start <= slot.start < end]
        self._inner = [slot for slot in self._inner if not start <= slot.start < end]
        codes = [it for it in parts if isinstance(it[0], Code)]

        def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
            raws = {id(code): self._source.text[first:last] for code, first, last in codes}
            for slot, answer in reversed(list(zip(inner, answers[1:], strict=True))):
                if answer is not None:
                    code, first, _ = next(it for it in codes if it[1] <= slot.start < it[2])
                    raw = raws[id(code)]
                    said = slot.write([answer])
                    raws[id(code)] = raw[: slot.start - first] + said + raw[slot.end - first :]
            return self._write(
                tuple(
                    replace(part, raw=raws[id(part)]) if isinstance(part, Code) else part
                    for part in answers[0] or fragment.parts
                )
            )

        fragments = (fragment, *(slot.fragments[0] for slot in inner))
        self.slots.append(Slot(start, end, fragments, write))


def trimmed(parts: Sequence[Part]) -> tuple[int, int]:
    """The range of the parts that a fragment needs."""
    first, last = 0, len(parts)
    ends = pairs(parts)

    def is_blank(part: Part) -> bool:
        if isinstance(part, str):
            return not part.strip(BLANKS)
        return part.kind == ALONE and not part.is_word

    # An end of a pair without its other end is blank as well: it must not move.
    matched = {*ends, *ends.values()}
    blank = [
        is_blank(part) or (isinstance(part, Code) and part.kind != ALONE and index not in matched)
        for index, part in enumerate(parts)
    ]
    while first < last:
        if blank[first]:
            first += 1
        elif blank[last - 1]:
            last -= 1
        elif ends.get(first) == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    return first, last


def variables(text: str, pattern: re.Pattern[str], start: int = 0) -> Iterable[tuple[Part, int]]:
    """Splits text at its variables, which become codes; yields each part and where it starts."""
    end = 0
    for found in pattern.finditer(text):
        if found.start() > end:
            yield text[end : found.start()], start + end
        yield Code(found[0], is_word=True), start + found.start()
        end = found.end()
    if end < len(text):
        yield text[end:], start + end
