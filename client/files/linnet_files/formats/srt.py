"""SubRip: https://en.wikipedia.org/wiki/SubRip. The text is taken from the file itself, since
pysubs2 reads a backslash, braces and "<" in it as codes of another format."""

from __future__ import annotations

import re

from ..document import Document, FileError, Source
from .format import Format, Options
from .subtitles import Cue, document_of, lines_of

_TIME = r"(\d{1,3}):(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?")
# Tags that players know, and words with a backslash, which no model has seen.
_TAGS = re.compile(r"</?(?:[bius]|font\b[^<>\n]*)>|\{\\[^{}\n]*\}|\S*\\\S+", re.IGNORECASE)


def seconds(hours: str, minutes: str, whole: str, thousandths: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + int(whole) + int(thousandths.ljust(3, "0")) / 1e3


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    cues: list[Cue] = []
    times: re.Match[str] | None = None
    text_from = position = 0
    lines = source.text.splitlines(keepends=True) if source.text else []
    if any(line[-1:] not in "\n" for line in lines[:-1]):  # other line ends than \n and \r\n
        lines = re.findall(r"[^\n]*\n|[^\n]+", source.text)
    for number, line in enumerate(lines):
        content = line.strip()
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if found := _TIMES.fullmatch(content):
            cues += _cues(source, times, text_from, position)
            times, text_from = found, position + len(line)
        elif re.match(r"\d+:\d+:\d+\D.*>", content):
            raise FileError(
                f"line {number + 1}: {content[:40]!r} are no times of a cue; write them as "
                "00:00:16,700 --> 00:00:18,000"
            )
        elif content.isdigit() and re.match(r"\d+:\d+:\d+\D.*>", following):
            cues += _cues(source, times, text_from, position)
            times = None
        elif content and times is None:
            raise FileError(f"line {number + 1}: {content[:40]!r} is outside of a cue")
        position += len(line)
    cues += _cues(source, times, text_from, position)
    if not cues and source.text.strip():
        raise FileError("line 1: no cue was found; this is not a SubRip file")
    return document_of(source, cues, str, options)


def _cues(source: Source, times: re.Match[str] | None, start: int, end: int) -> list[Cue]:
    """The text of a cue: one Cue, or one for each speaker and for what follows a blank line."""
    if times is None:
        return []
    shown_from, shown_to = seconds(*times.groups()[:4]), seconds(*times.groups()[4:])
    return [
        Cue(first, last, shown_from, shown_to, lines_of(source.text, first, last, _TAGS, str))
        for first, last in paragraphs(source.text, start, end)
    ]


def paragraphs(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The ranges of lines that belong together: a blank line and a dash begin another one."""
    found: list[tuple[int, int]] = []
    previous_blank = True
    for line in re.finditer(r"[^\n]+", text[start:end]):
        content = line[0].strip()
        first = start + line.start() + len(line[0]) - len(line[0].lstrip())
        last = first + len(content)
        dash = re.match(r"[-–—]\s*(?=\S)", content)
        if not content:
            previous_blank = True
            continue
        gap = text[found[-1][1] : first] if found else ""
        if previous_blank or dash or gap.count("\n") > 1:
            found.append((first + (dash.end() if dash else 0), last))
        else:
            found[-1] = found[-1][0], last
        previous_blank = False
    return found


FORMAT = Format("SubRip", (".srt",), "application/x-subrip", _read)
