"""OpenDocument text, sheets and slides: the paragraphs of the content, headers and footers. odfdo's
text of a paragraph has links as Markdown, footnotes twice, and deleted text."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence

from ..document import Collector, Document, Slot, Source
from ..fragment import ALONE, Code
from ..fragment import CLOSE as CLOSES
from ..fragment import OPEN as OPENS
from ..markup import EMPTY, OPEN, RAW, TEXT, Token, end_of, local, xml_source, xml_tokens
from ..package import COMMENTS_STAY, Package, package
from .format import Format, Options
from .html import folded

_PARAGRAPHS = {"text:p", "text:h"}
_PAIRS = {"text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"}
# Elements whose paragraphs are not text of the document.
_SKIPPED = {"text:tracked-changes", "office:annotation", "text:ruby-text", "office:forms"}
# Elements without text of their own; all other elements of a paragraph stand for a word.
_NO_WORD = (
    "text:bookmark",
    "text:reference-mark",
    "text:change",
    "office:annotation",
    "draw:",
    "text:note",
)
_BREAKS = {"text:tab", "text:line-break"}  # end a sentence
_BLANKS = {"text:s", "text:soft-page-break"}


def _read(data: bytes, options: Options) -> Package:
    def part(name: str, bytes_of: Callable[[str], bytes]) -> Document | None:
        if name not in ("content.xml", "styles.xml"):
            return None
        source = xml_source(bytes_of(name))
        slots = list(_slots(source, list(xml_tokens(source))))
        return Document(source, slots, unencodable="xmlcharrefreplace")

    found = package(data, part, "content.xml")
    if any(b"<office:annotation" in it.source.text.encode() for it in found.documents.values()):
        found.notes.append(COMMENTS_STAY)
    return found


def _slots(source: Source, tokens: Sequence[Token]) -> Iterator[Slot]:
    position = number = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == OPEN and token.name in _SKIPPED:
            position = end_of(tokens, position)
        elif token.kind == OPEN and token.name in _PARAGRAPHS:
            end = end_of(tokens, position)
            number += 1
            collector = Collector(source, lambda text: html.escape(text, quote=False))
            place = f"paragraph {number}"
            _paragraph(source, tokens[position + 1 : end - 1], collector, place)
            collector.end(place)
            yield from collector.slots
            position = end
        else:
            position += 1


def _paragraph(source: Source, tokens: Sequence[Token], collector: Collector, place: str) -> None:
    position = 0
    while position < len(tokens):
        token, end = tokens[position], end_of(tokens, position)
        if token.kind == TEXT:
            collector.add(folded(html.unescape(token.raw)), token.start, token.end)
        elif token.kind == RAW:
            collector.add(token.raw[9:-3], token.start, token.end)
        elif token.name in _PAIRS and token.kind != EMPTY:
            kind = OPENS if token.kind == OPEN else CLOSES
            collector.add(Code(token.raw, kind), token.start, token.end)
            end = position + 1
        elif token.name in _BREAKS:
            collector.end(place)
        else:
            last = tokens[end - 1].end
            is_word = token.name not in _BLANKS and not token.name.startswith(_NO_WORD)
            raw = source.text[token.start : last]
            collector.add(Code(raw, ALONE, is_word and bool(local(token.name))), token.start, last)
            if token.name not in _SKIPPED:
                for slot in _slots(source, tokens[position + 1 : end]):
                    collector.add_inner(slot)
        position = end


FORMAT = Format(
    "OpenDocument",
    (".odt", ".ods", ".odp", ".ott", ".ots", ".otp"),
    "application/vnd.oasis.opendocument.text",
    _read,
)
