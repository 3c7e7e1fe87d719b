"""Text with inline codes, and its form as XML, in which a server reads and answers it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

OPEN, ALONE, CLOSE = 1, 0, -1
SPLITTING_TAG = "br"  # ends a text in the form as XML
_BREAK = re.compile(
    r"(?:\\[nrt]| *[^\S ] *| {3,})+|(?:<|&lt;)(?:\w+:)?(?:br|hr|line-break|tab)\b.*"
    r"|<.*\bctype=\"lb\".*",
    re.DOTALL,
)
_WIDE = "  "  # a blank that is written twice, as behind a sentence


@dataclass(frozen=True)
class Code:
    """An inline code: characters of the file that belong to a text and are not translated."""

    raw: str  # as in the file
    kind: int = ALONE  # OPEN and CLOSE are the ends of a pair
    # A variable or a name: it stands for a word of the sentence, also at its start or end.
    is_word: bool = False

    @property
    def is_break(self) -> bool:
        """A line end, a tab or a gap: the texts on both sides are apart."""
        return self.kind == ALONE and not self.is_word and _BREAK.fullmatch(self.raw) is not None


Part = str | Code


@dataclass(frozen=True)
class Fragment:
    """A text to translate: strings and codes in turn."""

    parts: tuple[Part, ...]
    place: str = ""  # in the file, for people: "line 12", "entry 3"

    @property
    def codes(self) -> list[Code]:
        return [part for part in self.parts if isinstance(part, Code)]

    @property
    def text(self) -> str:
        """The text without its codes."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def has_words(self) -> bool:
        return any(map(str.isalpha, self.text))


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts without empty strings and with adjacent strings as one."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(found)


def pairs(parts: Sequence[Part]) -> dict[int, int]:
    """Maps the index of each opening code to that of its closing one. A code whose other end is not
    among the parts, or would cross another pair, has none: it stands alone."""
    found: dict[int, int] = {}
    open_: list[int] = []
    for index, part in enumerate(parts):
        if isinstance(part, Code) and part.kind == OPEN:
            open_.append(index)
        elif isinstance(part, Code) and part.kind == CLOSE and open_:
            found[open_.pop()] = index
    return found


def to_xml(parts: Sequence[Part]) -> tuple[str, dict[str, Code]]:
    """The text as XML: `<g id="1">` for a pair, `<x id="2"/>` for a code alone, with something that
    the server copies in it if it is a word, and `<br id="3"/>` for a break. Also returns the code
    that each tag stands for."""
    ends = pairs(parts)
    closing = {end: start for start, end in ends.items()}
    said: list[str] = []
    codes: dict[str, Code] = {}
    for index, part in enumerate(parts):
        if isinstance(part, str):
            said.append(html.escape(part, quote=False))
            continue
        if index in ends:
            said.append(f'<g id="{index}">')
            codes[f"<{index}>"] = part
        elif index in closing:
            said.append("</g>")
            codes[f"</{closing[index]}>"] = part
        else:
            word = f'<x id="{index}" translate="no">{index}</x>'
            blank = " " if part.raw == _WIDE else ""
            name = SPLITTING_TAG if part.is_break else "x"
            said.append(word if part.is_word else f'{blank}<{name} id="{index}"/>')
            codes[f"<{index}/>"] = part
    return "".join(said), codes


_TAG = re.compile(
    rf'<g id="(\d+)">|(</g>)|<(?:x|{SPLITTING_TAG}) id="(\d+)"\s*/>'
    r'|<x id="(\d+)"(?: translate="no")?>\d*</x>|<([^>]*)>?'
)


def from_xml(text: str, codes: dict[str, Code]) -> tuple[Part, ...] | None:
    """The parts of an answer. None unless every code is there exactly once and pairs are nested."""
    parts: list[Part] = []
    open_: list[str] = []
    seen: list[str] = []
    end = 0
    for tag in _TAG.finditer(text):
        parts.append(html.unescape(text[end : tag.start()]))
        end = tag.end()
        opened, closed, alone, empty, _ = tag.groups()
        if opened:
            open_.append(opened)
            name = f"<{opened}>"
        elif closed and open_:
            name = f"</{open_.pop()}>"
        else:
            name = f"<{alone or empty}/>"
        if name not in codes:
            return None
        seen.append(name)
        if codes[name].raw == _WIDE:
            parts[-1] = str(parts[-1]).removesuffix(" ")
            end += text.startswith(" ", end)
        parts.append(codes[name])
    parts.append(html.unescape(text[end:]))
    return joined(parts) if sorted(seen) == sorted(codes) else None


def placed(parts: Sequence[Part], text: str) -> tuple[Part, ...]:
    """The codes of `parts` in another text, each at the end of a word and at the same share of the
    text as before. Keeps their order, and so the nesting."""
    length = sum(len(part) for part in parts if isinstance(part, str)) or 1
    ends = [0, *(found.start() for found in re.finditer(r"\s+|$", text))]
    found: list[Part] = []
    read = written = 0
    for part in parts:
        if isinstance(part, str):
            read += len(part)
            continue
        wanted = read * len(text) / length
        end = max(written, min(ends, key=lambda it: abs(it - wanted)))
        found += [text[written:end], part]
        written = end
    return joined([*found, text[written:]])
