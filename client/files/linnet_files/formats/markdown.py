"""Markdown (CommonMark with tables): paragraphs, headings, cells, and the text of HTML blocks.

Code, front matter, addresses and definitions stay. markdown-it-py finds the blocks and their inline
elements; their places in the file are found by following the source."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ..document import Collector, Document, Slot, Source, one, spliced
from ..fragment import ALONE, CLOSE, OPEN, Code, Fragment, Part
from ..markup import VOID, html_tokens
from .format import Format, Options
from .html import page_slots

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\r?\n)*?\1[ \t]*(?:\r?\n|\Z)")
# Parts that Markdown itself does not know: alerts, footnotes, variables, formulas, tasks and
# addresses.
_NAME = re.compile(
    r"\[!\w+\][-+]?|^:{3,}[ \t]*[\w-]*|^(?:!!!|\?\?\?\+?)[ \t]+[\w-]+|^:[ \t]+|"
    r"\[\^[^\]\n]+\]|\{\{.*?\}\}|\{%.*?%\}|\$(?=\S)[^$\n]*\S\$|\[[ xX]\](?=\s)|https?://[^\s<>)]+"
    r"|(?<!\w):[a-z]\w+:(?!\w)|\{[#.:][^{}\n]*\}"
)
_ADDRESS = re.compile(
    r"\]\(\s*(?:<[^<>\n]*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*)"
    r"""(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)"""
    r"|\]\[[^\[\]]*\]|\]",
    re.DOTALL,
)
_REFERENCE = re.compile(r"&(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|\w+);", re.IGNORECASE)
# White space that must not break, with the words beside it.
_NO_BREAK = re.compile(r"([\w.§]+)(&(?:nbsp|#160|#x0*a0);)(?=(\w+))", re.IGNORECASE)
_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SPECIAL = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
_BLOCK_START = re.compile(r"^(\d+(?=[.)]\s)|(?=[-+>]\s|#{1,6}\s|~~~|={2,}\s*$))")


_MARKS = ("[ ]", "[x", "[X", "[!", ":::", "!!!", "???", ": ", ":\t")  # before a text
_TITLED = re.compile(r'((?:!!!|\?\?\?\+?)[ \t]+[\w-]+[ \t]+")(.*)("[ \t]*)')  # an admonition
# Lines that Markdown itself takes for a part of a paragraph: the fences of directives, the heads of
# admonitions, definitions, and tags of templates.
_OWN_LINE = re.compile(
    r":{3,}|(?:!!!|\?\?\?\+?)[ \t]+\w|:[ \t]+\S|(?:\{\{[<%#/][^{}]*\}\}|\{%[^%]*%\}|\s)+\Z"
)


class _Lost(Exception):
    """The source of an inline element was not found."""


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    front = _FRONT_MATTER.match(source.text)
    begun = front.end() if front else 0
    starts = [begun, *(it.end() for it in re.finditer(r"\n", source.text[begun:]))]
    starts[1:] = [begun + it for it in starts[1:]]
    notes: list[str] = []
    slots: list[Slot] = []
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source.text[begun:])
    row: tuple[int, list[tuple[int, int]]] = (-1, [])
    for number, token in enumerate(blocks):
        if token.map is None:
            continue
        first, last = token.map
        start = starts[first]
        end = starts[last] if last < len(starts) else len(source.text)
        try:
            if token.type == "html_block":
                slots += _html(source.text[start:end], start)
            elif token.type == "inline" and blocks[number - 1].type in ("td_open", "th_open"):
                if row[0] != first or blocks[number - 2].type == "tr_open":
                    row = first, _cells(source.text, start, end)
                if row[1]:
                    slots += _inline(source, token, [row[1].pop(0)], is_cell=True)
            elif token.type == "inline":
                ranges = _lines(source.text, token.content, start)
                if blocks[number - 2].type == "blockquote_open":
                    _end_alert(token)
                if _is_formula(token.content):
                    continue
                _end_own_lines(token)
                slots += _inline(source, token, ranges, is_cell=False)
        except _Lost:
            notes.append(f"{source.place(start)}: a paragraph is left as it is")
    return Document(source, sorted(slots, key=lambda slot: slot.start), notes=notes)


def _end_alert(block: Token) -> None:
    """Ends the first line of a quote that is an alert: `[!NOTE]`, with a title perhaps."""
    children = block.children or []
    if re.match(r"\[!\w+\]", block.content):
        for child in children:
            if child.type in ("softbreak", "hardbreak"):
                child.type = "hardbreak"
                break


def _is_formula(content: str) -> bool:
    return content.startswith("$$") and content.rstrip().endswith("$$") and len(content) > 4


def _end_own_lines(block: Token) -> None:
    """Ends the lines beside which no line is joined."""
    lines = block.content.split("\n")
    own = [bool(_OWN_LINE.match(line)) for line in lines]
    if not any(own):
        return
    number = 0  # of the line
    for child in block.children or []:
        if child.type in ("softbreak", "hardbreak"):
            number += 1
            # The text of a definition goes on in the next line.
            ended = own[number - 1] and not lines[number - 1].startswith(": ")
            if ended or (number < len(own) and own[number]):
                child.type = "hardbreak"


def _html(text: str, offset: int) -> Iterator[Slot]:
    inside = Source(text, "utf-8")
    for slot in page_slots(inside, html_tokens(inside)):
        yield replace(slot, start=slot.start + offset, end=slot.end + offset)


def _lines(text: str, content: str, start: int) -> list[tuple[int, int]]:
    """Where the lines of a block stand, without the marks of quotes and lists before them."""
    found = []
    for line in content.split("\n"):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        at = text.find(line, start, end)
        if at < 0:
            raise _Lost
        found.append((at, at + len(line)))
        start = end + 1
    return found


def _cells(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the cells of a row stand."""
    line = text[start:end].rstrip("\r\n")
    bars = [it.start() for it in re.finditer(r"\|", line) if not _is_escaped(line, it.start())]
    head = re.match(r"[\s>]*", line)
    first = head.end() if head else 0
    if not bars or bars[0] != first:
        bars.insert(0, first - 1)
    if line[bars[-1] + 1 :].strip():
        bars.append(len(line))
    found = []
    for left, right in pairwise(bars):
        cell = line[left + 1 : right]
        at = start + left + 1 + len(cell) - len(cell.lstrip())
        found.append((at, at + len(cell.strip())))
    return found


