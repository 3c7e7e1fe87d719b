"""JSON: values are translated, keys stay. i18next's plurals get the keys of the target language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..document import Document, FileError, Slot, Source
from ..message import Message
from ..variables import icu_note
from .format import Format, Options
from .plurals import categories

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+')
# Addresses, paths, identifiers, colours, times, formats of dates and directions are no text.
_NO_TEXT = re.compile(
    r"\w*:\S*|\S*/\S*|#[0-9a-fA-F]{3,8}|\w+(?:[._-]\w+)+|[\w-]+\.\w{1,4}|[a-z]+[A-Z]\w*|"
    r"(?:%-?[a-zA-Z]|[\d\W_])+|\S*\d\S*|ltr|rtl"
)
_PLURAL = re.compile(r"(.+)_(one|two|few|many|other|zero)")


@dataclass(frozen=True)
class _Value:
    path: tuple[str, ...]
    key: tuple[int, int] | None  # the place of the key with its quotes
    start: int
    end: int


def is_text(text: str) -> bool:
    """False for values that programs read."""
    return not _NO_TEXT.fullmatch(text.strip()) and any(map(str.isalpha, text))


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    try:
        loaded = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise FileError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise FileError("line 1: the values are nested too deeply") from None
    is_extension = _is_extension(loaded)
    values = [
        value
        for value in _values(source.text)
        if not any(it.startswith("@") for it in value.path)  # of ARB
        and not (is_extension and value.path[1] != "message")
    ]
    paths = {value.path for value in values}
    slots: list[Slot] = []
    notes: list[str] = []
    for value in values:
        text = json.loads(source.text[value.start : value.end])
        place = ".".join(value.path) or "the value"
        if note := icu_note(text, place):
            notes.append(note)
        elif is_text(text):
            message = Message(text, place)
            added = _added(source.text, value, paths, options.target)
            slots.append(message.slot(value.start, value.end, _write(added)))
    return Document(source, slots, notes=notes)


def _is_extension(loaded: object) -> bool:
    """True for the messages of a web extension, which have notes for translators."""
    return isinstance(loaded, dict) and all(
        isinstance(it, dict)
        and "message" in it
        and it.keys() <= {"message", "description", "placeholders"}
        for it in loaded.values()
    )


def _write(added: Sequence[str]) -> Callable[[str], str]:
    def write(text: str) -> str:
        said = json.dumps(text, ensure_ascii=False)
        return said + "".join(f"{before}{said}" for before in added)

    return write


def _added(text: str, value: _Value, paths: set[tuple[str, ...]], target: str) -> list[str]:
    """What stands before the values of the plural forms that only the target language has: they say
    the same as the form for other numbers."""
    if not value.path or not value.key or not target:
        return []
    found = _PLURAL.fullmatch(value.path[-1])
    if not found or found[2] != "other":
        return []
    siblings = (*value.path[:-1], f"{found[1]}_one")
    if siblings not in paths:
        return []
    begun = value.key[0]
    blank = text[text.rfind(",", 0, begun) + 1 : begun]
    blank = blank if not blank.strip() else " "
    colon = text[value.key[1] : value.start]
    return [
        f",{blank}{json.dumps(f'{found[1]}_{it}', ensure_ascii=False)}{colon}"
        for it in categories(target)
        if (*value.path[:-1], f"{found[1]}_{it}") not in paths
    ]


def _values(text: str) -> Iterator[_Value]:
    """The strings that are no keys. The text is valid JSON."""
    path: list[str | int] = []  # a key, or a number of an item
    expects_key = [False]
    key: tuple[int, int] | None = None
    for token in _TOKEN.finditer(text):
        said = token[0]
        if said in "{[":
            expects_key.append(said == "{")
            path.append("" if said == "{" else 0)
        elif said in "}]":
            expects_key.pop()
            path.pop()
            key = None
        elif said == ",":
            if isinstance(path[-1], int):
                path[-1] += 1
            else:
                expects_key[-1] = True
        elif said == ":":
            expects_key[-1] = False
        elif said[0] == '"':
            if path and isinstance(path[-1], str) and expects_key[-1]:
                path[-1], key = json.loads(said), token.span()
            else:
                yield _Value(tuple(map(str, path)), key, *token.span())


FORMAT = Format("JSON", (".json", ".arb"), "application/json", _read)
