"""The tokens of HTML and XML with their places in the file; no tree is built."""

from __future__ import annotations

import html
import re
import xml.parsers.expat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .document import FileError, Source


class NotWellFormed(FileError):
    """XML that no XML parser reads."""


TEXT, OPEN, CLOSE, EMPTY, RAW, OTHER = "text", "open", "close", "empty", "raw", "other"


@dataclass(frozen=True, slots=True)
class Token:
    """OPEN, CLOSE and EMPTY are tags; RAW is a section CDATA; OTHER is a comment, a processing
    instruction or a document type."""

    kind: str
    start: int
    end: int
    name: str = ""  # of a tag; in HTML in lower case
    raw: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        return {name: value for name, value, _, _ in self.attribute_places()}

    def attribute_places(self) -> Iterator[tuple[str, str, int, int]]:
        """The name, the value, and the place of the value without its quotes, in the file."""
        for found in _ATTRIBUTE.finditer(self.raw, len(self.name) + 1):
            group = next((it for it in (2, 3, 4) if found[it] is not None), 0)
            if group:
                value = html.unescape(found[group])
                yield (
                    found[1],
                    value,
                    self.start + found.start(group),
                    self.start + found.end(group),
                )


_ATTRIBUTE = re.compile(
    r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+)))?"""
)
_XML_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*>"
    r"""|<(/?)([^\s/>!?]+)(?:[^>"'/]++|"[^"]*+"|'[^']*+'|/(?!>))*+(/?)>|[^<]++""",
    re.DOTALL,
)
_HTML_TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<![^>]*+>?|<\?(?:php\b|=).*?(?:\?>|\Z)|<\?[^>]*+>?"
    r"""|<(/?)([a-zA-Z][^\s/>]*+)(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+"""
    r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"'][^\s>]*+|(?=>)))?+)*+(>|\Z)|</[^>]*+>?|<|[^<]++""",
    re.DOTALL,
)
_RAW_TEXT = {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"}


def xml_source(data: bytes, encoding: str = "") -> Source:
    """Decodes an XML file by its declaration. Raises FileError with the place if it is not
    well-formed, or defines entities: those can expand without bound, or name other files."""
    declared = re.match(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""", data)
    source = Source.of(data, encoding or (declared[1].decode() if declared else "utf-8"))
    check_xml(source)
    return source


def check_xml(source: Source) -> None:
    parser = xml.parsers.expat.ParserCreate("utf-8")

    def refuse(*_: object) -> None:
        raise FileError(
            f"line {parser.CurrentLineNumber}: the file defines entities in its document type; "
            "remove the definitions"
        )

    parser.EntityDeclHandler = refuse
    parser.UseForeignDTD(True)  # entities like &nbsp; of a document type are allowed
    parser.ExternalEntityRefHandler = lambda *_: 1
    try:
        parser.Parse(source.text.encode(), True)
    except xml.parsers.expat.ExpatError as error:
        message = xml.parsers.expat.ErrorString(error.code)
        raise NotWellFormed(f"line {error.lineno}, column {error.offset}: {message}") from None


def xml_tokens(source: Source) -> Iterator[Token]:
    """The tokens of a source that `check_xml` accepts."""
    for found in _XML_TOKEN.finditer(source.text):
        raw, start, end = found[0], *found.span()
        if found[2]:
            kind = CLOSE if found[1] else EMPTY if found[3] else OPEN
            yield Token(kind, start, end, found[2], raw)
        elif raw[0] != "<":
            yield Token(TEXT, start, end, raw=raw)
        else:
            yield Token(RAW if raw.startswith("<![CDATA[") else OTHER, start, end, raw=raw)


def html_tokens(source: Source) -> Iterator[Token]:
    """The tokens of HTML as browsers find them; the text of scripts and the like is one OTHER."""
    text, position = source.text, 0
    while position < len(text):
        found = _HTML_TOKEN.match(text, position)
        if not found:  # an attribute whose quote is never closed
            yield Token(OTHER, position, len(text), raw=text[position:])
            return
        raw, position = found[0], found.end()
        if not found[2]:
            kind = TEXT if raw[0] != "<" or raw == "<" else OTHER
            yield Token(kind, found.start(), position, raw=raw)
            continue
        name = found[2].lower()
        is_empty = name in VOID or raw.endswith("/>")
        kind = CLOSE if found[1] else EMPTY if is_empty else OPEN
        yield Token(kind, found.start(), position, name, raw)
        if kind == OPEN and name in _RAW_TEXT:
            closing = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.IGNORECASE)
            ending = closing.search(text, position)
            end = ending.start() if ending else len(text)
            if end > position:
                inside = TEXT if name == "title" else OTHER
                yield Token(inside, position, end, raw=text[position:end])
            position = end


def local(name: str) -> str:
    """The name of a tag without its prefix."""
    return name.rpartition(":")[2]


def end_of(tokens: Sequence[Token], position: int) -> int:
    """The position behind the XML element whose tag is at `position`."""
    if tokens[position].kind != OPEN:
        return position + 1
    depth = 0
    while True:
        depth += (tokens[position].kind == OPEN) - (tokens[position].kind == CLOSE)
        position += 1
        if depth == 0:
            return position


VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
    *("source", "track", "wbr"),
}
