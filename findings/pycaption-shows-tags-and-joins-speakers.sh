#!/usr/bin/env bash
# pycaption 2.3.14 (PyPI) takes the tags of an SRT file for text, and escapes them: WebVTT players show "<i>". Written as SRT again, two
# cues of the same time become one.
#
# Guess before the run: <i> of SRT becomes <i> of WebVTT and an italic span of DFXP; a reader and a writer of SRT keep the cues.
# Seen (pycaption 2.3.14, Python 3.11), for the cues "<i>Far away</i>", and "Who?" and "Me." with the same time:
#
#   WebVTT: '&lt;i>Far away&lt;/i>'
#   DFXP: '&lt;i&gt;Far away&lt;/i&gt;'
#   WebVTT in, WebVTT out: '<i>Far away</i>'
#   SRT: 2 of 3 cues, the last one 'Who?\nMe.'
#
# Tags of WebVTT are kept, so what a player shows depends on the format that the file came from. A line count changes on the way.
#
# Who meets it: subtitles that are translated as SRT and published as WebVTT, and programs that match cues of two languages by number.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14

"$folder/venv/bin/python" - <<'P'
import re

from pycaption import DFXPWriter, SRTReader, SRTWriter, WebVTTReader, WebVTTWriter

texts = ("<i>Far away</i>", "Who?", "Me.")
times = ("00:00:01{}000 --> 00:00:02{}000", *["00:00:03{}000 --> 00:00:04{}000"] * 2)
cues = [f"{time}\n{text}\n" for time, text in zip(times, texts, strict=True)]
srt = "\n".join(f"{i}\n{cue.format(*',,')}" for i, cue in enumerate(cues, 1))
vtt = "WEBVTT\n\n" + "\n".join(cue.format(*"..") for cue in cues)


def far_away(text):
    (line,) = re.findall(".*Far away.*", text)
    return line.strip()


for label, seen, expected in (
    ("WebVTT", far_away(WebVTTWriter().write(SRTReader().read(srt))), "&lt;i>Far away&lt;/i>"),
    ("DFXP", far_away(DFXPWriter().write(SRTReader().read(srt))), "&lt;i&gt;Far away&lt;/i&gt;"),
    ("WebVTT in, WebVTT out", far_away(WebVTTWriter().write(WebVTTReader().read(vtt))), "<i>Far away</i>"),
):
    print(f"{label}: {seen!r}")
    assert seen == expected
out = SRTWriter().write(SRTReader().read(srt))
found = [block.split("\n", 2)[2] for block in out.strip().split("\n\n")]
print(f"SRT: {len(found)} of {len(cues)} cues, the last one {found[-1]!r}")
assert found == ["<i>Far away</i>", "Who?\nMe."]
P
echo "as described"
