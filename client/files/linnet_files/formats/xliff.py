"""XLIFF 1.2 and 2.0 to 2.2: the targets of units without a translation."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from xml.sax.saxutils import quoteattr

from ..document import Document, FileError, Slot, Source, framed
from ..fragment import ALONE, Code, Fragment, Part, joined
from ..fragment import CLOSE as CLOSES
from ..fragment import OPEN as OPENS
from ..markup import CLOSE, EMPTY, OPEN, RAW, TEXT, Token, end_of, local, xml_source, xml_tokens
from ..variables import icu_note, parts_of
from .format import Format, Options

_PAIRS = {"g", "pc", "mrk"}
# Elements that are one end of a pair.
_STARTS, _ENDS = {"bpt", "bx", "sc", "sm"}, {"ept", "ex", "ec", "em"}
_NEW = {"new", "needs-translation", "initial"}  # states of a target that is to be replaced


def _read(data: bytes, options: Options) -> Document:
    source = xml_source(data, options.encoding)
    tokens = list(xml_tokens(source))
    root = next((it for it in tokens if it.kind in (OPEN, EMPTY)), None)
    if root is None or local(root.name) != "xliff":
        raise FileError("line 1: the root element is not <xliff>")
    notes: list[str] = []
    slots = sorted(_slots(source, tokens, options, notes), key=lambda slot: slot.start)
    return Document(source, slots, unencodable="xmlcharrefreplace", notes=notes)


def _slots(
    source: Source, tokens: Sequence[Token], options: Options, notes: list[str]
) -> Iterator[Slot]:
    kept: list[bool] = []  # of each open element: its text is not translated
    unit = ""
    for position, token in enumerate(tokens):
        name = local(token.name)
        if token.kind == CLOSE:
            kept.pop()
        elif token.kind in (OPEN, EMPTY):
            said = token.attributes
            if name in ("trans-unit", "unit"):
                unit = said.get("id", "")
            if options.target:
                yield from _language(token, name, said, options.target)
            translate = said.get("translate", "")
            is_kept = translate == "no" or (bool(kept) and kept[-1] and translate != "yes")
            if name in ("trans-unit", "segment") and token.kind == OPEN and not is_kept:
                end = end_of(tokens, position)
                yield from _unit(source, tokens[position:end], f"unit {unit}", options, notes)
            if token.kind == OPEN:
                kept.append(is_kept)


def _language(token: Token, name: str, said: dict[str, str], target: str) -> Iterator[Slot]:
    """Names the target language where it is missing: a file with targets needs it."""
    wanted = {"file": "target-language", "xliff": "trgLang"}.get(name)
    is_new = "srcLang" in said or "source-language" in said
    if wanted and is_new and wanted not in said:
        place = token.end - (2 if token.kind == EMPTY else 1)
        text = f" {wanted}={quoteattr(target)}"
        yield Slot(place, place, (), lambda _: text)


def _unit(
    source: Source, tokens: Sequence[Token], place: str, options: Options, notes: list[str]
) -> Iterator[Slot]:
    """The target of a unit of version 1.2, or of a segment of version 2."""
    found = _children(tokens)
    of = found.get("seg-source") or found.get("source")
    if of is None or of[0].kind == EMPTY:
        return
    target = found.get("target")
    # Version 1.2 has the state at the target, version 2 at the segment.
    state, own = (it[0].attributes.get("state", "") if it else "" for it in (target, tokens))
    has_target = target and len(target) > 2 and not {state, own} & _NEW
    if has_target and not options.all_entries:
        return
    raw = "".join(token.raw for token in of if token.kind in (TEXT, RAW))
    if note := icu_note(html.unescape(raw), place):  # Angular's messages
        notes.append(note)
        return
    keeps = any(it.attributes.get("xml:space") == "preserve" for it in (tokens[0], of[0]))
    head, core, tail = framed(_parts(source, of[1:-1], keeps))
    fragment = Fragment(core, place)

    def said(answers: Sequence[tuple[Part, ...] | None]) -> str:
        return "".join(
            part.raw if isinstance(part, Code) else html.escape(part, quote=False)
            for part in (*head, *(answers[0] or core), *tail)
        )

    if target:
        start, end, blank = target[0].start, target[-1].end, ""
        opening = re.sub(r"\s*/?>$", ">", target[0].raw)
        if state in _NEW:
            opening = _translated(opening)
    else:
        start = end = of[-1].end
        blank = source.text[: of[0].start]
        blank = blank[len(blank.rstrip()) :]
        opening = f"<{of[0].name.removesuffix(local(of[0].name))}target>"
    closing = f"</{opening[1:-1].split()[0]}>"
    segment = ""
    if own in _NEW:
        segment = _translated(tokens[0].raw) + source.text[tokens[0].end : start]
        start = tokens[0].start

    def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
        return f"{segment}{blank}{opening}{said(answers)}{closing}"

    yield Slot(start, end, (fragment,), write, beside_source=True)


def _translated(tag: str) -> str:
    """A start tag with another state."""
    return re.sub(r"(\sstate\s*=\s*[\"'])[\w-]+", r"\1translated", tag)


def _children(tokens: Sequence[Token]) -> dict[str, Sequence[Token]]:
    found: dict[str, Sequence[Token]] = {}
    position = 1
    while position < len(tokens) - 1:
        end = end_of(tokens, position)
        found.setdefault(local(tokens[position].name), tokens[position:end])
        position = end
    return found


def _parts(source: Source, tokens: Sequence[Token], keeps: bool) -> tuple[Part, ...]:
    """The parts of a text, of which `keeps` says that it keeps its line ends."""
    parts: list[Part] = []
    position = 0
    while position < len(tokens):
        token, end = tokens[position], position + 1
        name = local(token.name)
        if token.kind == TEXT:
            parts += _read_text(html.unescape(token.raw), keeps)
        elif token.kind == RAW:
            parts += _read_text(token.raw[9:-3], keeps)
        elif name in _PAIRS and token.kind != EMPTY and not _is_protected(token):
            parts.append(Code(token.raw, OPENS if token.kind == OPEN else CLOSES))
        else:
            end = end_of(tokens, position)
            raw = source.text[token.start : tokens[end - 1].end]
            kind = OPENS if name in _STARTS else CLOSES if name in _ENDS else ALONE
            is_word = kind == ALONE and bool(name) and 'ctype="lb"' not in raw
            parts.append(Code(raw, kind, is_word))
        position = end
    return joined(parts)


def _read_text(text: str, keeps: bool) -> Iterator[Part]:
    """The parts of a text, which may have tags and variables of a program."""
    for line in re.split(r"([ \t]*\n\s*)", text) if keeps else (text,):
        if keeps and "\n" in line:
            yield Code(line)
            continue
        for part in parts_of(line):
            if isinstance(part, Code) and not part.raw.isspace():
                yield replace(part, raw=html.escape(part.raw, quote=False))
            else:
                yield part if isinstance(part, str) else part.raw


def _is_protected(token: Token) -> bool:
    return 'translate="no"' in token.raw or 'mtype="protected"' in token.raw


FORMAT = Format("XLIFF", (".xlf", ".xliff"), "application/xliff+xml", _read)
