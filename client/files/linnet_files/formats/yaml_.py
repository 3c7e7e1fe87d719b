"""YAML: values are translated; keys, comments, anchors and the layout stay.

The value of an anchor and its aliases are one value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import yaml

from ..document import Document, FileError, Slot, Source
from ..message import Message
from ..variables import icu_note
from .format import Format, Options
from .json_ import is_text

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_HEADER = re.compile(r"[|>][-+\d]*[ \t]*(?:#[^\n]*)?\r?\n")
_TEXT_TAG = "tag:yaml.org,2002:str"


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    slots: list[Slot] = []
    notes: list[str] = []
    try:
        roots = list(yaml.compose_all(source.text, yaml.SafeLoader))
        found = list(_scalars(roots))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "line 1"
        raise FileError(f"{where}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise FileError(f"line 1: {error}") from None
    except RecursionError:
        raise FileError("line 1: the values are nested too deeply") from None
    for path, node in found:
        if note := icu_note(node.value, path):
            notes.append(note)
        elif is_text(node.value) and (slot := _slot(source, node, path)):
            slots.append(slot)
    return Document(source, sorted(slots, key=lambda slot: slot.start), notes=notes)


def _scalars(roots: list[yaml.Node | None]) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Each text that is a value, once, with its path."""
    seen: set[int] = set()
    waiting: list[tuple[str, yaml.Node | None]] = [("", root) for root in reversed(roots)]
    while waiting:
        path, node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _TEXT_TAG:
                yield path, node
        elif isinstance(node, yaml.MappingNode):
            for key, value in reversed(node.value):
                name = key.value if isinstance(key, yaml.ScalarNode) else "?"
                waiting.append((f"{path}.{name}" if path else name, value))
        else:
            waiting += [
                (f"{path}.{number}", value) for number, value in reversed([*enumerate(node.value)])
            ]


def _slot(source: Source, node: yaml.ScalarNode, path: str) -> Slot | None:
    text = source.text
    start = _PROPERTIES.match(text, node.start_mark.index).end()  # type: ignore[union-attr]
    if node.style in ("|", ">"):
        return _block(text, start, node, path)
    writers: dict[str | None, Callable[[str], str]] = {
        "'": lambda said: "'" + said.replace("\n", "\n\n").replace("'", "''") + "'",
        '"': lambda said: json.dumps(said, ensure_ascii=False),
        None: _plain,
    }
    return Message(node.value, path).slot(start, node.end_mark.index, writers[node.style])


def _plain(text: str) -> str:
    """The text without quotes if YAML reads it as the same text anywhere, else with them."""
    try:
        node = yaml.compose(f"[{text}]", yaml.SafeLoader).value
        is_same = len(node) == 1 and (node[0].value, node[0].tag) == (text, _TEXT_TAG)
    except (yaml.YAMLError, AttributeError):
        is_same = False
    if is_same and not re.search(r"[\n#]|:(?:\s|$)|^[-?!&*%@`'\"|>]", text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _block(text: str, start: int, node: yaml.ScalarNode, path: str) -> Slot | None:
    """The lines of a block. None if it has lines that are indented further."""
    header = _HEADER.match(text, start)
    if header is None or re.search(r"(?m)^[ \t]", node.value):
        return None
    begun = end = header.end()
    indent = ""
    for line in re.finditer(r"([ ]*)([^\n]*)\n?", text[begun:]):
        if line[2].strip():
            indent = indent or line[1]
            if len(line[1]) < len(indent) or not indent:
                break
            end = begun + line.end(2)
        elif not line[0]:
            break
    is_folded = node.style == ">"

    def write(said: str) -> str:
        lines = said.rstrip("\n").split("\n")
        lines = [it for line in lines for it in ([line, ""] if is_folded and line else [line])]
        while lines and not lines[-1]:
            lines.pop()
        return "\n".join(indent + line.strip() if line else "" for line in lines)

    return Message(node.value, path).slot(begun, end, write)


FORMAT = Format("YAML", (".yml", ".yaml"), "application/yaml", _read)
