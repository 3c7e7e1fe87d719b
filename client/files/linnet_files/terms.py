"""Terms for a glossary, and translations as a TMX (https://www.ttt.org/oscarStandards/tmx/)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .document import FileError, Source
from .fragment import Part
from .job import Report, write_whole
from .markup import CLOSE, OPEN, RAW, TEXT, xml_source, xml_tokens
from .translate import Outcome
from .version import __version__

MAX_TERMS = 256  # of a request
MAX_TERM_BYTES = 256
_NOT_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that XML cannot have


def read_glossary(path: Path, source: str, target: str) -> list[tuple[str, str]]:
    """The terms in a TMX, or in lines of the form SOURCE<tab>TARGET, where an empty target keeps
    the source. Raises FileError for a file that cannot be read, or that has more or longer terms
    than a request may have."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    try:
        read = tmx_terms(data, source, target) if path.suffix == ".tmx" else _lines(data)
        found = dict(read)
        if not found:
            raise FileError(f"no terms from {source or 'any language'} to {target}")
        if len(found) > MAX_TERMS:
            raise FileError(f"{len(found)} terms, a glossary holds at most {MAX_TERMS}")
        for term in (it for pair in found.items() for it in pair):
            if len(term.encode()) > MAX_TERM_BYTES:
                raise FileError(f'"{term[:40]}…" has more than {MAX_TERM_BYTES} bytes')
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    return list(found.items())


def _lines(data: bytes) -> Iterable[tuple[str, str]]:
    seen: dict[str, int] = {}  # the line of each source
    for number, line in enumerate(Source.of(data).text.splitlines(), 1):
        if line.strip():
            source, *rest = (cell.strip() for cell in line.split("\t"))
            if len(rest) != 1 or not source:
                raise FileError(f"line {number} is not SOURCE<tab>TARGET")
            if (first := seen.setdefault(source, number)) != number:
                raise FileError(f"line {number} has the source of line {first} again")
            yield source, rest[0]


def tmx_terms(data: bytes, source: str, target: str) -> Iterable[tuple[str, str]]:
    """The pairs of texts in two languages; without a source language, the other one of each unit.
    Texts with codes are left out."""
    unit: dict[str, str] = {}
    language, text, inside, has_codes = "", "", False, False
    for token in xml_tokens(xml_source(data)):
        if token.kind == OPEN and token.name == "tu":
            unit = {}
        elif token.kind == OPEN and token.name == "tuv":
            named = token.attributes
            language, has_codes = named.get("xml:lang", named.get("lang", "")).lower(), False
        elif token.name == "seg" and token.kind in (OPEN, CLOSE):
            inside = token.kind == OPEN
            if inside:
                text = ""
            elif not has_codes:
                unit[language] = text.strip()
        elif inside and token.kind in (TEXT, RAW):
            text += html.unescape(token.raw) if token.kind == TEXT else token.raw[9:-3]
        elif inside:
            has_codes = True
        elif token.kind == CLOSE and token.name == "tu":
            to = _named(unit, target)
            of = _named(unit, source) if source else next((it for it in unit if it != to), "")
            if of and to and unit[of] and unit[to]:
                yield unit[of], unit[to]


def _named(unit: dict[str, str], language: str) -> str:
    base = language.lower().split("-")[0]
    exact = (it for it in unit if it == language.lower())
    return next(exact, next((it for it in unit if it.split("-")[0] == base), ""))


def write_tmx(path: Path, reports: Iterable[Report], source: str, target: str) -> None:
    """Writes each translated text once, with its codes as placeholders."""
    said = dict.fromkeys(
        (_segment(fragment.parts), _segment(answer.parts))
        for report in reports
        for fragment, answer in zip(report.fragments, report.answers, strict=True)
        if answer.parts and answer.outcome in (Outcome.TRANSLATED, Outcome.FORCED)
    )
    units = [
        f"<tu><tuv xml:lang={quoteattr(source)}><seg>{of}</seg></tuv>"
        f"<tuv xml:lang={quoteattr(target)}><seg>{to}</seg></tuv></tu>\n"
        for of, to in said
        if not _NOT_XML.search(of + to)
    ]
    header = (
        f'<header creationtool="linnet-file" creationtoolversion="{__version__}" '
        f'segtype="paragraph" o-tmf="linnet" adminlang="en" srclang={quoteattr(source)} '
        'datatype="unknown"/>'
    )
    text = ['<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">', header, "<body>\n"]
    write_whole(path, "".join([*text, *units, "</body></tmx>\n"]).encode())


def _segment(parts: tuple[Part, ...]) -> str:
    """The text in TMX: a code is its characters in the file, between <ph> and </ph>."""
    return "".join(
        html.escape(part, quote=False)
        if isinstance(part, str)
        else f'<ph x="{number}">{html.escape(part.raw, quote=False)}</ph>'
        for number, part in enumerate(parts)
    )
