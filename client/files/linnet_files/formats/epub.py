"""EPUB: its pages are XHTML; the table of contents of version 2 is NCX."""

from __future__ import annotations

import html
import posixpath
from collections.abc import Callable
from urllib.parse import unquote

from ..document import Collector, Document, FileError
from ..fragment import ALONE, Code
from ..fragment import CLOSE as CLOSES
from ..fragment import OPEN as OPENS
from ..markup import CLOSE, OPEN, TEXT, NotWellFormed, local, xml_source, xml_tokens
from ..package import Package, package
from .format import Format, Options
from .html import escape, read_html, read_xhtml

_KINDS = {OPEN: OPENS, CLOSE: CLOSES}


def _read(data: bytes, options: Options) -> Package:
    pages: set[str] = set()

    def manifest(name: str, bytes_of: Callable[[str], bytes]) -> None:
        if name == "META-INF/container.xml":
            for root in _values(bytes_of(name), "rootfile", "full-path"):
                for href in _values(bytes_of(root), "item", "href", "application/xhtml+xml"):
                    pages.add(posixpath.normpath(posixpath.join(posixpath.dirname(root), href)))

    def page(name: str, bytes_of: Callable[[str], bytes]) -> Document | None:
        if name in pages:
            return _page(bytes_of(name), name, options)
        return _contents(bytes_of(name)) if name.endswith(".ncx") else None

    package(data, manifest)
    if not pages:
        raise FileError("the archive has no pages of an EPUB")
    return package(data, page)


def _values(data: bytes, element: str, attribute: str, media_type: str = "") -> list[str]:
    found = []
    for token in xml_tokens(xml_source(data)):
        if token.kind != CLOSE and local(token.name) == element:
            named = token.attributes
            if not media_type or named.get("media-type") == media_type:
                found.append(unquote(named.get(attribute, "")))
    return found


def _page(data: bytes, name: str, options: Options) -> Document:
    """A page; one that is not well-formed, as some programs write, is read as browsers read it."""
    try:
        return read_xhtml(data, options)
    except NotWellFormed as error:
        page = read_html(data, options)
        page.notes.append(f"{name} is read as HTML: {error}")
        return page


def _contents(data: bytes) -> Document:
    source = xml_source(data)
    collector = Collector(source, escape)
    is_text = False
    for token in xml_tokens(source):
        if local(token.name) == "text":
            is_text = token.kind == OPEN
            collector.end()
        elif is_text and token.kind == TEXT:
            collector.add(html.unescape(token.raw), token.start, token.end)
        elif is_text:
            kind = _KINDS.get(token.kind, ALONE)
            collector.add(Code(token.raw, kind), token.start, token.end)
    return Document(source, collector.slots, unencodable="xmlcharrefreplace")


FORMAT = Format("EPUB", (".epub",), "application/epub+zip", _read)
