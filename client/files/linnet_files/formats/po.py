"""Message catalogues of gettext, PO and POT. The file is spliced: polib would move obsolete entries
and the header, drop comments, and change backslashes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..document import Document, FileError, Slot, Source
from ..fragment import Part
from ..message import Message
from ..variables import icu_note
from .format import Format, Options
from .plurals import numbers, rule_of

_WIDTH = 76  # of a string, as gettext's tools wrap
_KEYWORD = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d{1,3})\])?)[ \t]*(?=")')
_STRING = re.compile(r'[ \t]*"((?:[^"\\\n]|\\.)*+)"[ \t\r]*')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {value: f"\\{name}" for name, value in _ESCAPES.items()} | {'"': '\\"', "\\": "\\\\"}
_FORMATS = re.compile(r"\b(?!no-)(?:possible-)?[\w-]+-format\b")
_POSITIONAL = re.compile(
    r"\b(?:c|objc|php|gcc-internal|gfc-internal|qt|java|csharp|boost)-format\b"
)


@dataclass
class _Value:
    """A string of an entry: its characters `start` to `end` in the file, from the first quote."""

    start: int
    end: int
    text: str


@dataclass
class _Entry:
    line: int = 0
    flags: str = ""
    strings: dict[str, _Value] = field(default_factory=dict)  # by keyword
    keyword_starts: dict[str, int] = field(default_factory=dict)


def _read(data: bytes, options: Options) -> Document:
    charset = re.search(rb"charset=([\w.:-]+)", data)
    name = charset[1].decode() if charset and charset[1] != b"CHARSET" else ""
    source = Source.of(data, options.encoding or name)
    slots: list[Slot] = []
    notes: list[str] = []
    rule = ""
    for entry in _entries(source):
        if "msgid" not in entry.strings:
            continue
        if not entry.strings["msgid"].text and "msgctxt" not in entry.strings:
            header = entry.strings["msgstr"]
            rule = header.text
            if options.target:
                rule = _header(header.text, options)
                if rule != header.text:
                    said = _quoted(rule)
                    slots.append(Slot(header.start, header.end, (), lambda _, it=said: it))  # type: ignore[misc]
        elif note := icu_note(entry.strings["msgid"].text, f"line {entry.line}"):
            notes.append(note)
        else:
            slots += _slots(entry, rule, options)
    return Document(source, slots, declare_utf8=_declare_utf8, notes=notes)


def _declare_utf8(text: str) -> str:
    return re.sub(r"(charset=)[\w.:-]+", r"\1UTF-8", text, count=1)


def _header(text: str, options: Options) -> str:
    """The header without the placeholders that msgfmt refuses."""
    text = text.replace("charset=CHARSET", "charset=UTF-8")
    text = re.sub(r"(?m)^Language: *$", f"Language: {options.target.replace('-', '_')}", text)
    if numbers(text) is None:
        line = f"Plural-Forms: {rule_of(options.target)}\n"
        text, count = re.subn(r"(?m)^Plural-Forms:.*\n", lambda _: line, text)
        text += "" if count else line
    return text


def _entries(source: Source) -> Iterator[_Entry]:
    """The entries that are not obsolete. Raises FileError for a line that belongs to none."""
    entry, keyword = _Entry(), ""
    position = 0
    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", source.text), 1):
        content = line.strip()
        if content.startswith("#~") or not content:
            keyword = "" if content else keyword
        elif content.startswith("#"):
            if "msgid" in entry.strings:
                yield _checked(entry)
                entry = _Entry()
            keyword = ""
            if content.startswith("#,"):
                entry.flags += content[1:]
        elif found := _KEYWORD.match(line):
            keyword = found[1]
            is_next = keyword == "msgctxt" or (keyword == "msgid" and "msgid" in entry.strings)
            if is_next and entry.strings:
                yield _checked(entry)
                entry = _Entry()
            if keyword in entry.strings:
                raise FileError(f"line {number}: the entry has {keyword} twice")
            entry.line = entry.line or number
            entry.keyword_starts[keyword] = position + len(line) - len(line.lstrip())
            _add(entry, keyword, line[found.end() :], position + found.end(), number)
        elif content.startswith('"') and keyword:
            _add(entry, keyword, line, position, number)
        else:
            raise FileError(f"line {number}: {content[:40]!r} is neither a keyword, a string nor #")
        position += len(line)
    if entry.strings:
        yield _checked(entry)


def _checked(entry: _Entry) -> _Entry:
    if "msgid" not in entry.strings or not any(it.startswith("msgstr") for it in entry.strings):
        raise FileError(f"line {entry.line}: the entry has no msgid or no msgstr")
    return entry


def _add(entry: _Entry, keyword: str, line: str, position: int, number: int) -> None:
    found = _STRING.fullmatch(line.rstrip("\n"))
    if not found:
        raise FileError(f"line {number}: {line.strip()[:40]!r} is not a string in double quotes")
    start, end = position + line.index('"'), position + found.end(1) + 1
    text = _unescaped(found[1])
    if value := entry.strings.get(keyword):
        value.end, value.text = end, value.text + text
    else:
        entry.strings[keyword] = _Value(start, end, text)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 8))
        if found[2]:
            return chr(int(found[2], 16))
        return _ESCAPES.get(found[3], found[3])

    return re.sub(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", character, text)


def _quoted(text: str) -> str:
    """The text as strings in quotes, one or several lines."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    pieces: list[str] = []
    for line in lines:
        ending = "\n" if line.endswith("\n") else ""
        wrapped = textwrap.wrap(
            line.removesuffix("\n"),
            _WIDTH,
            drop_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            expand_tabs=False,
        )
        pieces += [*wrapped[:-1], (wrapped[-1] if wrapped else "") + ending]
    written = [
        '"' + re.sub(r'["\\\n\t\r\a\b\f\v]', lambda it: _WRITTEN[it[0]], piece) + '"'
        for piece in pieces
    ]
    return written[0] if len(written) == 1 else "\n".join(['""', *written])


def _slots(entry: _Entry, rule: str, options: Options) -> list[Slot]:
    strings = entry.strings
    place = f"line {entry.line}"
    targets = [name for name in strings if name.startswith("msgstr")]
    if any(strings[name].text for name in targets) and not options.all_entries:
        return []
    is_format = _FORMATS.search(entry.flags) is not None
    reorders = _POSITIONAL.search(entry.flags) is not None
    singular = Message(strings["msgid"].text, place, is_format, reorders)
    if "msgid_plural" not in strings:
        value = strings[targets[0]]
        return [singular.slot(value.start, value.end, _quoted, beside_source=True)]
    plural = Message(strings["msgid_plural"].text, place, is_format, reorders)
    forms = numbers(rule) or numbers(rule_of(options.target)) or []
    same = sorted(it.raw for it in singular.codes) == sorted(it.raw for it in plural.codes)
    fragments = (*singular.fragments, *plural.fragments)

    def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
        middle = len(singular.fragments)
        one, many = singular.write(answers[:middle]), plural.write(answers[middle:])
        said = []
        for number, counted in enumerate(forms):
            # A form without the number may stand for one number alone.
            uses_one = 1 in counted and (same or counted == {1})
            said.append(f"msgstr[{number}] {_quoted(one if uses_one else many)}")
        return "\n".join(said)

    start = entry.keyword_starts[targets[0]]
    return [Slot(start, strings[targets[-1]].end, fragments, write, beside_source=True)]


FORMAT = Format("gettext", (".po", ".pot"), "text/x-gettext-translation", _read)
