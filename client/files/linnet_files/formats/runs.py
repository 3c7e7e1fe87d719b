"""Paragraphs of Office Open XML: runs of text with properties. Runs with the properties of most of
the paragraph are plain text, others are pairs of codes; a paragraph is written as new runs."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..document import BLANKS, Document, Slot, Source, framed, nested, trimmed
from ..fragment import ALONE, CLOSE, OPEN, Code, Fragment, Part, joined, pairs
from ..markup import CLOSE as CLOSES
from ..markup import OPEN as OPENS
from ..markup import RAW, TEXT, Token, end_of, local, xml_source, xml_tokens

# Hints of a program to itself, which it writes anew.
_DROPPED = {"proofErr", "lastRenderedPageBreak"}
_CONTAINERS = {
    "hyperlink",
    "ins",
    "moveTo",
    "smartTag",
    "sdt",
    "sdtContent",
    "dir",
    "bdo",
    "customXml",
}
_NO_RUN = {
    "pPr",
    "rPr",
    "endParaRPr",
    "sdtPr",
    "sdtEndPr",
    "rPh",
    "phoneticPr",
    "customXmlPr",
    "smartTagPr",
}
# Elements of a run that stand for a word: fields, formulas, and a word with its reading.
_WORDS = {"fldSimple", "fld", "oMath", "sym", "ruby"}
_BREAKS = {"br", "cr", "tab"}  # end a sentence
# Properties of superscripts and subscripts, in text and in drawings.
_RAISED = re.compile(r"""vertAlign\b[^>]*\bval=["']su|\bbaseline=["']-?[1-9]""")
_NOISE = re.compile(r"<[\w:]*(?:lang|noProof)\b[^>]*/>")


@dataclass(frozen=True)
class Kind:
    """The names of the elements of a paragraph."""

    paragraph: set[str]
    has_space: bool  # xml:space is needed to keep blanks at the ends of a text


class _Properties(Code):
    """The properties of the runs between an opening and a closing code."""


@dataclass
class _Piece:
    """A text or a code of a paragraph with its place."""

    part: Part
    start: int
    end: int
    properties: str = ""
    tags: tuple[str, str] = ("", "")  # before the properties, and between them and the text
    # A part of a run, which a slot that begins or ends with it must close before or open again.
    run: tuple[str, str] = ("", "")


def document(data: bytes, kind: Kind, leave: Callable[[str], bool] = lambda _: False) -> Document:
    """The paragraphs of a part of a package, but those whose text `leave` is true for."""
    source = xml_source(data)
    slots = list(_slots(source, list(xml_tokens(source)), kind, leave))
    return Document(source, slots, unencodable="xmlcharrefreplace")


def _slots(
    source: Source, tokens: Sequence[Token], kind: Kind, leave: Callable[[str], bool]
) -> Iterator[Slot]:
    position = number = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == OPENS and local(token.name) in kind.paragraph:
            end = end_of(tokens, position)
            number += 1
            reader = _Paragraph(source, kind, leave)
            reader.read(tokens[position + 1 : end - 1])
            yield from reader.slots(f"paragraph {number}")
            position = end
        else:
            position += 1


class _Paragraph:
    def __init__(self, source: Source, kind: Kind, leave: Callable[[str], bool]):
        self._source, self._kind, self._leave = source, kind, leave
        self._pieces: list[_Piece] = []
        self._inner: list[Slot] = []

    def read(self, tokens: Sequence[Token]) -> None:
        """Reads the content of a paragraph, or of a container in one."""
        position = 0
        while position < len(tokens):
            token, end = tokens[position], end_of(tokens, position)
            name = local(token.name)
            if token.kind == OPENS and name == "r":
                self._run(tokens[position:end])
            elif token.kind == OPENS and name == "t":  # a cell without runs
                self._text(tokens[position:end], "", ("", token.raw))
            elif token.kind == OPENS and name in _CONTAINERS:
                self._add(Code(token.raw, OPEN), token.start, token.end)
                self.read(tokens[position + 1 : end - 1])
                last = tokens[end - 1]
                self._add(Code(last.raw, CLOSE), last.start, last.end)
            elif name in _NO_RUN and not self._pieces and token.kind != CLOSES:
                pass  # before the text
            elif not (token.kind == TEXT and not token.raw.strip()):
                self._opaque(tokens[position:end], name in _WORDS)
            position = end

    def _add(self, part: Part, start: int, end: int) -> None:
        self._pieces.append(_Piece(part, start, end))

    def _opaque(self, tokens: Sequence[Token], is_word: bool) -> None:
        """An element that is a code as a whole, with paragraphs in it perhaps: a text box."""
        name, start, end = local(tokens[0].name), tokens[0].start, tokens[-1].end
        raw = "" if name in _DROPPED else self._source.text[start:end]
        self._add(Code(raw, ALONE, is_word), start, end)
        if name in _BREAKS:
            self._pieces[-1].tags = (name, raw)
        if len(tokens) > 2:
            self._inner += _slots(self._source, tokens[1:], self._kind, self._leave)

    def _run(self, tokens: Sequence[Token]) -> None:
        position, properties = 1, ""
        head = tokens[0]
        prefix = head.name[: -len("r")]
        last = len(tokens) - 1
        if tokens[1].kind == TEXT:  # the white space of a file that is indented
            position = 2
        if tokens[last - 1].kind == TEXT:
            last -= 1
        first = tokens[position]
        if first.kind != CLOSES and local(first.name) == "rPr":
            position = end_of(tokens, position)
            properties = self._source.text[first.start : tokens[position - 1].end]
        begun = head.start
        while position < last:
            token, end = tokens[position], end_of(tokens, position)
            name = local(token.name)
            is_last = end == last
            after = tokens[-1].end if is_last else tokens[end - 1].end
            pieces = len(self._pieces)
            if name == "t" and not _is_note(tokens[position:end], properties):
                opening = f"<{prefix}r>", f"<{token.name}>"
                self._text(tokens[position:end], properties, opening, begun, after)
                begun = after
            elif name == "noBreakHyphen":
                self._pieces.append(
                    _Piece("\u2011", begun, after, properties, (f"<{prefix}r>", f"<{prefix}t>"))
                )
                begun = after
            elif not (token.kind == TEXT and not token.raw.strip()):
                raw = self._source.text[token.start : tokens[end - 1].end]
                whole = "" if name in _DROPPED else f"<{prefix}r>{properties}{raw}</{prefix}r>"
                self._add(Code(whole, ALONE, name in _WORDS or name == "t"), begun, after)
                if name in ("fldChar", "instrText", *_BREAKS):
                    self._pieces[-1].tags = (name, raw)
                if len(tokens[position:end]) > 2:
                    self._inner += _slots(
                        self._source, tokens[position + 1 : end], self._kind, self._leave
                    )
                begun = after
            for piece in self._pieces[pieces:]:
                closing = "" if piece.start == head.start else tokens[-1].raw
                piece.run = closing, "" if is_last else head.raw + properties
            position = end

    def _text(
        self,
        tokens: Sequence[Token],
        properties: str,
        tags: tuple[str, str],
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        text = _characters(tokens)
        if self._kind.has_space and 'xml:space="preserve"' not in tokens[0].raw:
            text = text.strip(BLANKS)
        self._pieces.append(
            _Piece(
                text,
                tokens[0].start if start is None else start,
                tokens[-1].end if end is None else end,
                properties,
                tags,
            )
        )

    def slots(self, place: str) -> list[Slot]:
        """Line breaks, tabs, and pairs around them stand between two slots."""
        found: list[Slot] = []
        lines: list[list[_Piece]] = [[]]
        for piece in _fields(self._pieces):
            if piece.tags[0] in _BREAKS:
                lines.append([])
            else:
                lines[-1].append(piece)
        for line in lines:
            ends = pairs([piece.part for piece in line])
            matched = {*ends, *ends.values()}
            begun = 0
            for index, piece in enumerate(line):
                if (
                    isinstance(piece.part, Code)
                    and piece.part.kind != ALONE
                    and index not in matched
                ):
                    found += self._slot(line[begun:index], place)
                    begun = index + 1
            found += self._slot(line[begun:], place)
        return sorted([*found, *self._inner], key=lambda it: it.start)

    def _slot(self, pieces: list[_Piece], place: str) -> Iterator[Slot]:
        first, last = trimmed([piece.part for piece in pieces])
        pieces = [piece for piece in pieces[first:last] if piece.part != Code("")]
        texts = [piece for piece in pieces if isinstance(piece.part, str)]
        if not texts or self._leave("".join(str(piece.part) for piece in texts)):
            return
        weights: Counter[str] = Counter()
        for piece in texts:
            weights[_NOISE.sub("", piece.properties)] += len(str(piece.part)) or 1
        base = next(
            it.properties
            for it in texts
            if _NOISE.sub("", it.properties) == weights.most_common(1)[0][0]
        )
        parts: list[Part] = []
        current = base
        for piece in pieces:
            wanted = piece.properties if isinstance(piece.part, str) else base
            if _NOISE.sub("", wanted) != _NOISE.sub("", current):
                if current != base:
                    parts.append(_Properties("", CLOSE))
                if _NOISE.sub("", wanted) != _NOISE.sub("", base):
                    parts.append(_Properties(wanted, OPEN))
                    current = wanted
                else:
                    current = base
            parts.append(piece.part)
        if current != base:
            parts.append(_Properties("", CLOSE))
        found = joined(parts)
        head, core, tail = framed(found)
        tags = texts[0].tags
        start, end = pieces[0].start, pieces[-1].end
        inner = [slot for slot in self._inner if start <= slot.start < end]
        self._inner = [slot for slot in self._inner if not start <= slot.start < end]

        def write(answer: tuple[Part, ...]) -> str:
            said = _written((*head, *answer, *tail), base, tags, self._kind.has_space)
            return pieces[0].run[0] + said + pieces[-1].run[1]

        fragment = Fragment(core, place)
        codes = [(it.part, it.start, it.end) for it in pieces if isinstance(it.part, Code)]
        yield nested(self._source, start, end, fragment, codes, inner, write)


def _characters(tokens: Sequence[Token]) -> str:
    return "".join(
        token.raw[9:-3] if token.kind == RAW else html.unescape(token.raw)
        for token in tokens
        if token.kind in (TEXT, RAW)
    )


def _is_note(tokens: Sequence[Token], properties: str) -> bool:
    """True for the number of a note, a power or an index: it stays as it is beside its word."""
    text = _characters(tokens)
    return bool(text.strip() and _RAISED.search(properties) and not any(map(str.isalpha, text)))


def _written(parts: Sequence[Part], base: str, tags: tuple[str, str], has_space: bool) -> str:
    said: list[str] = []
    properties = [base]
    run, text_tag = tags
    if has_space and "xml:space" not in text_tag:
        text_tag = text_tag[:-1] + ' xml:space="preserve">'
    ends = [f"</{tag[1:].split()[0].rstrip('>')}>" if tag else "" for tag in (text_tag, run)]
    for part in joined(parts):
        if isinstance(part, _Properties):
            if part.kind == OPEN:
                properties.append(part.raw)
            else:
                properties.pop()
        elif isinstance(part, Code):
            said.append(part.raw)
        else:
            text = html.escape(part, quote=False)
            said.append(f"{run}{properties[-1] if run else ''}{text_tag}{text}{ends[0]}{ends[1]}")
    return "".join(said)


def _fields(pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """Joins the runs of a field to one code, since its text is computed; of a link, its ends are a
    pair. A field that ends in another paragraph stays as it is."""
    position = 0
    while position < len(pieces):
        end = _field_end(pieces, position)
        if end is None:
            yield pieces[position]
            position += 1
            continue
        field = pieces[position:end]
        instruction = "".join(it.tags[1] for it in field if it.tags[0] == "instrText")
        separate = next(
            (index for index, it in enumerate(field) if _is_field(it, "separate")), len(field) - 1
        )
        link = re.search(r">\s*HYPERLINK\b", instruction)
        if link and all(it.tags[0] != "fldChar" for it in field[separate + 1 : -1]):
            yield _whole(field[: separate + 1], OPEN)
            yield from field[separate + 1 : -1]
            yield _whole(field[-1:], CLOSE)
        else:
            yield _whole(field, ALONE)
        position = end


def _whole(field: Sequence[_Piece], kind: int) -> _Piece:
    raws = []
    for piece in field:
        if isinstance(piece.part, Code):
            raws.append(piece.part.raw)
        else:
            raws.append(_written([piece.part], piece.properties, piece.tags, has_space=True))
    code = Code("".join(raws), kind, kind == ALONE)
    run = field[0].run[0], field[-1].run[1]
    return _Piece(code, field[0].start, field[-1].end, run=run)


def _is_field(piece: _Piece, type_: str) -> bool:
    return piece.tags[0] == "fldChar" and f'fldCharType="{type_}"' in piece.tags[1]


def _field_end(pieces: Sequence[_Piece], position: int) -> int | None:
    if not _is_field(pieces[position], "begin"):
        return None
    depth = 0
    for index in range(position, len(pieces)):
        depth += _is_field(pieces[index], "begin") - _is_field(pieces[index], "end")
        if depth == 0:
            return index + 1
    return None
