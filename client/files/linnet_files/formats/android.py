"""Strings of Android: <string>, <string-array> and <plurals> of a file <resources>."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from ..document import Document, FileError, Slot, Source, framed
from ..fragment import ALONE, Code, Fragment, Part, joined
from ..fragment import CLOSE as CLOSES
from ..fragment import OPEN as OPENS
from ..markup import EMPTY, OPEN, RAW, TEXT, Token, end_of, xml_source, xml_tokens
from ..variables import icu_note, parts_of
from .format import Format, Options
from .plurals import categories

# White space within quotes stays; Android shows neither them nor other white space at the ends.
_QUOTED = re.compile(r'(\s*")((?:[^"\\]|\\.)*)("\s*)', re.DOTALL)
_CHARACTER = re.compile(r"\\(?:[\\nt]|u[0-9a-fA-F]{4})")
_LETTER = re.compile(r"\\u([0-9a-fA-F]{4})")
_ESCAPES = {r"\'": "'", r"\"": '"', r"\@": "@", r"\?": "?"}


def resources(source: Source, options: Options) -> Document:
    """Reads a file whose root is <resources>."""
    tokens = list(xml_tokens(source))
    slots: list[Slot] = []
    notes: list[str] = []
    position = 0
    while position < len(tokens):
        token, end = tokens[position], end_of(tokens, position)
        if token.kind != OPEN or token.name == "resources":
            position += 1
        elif token.attributes.get("translatable") == "false":
            position = end
        elif token.name in ("string", "item"):
            name = token.attributes.get("name", "item")
            if note := icu_note(source.text[token.end : tokens[end - 1].start], name):
                notes.append(note)
            else:
                slots += _string(source, tokens[position:end], name)
            position = end
        elif token.name == "plurals":
            slots += _plurals(source, tokens[position:end], options.target)
            position = end
        else:
            position += 1 if token.name == "string-array" else end - position
    return Document(source, slots, unencodable="xmlcharrefreplace", notes=notes)


def _string(source: Source, tokens: Sequence[Token], place: str) -> list[Slot]:
    start, end = tokens[0].end, tokens[-1].start
    parts: list[Part] = []
    position = 1
    while position < len(tokens) - 1:
        token, after = tokens[position], position + 1
        if token.kind == RAW:  # its tags are text for the program
            parts += _read_text(token.raw[9:-3])
        elif token.kind == TEXT and len(tokens) == 3 and (found := _QUOTED.fullmatch(token.raw)):
            parts += [Code(found[1]), *_read_text(html.unescape(found[2])), Code(found[3])]
        elif token.kind == TEXT:
            parts += _read_text(html.unescape(re.sub(r"[ \t\r\n]+", " ", token.raw)))
        elif token.name == "xliff:g" or token.kind not in (OPEN, EMPTY):
            if token.kind == OPEN:
                after = end_of(tokens, position)
                raw = source.text[token.start : tokens[after - 1].end]
                parts.append(Code(raw, ALONE, is_word=True))
            elif token.name:
                parts.append(Code(token.raw, CLOSES))
            else:
                parts.append(Code(token.raw))
        else:
            parts.append(Code(token.raw, OPENS if token.kind == OPEN else ALONE))
        position = after
    is_cdata = any(token.kind == RAW for token in tokens)
    lines = [framed(line) for line in _lines(joined(_marked(parts, is_cdata)))]
    if not any(isinstance(part, str) for _, core, _ in lines for part in core):
        return []

    def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
        said = "".join(
            part.raw if isinstance(part, Code) else _escaped(part, is_cdata)
            for (head, core, tail), answer in zip(lines, answers, strict=True)
            for part in (*head, *(answer or core), *tail)
        )
        return f"<![CDATA[{said}]]>" if is_cdata else said

    return [Slot(start, end, tuple(Fragment(core, place) for _, core, _ in lines), write)]


def _read_text(text: str) -> Iterator[Part]:
    """The parts of a text. References to letters are text; line ends, tabs, and references to other
    characters, which authors write to keep or to see them, are codes."""
    text = _LETTER.sub(_letter, text)
    end = 0
    for found in _CHARACTER.finditer(text):
        yield from parts_of(_unescaped(text[end : found.start()]), is_format=True)
        yield Code(found[0])
        end = found.end()
    yield from parts_of(_unescaped(text[end:]), is_format=True)


def _letter(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter.isalpha() else found[0]


def _lines(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts of each line, with the line end."""
    line: list[Part] = []
    for part in parts:
        line.append(part)
        if isinstance(part, Code) and part.raw == r"\n":
            yield line
            line = []
    if line:
        yield line


def _marked(parts: Sequence[Part], is_cdata: bool) -> list[Part]:
    """Codes that were found in unescaped text are written escaped."""
    return [
        Code(html.escape(part.raw, quote=False), part.kind, part.is_word)
        if isinstance(part, Code) and not is_cdata and re.match(r"&(?!\w+;|#)", part.raw)
        else part
        for part in parts
    ]


def _unescaped(text: str) -> str:
    return re.sub(r"\\['\"@?]", lambda it: _ESCAPES[it[0]], text)


def _escaped(text: str, is_cdata: bool) -> str:
    said = re.sub(r"(['\"])", r"\\\1", text)
    said = re.sub(r"^([@?])", r"\\\1", said)
    return said.replace("]]>", "]] >") if is_cdata else html.escape(said, quote=False)


def _plurals(source: Source, tokens: Sequence[Token], target: str) -> list[Slot]:
    """The items; the form for other numbers also stands for the forms that only the target has."""
    name = tokens[0].attributes.get("name", "plurals")
    items = [index for index, it in enumerate(tokens) if it.kind == OPEN and it.name == "item"]
    given = {tokens[index].attributes.get("quantity", "") for index in items}
    added = (
        [it for it in categories(target) if it not in given] if target and "one" in given else []
    )
    slots: list[Slot] = []
    for index in items:
        token, end = tokens[index], end_of(tokens, index)
        quantity = token.attributes.get("quantity", "")
        for slot in _string(source, tokens[index:end], f"{name} ({quantity})"):
            if quantity != "other" or not added:
                slots.append(slot)
                continue
            closing = tokens[end - 1].raw
            blank = source.text[: token.start]
            blank = blank[len(blank.rstrip()) :]

            def write(
                answers: Sequence[tuple[Part, ...] | None],
                slot: Slot = slot,
                token: Token = token,
                around: tuple[str, str] = (closing, blank),
            ) -> str:
                said = slot.write(answers)
                more = [token.raw.replace("other", it, 1) + said for it in added]
                return (around[0] + around[1]).join([said, *more])

            slots.append(Slot(slot.start, slot.end, slot.fragments, write))
    return slots


def is_resources(source: Source) -> bool:
    tags = (token for token in xml_tokens(source) if token.kind in (OPEN, EMPTY))
    return next((token.name for token in tags), "") == "resources"


def _read(data: bytes, options: Options) -> Document:
    source = xml_source(data, options.encoding)
    if not is_resources(source):
        raise FileError("the root element is not <resources>: this XML is no known format")
    return resources(source, options)


FORMAT = Format("Android", (".xml",), "application/xml", _read)
