"""Variables and names in the texts of programs: they come back as they were."""

from __future__ import annotations

import re

from .fragment import ALONE, CLOSE, OPEN, Code, Part, joined

_LENGTH = r"(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|L|q|j|z|t|I64)?"
_OTHERS = r"%%|%L?\d{1,2}\b|%<PRI[a-zA-Z0-9]+>"  # Qt's and KDE's, gettext's
# The formats of C and its relatives. A blank is a flag only in texts that are known to be formats.
PRINTF = rf"%(?:\(\w+\)|\d+\$)?[-+#0']*{_LENGTH}[diouxXeEfFgGaAcrsSpm@](?![a-z]{{3}})|{_OTHERS}"
PRINTF_FLAGGED = rf"%(?:\(\w+\)|\d+\$)?[-+#0' ]*{_LENGTH}[diouxXeEfFgGaAcrsSpmn@]|{_OTHERS}"
BRACES = (
    r"\{\{\{?[^{}\n]*\}?\}\}|\$\{[^{}\n]*\}|\$\([\w.]+\)|#?\{[^{}\s]*\}|\$t\([^()\n]*\)"
    r"|%\{[^{}\n]*\}|\$\w*[a-zA-Z]\w*"
)
NAMES = (
    r"(?:https?|ftp|file)://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w-])--?[a-zA-Z][\w-]*\b|\b\w+_\w+\b"
    r"|\\(?![nrt](?![a-z]))[a-zA-Z]\w*"
    r"|&(?:\w+|#\w+);"
)
TAGS = r"</?[a-zA-Z][^<>]*>"
ACCELERATORS = r"[_&](?=[^\W_])"
COLUMNS = (
    r"[ \t]{2,}|\t|\\[nrt](?![a-z])|[\0-\x08\x0b\x0c\x0e-\x1f]"  # and other control characters
)


_ICU = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")


def icu_note(text: str, place: str) -> str:
    """A note if the text is a message with several forms, which stays as it is."""
    return f"{place}: a message with plural or select is left as it is" if _ICU.search(text) else ""


def _pattern(printf: str) -> re.Pattern[str]:
    return re.compile(f"(?P<tag>{TAGS})|(?P<name>{printf}|{BRACES}|{NAMES})|(?P<blank>{COLUMNS})")


TEXT, FORMAT_TEXT = _pattern(PRINTF), _pattern(PRINTF_FLAGGED)
WITH_ACCELERATOR = re.compile(rf"(?<![\w&])(?P<key>{ACCELERATORS})")


def parts_of(text: str, is_format: bool = False) -> tuple[Part, ...]:
    """Text of a program: tags, variables and names, columns and one accelerator are codes."""
    found: list[Part] = []
    end = 0
    for match in (FORMAT_TEXT if is_format else TEXT).finditer(text):
        found += [text[end : match.start()], _code(match)]
        end = match.end()
    found.append(text[end:])
    return joined(_with_accelerator(found))


def _code(match: re.Match[str]) -> Code:
    raw = match[0]
    if match["tag"] is None:
        return Code(raw, is_word=match["name"] is not None)
    if raw.endswith("/>") or re.match(r"<(?:br|hr|img|input|wbr)\b", raw, re.IGNORECASE):
        return Code(raw, ALONE)
    return Code(raw, CLOSE if raw.startswith("</") else OPEN)


def _with_accelerator(parts: list[Part]) -> list[Part]:
    """Makes the mark of the one letter that opens a menu entry a code; more marks are text."""
    places = [
        (index, match)
        for index, part in enumerate(parts)
        if isinstance(part, str)
        for match in WITH_ACCELERATOR.finditer(part)
    ]
    if len(places) != 1:
        return parts
    index, match = places[0]
    text = parts[index]
    assert isinstance(text, str)
    parts[index : index + 1] = [text[: match.start()], Code(match[0]), text[match.end() :]]
    return parts