def _is_escaped(line: str, position: int) -> bool:
    before = line[:position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _inline(
    source: Source, block: Token, ranges: Sequence[tuple[int, int]], is_cell: bool
) -> list[Slot]:
    raw = source.text[ranges[0][0] : ranges[-1][1]]
    collector = Collector(source, _with_no_breaks(raw, lambda text: _escape(text, is_cell)))
    _Inline(source, ranges, collector, is_cell).read(block.children or [])
    collector.end()
    return collector.slots


def _escape(text: str, is_cell: bool) -> str:
    text = _SPECIAL.sub(r"\\\g<0>", re.sub(r"\s*\n\s*", " ", text))
    text = re.sub(r"(?<!\\)\|", r"\\|", text) if is_cell else text
    return _BLOCK_START.sub(r"\1\\", text)


def _with_no_breaks(source: str, escape: Callable[[str], str]) -> Callable[[str], str]:
    """Writes the references of `source` to no-break spaces between the same words of an answer: a
    model reads and writes a blank in their place."""
    found = _NO_BREAK.findall(source)

    def write(text: str) -> str:
        text = escape(text)
        for before, reference, after in found:
            words = rf"(?<!\w){re.escape(before)}[ \xa0]{re.escape(after)}(?!\w)"
            text = re.sub(words, lambda _: before + reference + after, text)  # noqa: B023
        return text.replace("\xa0", found[0][1]) if found else text

    return write


class _Inline:
    """Follows the inline elements of a block through its source."""

    def __init__(
        self,
        source: Source,
        ranges: Sequence[tuple[int, int]],
        collector: Collector,
        is_cell: bool,
    ):
        self._source, self._ranges, self._out, self._is_cell = source, ranges, collector, is_cell
        self._text = source.text
        self._line = 0
        self._at = ranges[0][0]

    def read(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "link_open" and token.markup == "autolink":
                while tokens[position].type != "link_close":
                    position += 1
                self._code(re.compile(r"<[^<>\s]+>"), ALONE, is_word=True)
            else:
                self._token(token)
            position += 1

    def _token(self, token: Token) -> None:
        kind = token.type
        if kind in ("text", "text_special"):
            self._plain(token.content)
        elif kind == "softbreak":
            self._next_line(is_hard=False)
        elif kind == "hardbreak":
            self._next_line(is_hard=True)
        elif kind == "code_inline":
            marks = re.escape(token.markup)
            self._code(re.compile(rf"{marks}.*?(?<!`){marks}(?!`)", re.DOTALL), ALONE, is_word=True)
        elif kind == "html_inline":
            name = re.match(r"</?([a-zA-Z][\w-]*)", token.content)
            kind_ = CLOSE if token.content.startswith("</") else OPEN
            if not name or token.content.endswith("/>") or name[1].lower() in VOID:
                kind_ = ALONE
            self._code(re.compile(re.escape(token.content)), kind_)
        elif kind == "image":
            self._image(token)
        elif kind == "link_open":
            self._code(re.compile(r"\["), OPEN)
        elif kind == "link_close":
            self._code(_ADDRESS, CLOSE)
        elif token.nesting:
            mark = re.compile(re.escape(token.markup))
            self._code(mark, OPEN if token.nesting == 1 else CLOSE)
        else:
            raise _Lost

    def _code(self, pattern: re.Pattern[str], kind: int, is_word: bool = False) -> None:
        found = pattern.match(self._text, self._at, self._ranges[-1][1])
        if not found:
            raise _Lost
        raw = found[0]
        if kind == CLOSE and raw in ("]", "][]"):  # a reference by its text
            opened = self._text.rfind("[", 0, found.start())
            raw = f"][{self._text[opened + 1 : found.start()]}]"
        self._out.add(Code(raw, kind, is_word), self._at, found.end())
        self._move(found.end())

    def _image(self, token: Token) -> None:
        start = self._at
        alt_end, end = _image_ends(self._text, start, self._ranges[-1][1])
        if any(map(str.isalpha, token.content)) and "\n" not in self._text[start:end]:
            fragment = Fragment((token.content,), f"{self._source.place(start)}, image")
            write = spliced(lambda text: _escape(text, self._is_cell))
            self._out.add_inner(one(start + 2, alt_end, fragment, write))
        self._out.add(Code(self._text[start:end]), start, end)
        self._move(end)

    def _move(self, at: int) -> None:
        self._at = at
        while at > self._ranges[self._line][1] and self._line + 1 < len(self._ranges):
            self._line += 1

    def _next_line(self, is_hard: bool) -> None:
        if self._line + 1 == len(self._ranges):
            raise _Lost
        begun = self._at
        rest = self._text[begun : self._ranges[self._line][1]]
        if rest.strip(" \t\\"):
            raise _Lost
        self._line += 1
        at = self._ranges[self._line][0]
        self._at = at + len(self._text[at:]) - len(self._text[at:].lstrip(" \t"))
        if is_hard:
            self._out.end()
        else:
            self._out.add(" ", begun, self._at)

    def _plain(self, content: str) -> None:
        if titled := _TITLED.fullmatch(content):
            self._add(Code(titled[1]))
            content = titled[2]
        end = 0
        for found in _NAME.finditer(content):
            self._add(content[end : found.start()])
            self._add(Code(found[0], is_word=not found[0].startswith(_MARKS)))
            end = found.end()
        self._add(content[end:])
        if titled:
            self._add(Code(titled[3]))

    def _add(self, part: Part) -> None:
        begun, text = self._at, part.raw if isinstance(part, Code) else part
        self._at = _follow(self._text, begun, self._ranges[self._line][1], text)
        if isinstance(part, Code):
            part = replace(part, raw=self._text[begun : self._at])
        self._out.add(part, begun, self._at)


def _image_ends(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the text of an image ends, and where the image."""
    if not text.startswith("![", start):
        raise _Lost
    depth, at = 1, start + 2
    while at < end:
        character = text[at]
        if character == "\\":
            at += 1
        elif character in "[]":
            depth += 1 if character == "[" else -1
            if depth == 0:
                found = _ADDRESS.match(text, at, end)
                return at, found.end() if found else at + 1
        at += 1
    raise _Lost


def _follow(text: str, at: int, end: int, content: str) -> int:
    """The position behind the source of `content`, in which characters may be escaped."""
    if text.startswith(content, at):
        return at + len(content)
    read = 0
    while read < len(content):
        if at >= end:
            raise _Lost
        if (
            text[at] == "\\"
            and text[at + 1 : at + 2] == content[read]
            and content[read] in _PUNCTUATION
        ):
            at, read = at + 2, read + 1
            continue
        reference = _REFERENCE.match(text, at, end)
        if reference:
            said = html.unescape(reference[0])
            if said != reference[0] and content.startswith(said, read):
                at, read = reference.end(), read + len(said)
                continue
        if text[at] != content[read]:
            raise _Lost
        at, read = at + 1, read + 1
    return at


FORMAT = Format("Markdown", (".md", ".markdown"), "text/markdown", _read)
