"""A file in memory: its characters, and the slots in which its fragments stand."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from .fragment import ALONE, Code, Fragment, Part, joined, pairs

Write = Callable[[tuple[Part, ...]], str]
BLANKS = " \t\r\n\f"


class File(Protocol):
    """A file that was read."""

    @property
    def fragments(self) -> list[Fragment]: ...

    @property
    def notes(self) -> list[str]:
        """What a person should look at: what was left alone, and once the file is written, what
        breaks a limit."""

    def write(self, answers: Sequence[tuple[Part, ...] | None]) -> bytes:
        """The file with these answers, one per fragment; None leaves a fragment as it is."""


class FileError(Exception):
    """A file that cannot be read as what it should be, or cannot be written."""


class EncodingError(FileError):
    """A text file that has another encoding than it should have."""


@dataclass(frozen=True)
class Slot:
    """The place of one or several fragments: characters `start` to `end` of the file. `write` gives
    the new characters from the answers, of which None is an answer that does not change. A slot
    without fragments is always written."""

    start: int
    end: int
    fragments: tuple[Fragment, ...]
    write: Callable[[Sequence[tuple[Part, ...] | None]], str]
    # The source stands elsewhere in the file, so an answer that equals it is written as well.
    beside_source: bool = False


_BOMS = {  # that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
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
            raise EncodingError(
                f"line {line}: byte {error.start + len(bom)} is not {used}: "
                "convert the file to UTF-8"
            ) from None
        except LookupError:
            raise FileError(f"the encoding {used[:40]!r} is not known: convert to UTF-8") from None
        if "\0" in text:
            raise FileError(f"character {text.index(chr(0))} is NUL: this is not a text file")
        return cls(text, used, bom)

    @cached_property
    def _line_ends(self) -> list[int]:
        return [found.end() for found in re.finditer("\n", self.text)]

    @cached_property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def line(self, position: int) -> int:
        return bisect_right(self._line_ends, position) + 1

    def place(self, position: int) -> str:
        return f"line {self.line(position)}"


@dataclass
class Document:
    """A text file, or a member of an archive. `write` puts the answers into their slots; all other
    characters, and a slot without a changed answer, stay as they are."""

    source: Source
    slots: list[Slot]
    # How a character is written that the encoding of the file lacks: an error handler of codecs.
    # With "strict" the file becomes UTF-8, and `declare_utf8` says so in it.
    unencodable: str = "strict"
    declare_utf8: Callable[[str], str] = str
    notes: list[str] = field(default_factory=list)

    @cached_property
    def fragments(self) -> list[Fragment]:
        return [fragment for slot in self.slots for fragment in slot.fragments]

    def write(self, answers: Sequence[tuple[Part, ...] | None]) -> bytes:
        text = written_text(self.source.text, self.slots, answers)
        try:
            return self.source.bom + text.encode(self.source.encoding, self.unencodable)
        except UnicodeEncodeError:
            return self.declare_utf8(text).encode()


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
        self._new: list[Slot] = []  # since the last end
        self._inner: list[Slot] = []
        self._parts: list[tuple[Part, int, int]] = []

    def add_inner(self, slot: Slot) -> None:
        """Adds a slot within a code: the text of an attribute or of a footnote."""
        self._inner.append(slot)

    def add(self, part: Part, start: int, end: int) -> None:
        """Adds what stands at `start` to `end` of the file, where the part before ended."""
        self._parts.append((part, start, end))

    def end(self, place: str = "") -> None:
        """Ends a fragment. Text at both ends that needs no translation stays outside: white space,
        codes that are no words, and pairs around everything. The end of a pair whose other end is
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
        # The slots of a fragment, and those in codes beside it, follow all earlier ones.
        self._new += self._inner
        self.slots += sorted(self._new, key=lambda slot: slot.start)
        self._new, self._inner = [], []

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
        codes = [(it, first, last) for it, first, last in parts if isinstance(it, Code)]
        self._new.append(nested(self._source, start, end, fragment, codes, inner, self._write))


def nested(
    source: Source,
    start: int,
    end: int,
    fragment: Fragment,
    codes: Sequence[tuple[Code, int, int]],
    inner: Sequence[Slot],
    write: Write,
) -> Slot:
    """The slot of a fragment with other slots within its codes, whose places are given."""

    def written(answers: Sequence[tuple[Part, ...] | None]) -> str:
        raws: dict[int, str] = {}
        begun, number = 0, 1  # of the inner slots and of their answers
        for code, first, last in codes:
            ended, count = begun, 0
            while ended < len(inner) and inner[ended].start < last:
                count += len(inner[ended].fragments)
                ended += 1
            given = answers[number : number + count]
            if any(it is not None for it in given):
                raws[id(code)] = written_text(source.text, inner[begun:ended], given, first, last)
            begun, number = ended, number + count
        return write(
            tuple(
                replace(part, raw=raws[id(part)]) if id(part) in raws else part  # type: ignore[type-var]
                for part in answers[0] or fragment.parts
            )
        )

    fragments = (fragment, *(it for slot in inner for it in slot.fragments))
    return Slot(start, end, fragments, written)


def written_text(
    text: str,
    slots: Sequence[Slot],
    answers: Sequence[tuple[Part, ...] | None],
    start: int = 0,
    end: int | None = None,
) -> str:
    """The characters `start` to `end` of a file, with the answers in their slots."""
    said: list[str] = []
    number = 0
    for slot in slots:
        given = [
            None if answer == fragment.parts and not slot.beside_source else answer
            for fragment, answer in zip(
                slot.fragments, answers[number : number + len(slot.fragments)], strict=True
            )
        ]
        number += len(slot.fragments)
        if not given or any(answer is not None for answer in given):
            said += [text[start : slot.start], slot.write(given)]
            start = slot.end
    return "".join([*said, text[start:end]])


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


def framed(parts: Sequence[Part]) -> tuple[list[Part], tuple[Part, ...], list[Part]]:
    """The parts before, in and behind what needs translation, without white space at its ends."""
    first, last = trimmed(parts)
    head, core, tail = list(parts[:first]), list(parts[first:last]), list(parts[last:])
    if core and isinstance(core[0], str):
        text = core[0].lstrip()
        head.append(core[0][: len(core[0]) - len(text)])
        core[0] = text
    if core and isinstance(core[-1], str):
        text = core[-1].rstrip()
        tail.insert(0, core[-1][len(text) :])
        core[-1] = text
    return head, joined(core), tail
