"""WebVTT: https://www.w3.org/TR/webvtt1/."""

from __future__ import annotations

import html
import re

from ..document import Document, FileError, Source
from .format import Format, Options
from .srt import paragraphs, seconds
from .subtitles import Cue, lines_of, slots_of

_TIME = r"(?:(\d{2,}):)?(\d\d):(\d\d)\.(\d{3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]+-->[ \t]+{_TIME}(?:[ \t].*)?")
_TAGS = re.compile(r"<[^<>]*>|\S*\\\S+")
_BLOCK = re.compile(r"[^\r\n]+(?:\r?\n[^\r\n]+)*")


def _read(data: bytes, options: Options) -> Document:
    source = Source.of(data, "utf-8")
    text = source.text
    if not re.match(r"WEBVTT(?:[ \t\r\n]|$)", text):
        raise FileError("line 1: a WebVTT file begins with WEBVTT")
    cues: list[Cue] = []
    for block in list(_BLOCK.finditer(text))[1:]:
        if re.match(r"NOTE(?:\s|$)|STYLE\s*$|REGION\s*$", block[0], re.MULTILINE):
            continue
        lines = list(re.finditer(r"[^\r\n]+", block[0]))
        times = next((line for line in lines[:2] if "-->" in line[0]), None)
        if times is None:
            continue  # players ignore a block without times as well
        found = _TIMES.fullmatch(times[0])
        if not found:
            place = source.place(block.start() + times.start())
            raise FileError(
                f"{place}: {times[0][:40]!r} are no times of a cue; write them as "
                "00:16.700 --> 00:18.000"
            )
        numbers = [it or "0" for it in found.groups()]
        shown = seconds(*numbers[:4]), seconds(*numbers[4:])
        for first, last in paragraphs(text, block.start() + times.end(), block.end()):
            cues.append(Cue(first, last, *shown, lines_of(text, first, last, _TAGS, html.unescape)))
    return Document(source, slots_of(source, cues, _escape, options))


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


FORMAT = Format("WebVTT", (".vtt",), "text/vtt", _read)
