"""WebVTT: https://www.w3.org/TR/webvtt1/."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from ..document import Document, FileError, Source
from .format import Format, Options
from .srt import paragraphs, seconds
from .subtitles import Cue, document_of, lines_of

# Some programs write times without leading zeros.
_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})\.(\d{1,3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]+-->[ \t]+{_TIME}(?:[ \t].*)?")
_TAGS = re.compile(r"<[^<>]*>|\S*\\\S+")
_COMMENT = re.compile(r"NOTE(?:\s|$)|(?:STYLE|REGION)\s*$")


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, options.encoding)
    text = source.text
    if not re.match(r"WEBVTT(?:[ \t\r\n]|$)", text):
        raise FileError("line 1: a WebVTT file begins with WEBVTT")
    cues: list[Cue] = []
    for block in list(_blocks(text))[1:]:
        times = next((line for line in block[:2] if "-->" in line[1]), None)
        if times is None or _COMMENT.match(block[0][1]):
            continue  # players ignore a block without times as well
        found = _TIMES.fullmatch(times[1])
        if not found:
            place = source.place(times.start())
            raise FileError(
                f"{place}: {times[1][:40]!r} are no times of a cue; write them as "
                "00:16.700 --> 00:18.000"
            )
        numbers = [it or "0" for it in found.groups()]
        shown = seconds(*numbers[:4]), seconds(*numbers[4:])
        for first, last in paragraphs(text, times.end(), block[-1].end(1)):
            cues.append(Cue(first, last, *shown, lines_of(text, first, last, _TAGS, html.unescape)))
    return document_of(source, cues, _escape, options)


def _blocks(text: str) -> Iterator[list[re.Match[str]]]:
    """The lines of each block, first of the header. A blank line ends a block, and so does a line
    with times, but for that of a cue itself: the first one, or the second below an identifier."""
    block: list[re.Match[str]] = []
    is_header = True
    for line in re.finditer(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)", text):
        has_times = "-->" in line[1]
        is_own = not is_header and (not block or (len(block) == 1 and "-->" not in block[0][1]))
        if block and (not line[1] or (has_times and not is_own)):
            yield block
            block, is_header = [], False
        if line[1]:
            block.append(line)


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


FORMAT = Format("WebVTT", (".vtt",), "text/vtt", _read)
