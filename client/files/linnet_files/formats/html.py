"""HTML and XHTML: the bytes outside of the text, of the title and of a few attributes stay."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

from ..document import BLANKS, Collector, Document, Slot, Source, one, spliced
from ..fragment import ALONE, Code, Fragment
from ..fragment import CLOSE as CLOSES
from ..fragment import OPEN as OPENS
from ..markup import (
    CLOSE,
    EMPTY,
    OPEN,
    OTHER,
    RAW,
    TEXT,
    Token,
    html_tokens,
    xml_source,
    xml_tokens,
)
from .format import Format, Options

# All other tags end a sentence.
_INLINE = re.compile(
    "a|abbr|acronym|audio|b|bdi|bdo|big|button|canvas|cite|data|del|dfn|em|embed|font|i|img|input"
    "|ins|label|mark|meter|nobr|object|output|picture|progress|q|rb|rp|rt|ruby|s|slot|small|source"
    "|span|strike|strong|sub|sup|time|track|tt|u|video|wbr"
).fullmatch
# Elements that stand for a word of the sentence and are not translated.
_COPIED = {"code", "kbd", "samp", "var", "math", "svg"}
# These are copied if they have no letters: the number of a note, a power, an index.
_RAISED = {"sup", "sub"}
_NOTE_TOKENS = 8  # at most, in one of them
# Elements that are no text.
_SKIPPED = {"script", "style", "textarea", "pre", "xmp", "iframe", "noembed", "noframes"}
_SELF_ENDING = {"p", "li", "dt", "dd", "tr", "td", "th", "option"}
_ATTRIBUTES = {"title", "alt", "placeholder", "aria-label", "summary"}
_META = {"description", "og:title", "og:description", "twitter:title", "twitter:description"}


# Tags of templates (Jinja, Liquid, Handlebars, ERB), in which "<" and "&" are no markup. One that
# is not closed ends where the next begins, so a text is read in linear time.
_TEMPLATE = re.compile(
    r"\{\{\{[^{}]*+\}\}\}|\{\{(?:[^{}]++|\{[^{}]*+\})*+\}\}"
    r"|\{%(?:[^{}%]++|%(?!\})|\{[^{}]*+\})*+%\}|<%(?:[^%<]++|%(?!>)|<(?!%))*+%>"
)
_BEGUN = r"(?:\{%|\{\{|<%)[-~]?[\s}]*"
# Tags that do not stand for a word, and those between two texts of which a page has one.
_CONTROL = re.compile(rf"\{{%|<%(?![=-])|{_BEGUN}(?:[#/^!>]|(?:else|end|if|range|with|block)\b)")
_CHOICE = re.compile(rf"{_BEGUN}(?:else|elif|elsif|elseif|when)\b")


def _read(data: bytes, options: Options) -> Document:
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<\?xml", data):
        return read_xhtml(data, options)
    return read_html(data, options)


def read_html(data: bytes, options: Options) -> Document:
    declared = re.search(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]+)""", data[:4096], re.I)
    name = declared[1].decode() if declared else "utf-8"
    # Browsers read these as a superset of Latin-1.
    name = "cp1252" if name.lower() in ("iso-8859-1", "latin-1", "latin1", "us-ascii") else name
    source = Source.of(data, options.encoding or name)
    slots = page_slots(source, html_tokens(source))
    return Document(source, slots, unencodable="xmlcharrefreplace")


def read_xhtml(data: bytes, options: Options) -> Document:
    source = xml_source(data, options.encoding)
    return Document(source, page_slots(source, xml_tokens(source)), unencodable="xmlcharrefreplace")


def escape(text: str) -> str:
    """Keeps invisible characters visible in the file."""
    return html.escape(text, quote=False).replace("\xa0", "&#160;")


def folded(text: str) -> str:
    """The text as a browser shows it."""
    return re.sub(r"[ \t\r\n\f]+", " ", text)


def page_slots(source: Source, tokens: Iterable[Token]) -> list[Slot]:
    collector = Collector(source, escape)
    found = list(tokens)
    position = 0
    while position < len(found):
        token = found[position]
        position += 1
        if token.kind == TEXT:
            end = token.end
            while position < len(found) and found[position].kind == TEXT:
                end = found[position].end
                position += 1
            _add_text(collector, source, token.start, end)
        elif token.kind in (RAW, OTHER):
            collector.add(Code(token.raw), token.start, token.end)
        else:
            name = token.name.lower().rpartition(":")[2]
            is_copied = name in _COPIED or (name in _RAISED and _is_note(found, position))
            is_kept = is_copied or _is_kept(token)
            if token.kind == OPEN and (is_kept or name in _SKIPPED):
                position = _end_of(found, position)
                end = found[position - 1].end
                if is_copied or _INLINE(name):
                    raw = source.text[token.start : end]
                    collector.add(Code(raw, is_word=True), token.start, end)
                else:
                    collector.end()
                continue
            if token.kind != CLOSE and not is_kept:
                for slot in _attribute_slots(token, name):
                    collector.add_inner(slot)
            if _INLINE(name):
                kind = {OPEN: OPENS, CLOSE: CLOSES, EMPTY: ALONE}[token.kind]
                collector.add(Code(token.raw, kind), token.start, token.end)
            else:
                collector.end()
    collector.end()
    return collector.slots


def _add_text(collector: Collector, source: Source, start: int, end: int) -> None:
    """Adds a text, whose template tags are codes."""

    def add(end: int) -> None:
        if start < end:
            collector.add(folded(html.unescape(source.text[start:end])), start, end)

    for tag in _TEMPLATE.finditer(source.text, start, end):
        add(tag.start())
        start = tag.end()
        is_control = _CONTROL.match(tag[0]) is not None
        if _CHOICE.match(tag[0]) or (is_control and source.text[start : start + 1].isupper()):
            collector.end()  # the texts on both sides would be one word
        else:
            collector.add(Code(tag[0], is_word=not is_control), tag.start(), start)
    add(end)


def _is_kept(token: Token) -> bool:
    if "translate" not in token.raw:
        return False
    named = token.attributes
    return (
        named.get("translate", "").lower() == "no"
        or "notranslate" in named.get("class", "").split()
    )


def _is_note(tokens: list[Token], position: int) -> bool:
    """True if the element that begins before `position` ends soon and has text without letters."""
    name, text = tokens[position - 1].name, ""
    for token in tokens[position : position + _NOTE_TOKENS]:
        if token.kind == CLOSE and token.name == name:
            return bool(text.strip()) and not any(map(str.isalpha, text))
        text += html.unescape(token.raw) if token.kind == TEXT else ""
    return False


def _end_of(tokens: list[Token], position: int) -> int:
    """The position behind the element that begins before `position`. The end tag of some elements
    may be missing: then the next sibling or the end of the parent ends it."""
    first = tokens[position - 1].name
    open_ = [first]
    while position < len(tokens):
        token = tokens[position]
        if token.kind == OPEN:
            if token.name == first and len(open_) == 1 and first in _SELF_ENDING:
                return position
            open_.append(token.name)
        elif token.kind == CLOSE:
            if token.name not in open_:
                return position
            while open_.pop() != token.name:
                pass
            if not open_:
                return position + 1
        position += 1
    return position


def _attribute_slots(token: Token, name: str) -> list[Slot]:
    meta = name == "meta" and {
        token.attributes.get("name", ""),
        token.attributes.get("property", ""),
    }
    found = []
    for attribute, value, start, end in token.attribute_places():
        wanted = attribute == "content" and meta and meta & _META
        if (attribute.lower() in _ATTRIBUTES or wanted) and any(map(str.isalpha, value)):
            quote = token.raw[start - token.start - 1]
            raw = token.raw[start - token.start : end - token.start]
            start, end = end - len(raw.lstrip(BLANKS)), start + len(raw.rstrip(BLANKS))
            fragment = Fragment((folded(value).strip(),), f"attribute {attribute}")
            found.append(one(start, end, fragment, spliced(_attribute(quote))))
    return found


def _attribute(quote: str) -> Callable[[str], str]:
    """Writes a value between two quotes, or one that had none."""
    if quote not in "\"'":
        return lambda text: f'"{html.escape(text)}"'
    return lambda text: escape(text).replace(quote, html.escape(quote))


FORMAT = Format("HTML", (".html", ".htm", ".xhtml", ".xht"), "text/html", _read)
