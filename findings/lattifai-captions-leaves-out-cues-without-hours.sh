#!/usr/bin/env bash
# lattifai-captions 0.4.17 (PyPI) leaves out the cues of a WebVTT file whose times have no hours. It writes the italics of SRT into WebVTT as
# {\i1}, which players show.
#
# Guess before the run: text, line breaks and times stay when SRT and WebVTT are read and written.
# Seen (lattifai-captions 0.4.17, pysubs2 1.8.1, Python 3.11), the cues read:
#
#   01:00:00.000: ['Yes.']
#   00:00.000: []
#   59:58.000, then 01:00:00.000: ['Yes.']
#
# and the text of a cue with italics, from SRT to WebVTT:
#
#   <i>Who is it?</i> becomes {\i1}Who is it?{\i0}
#
# WebVTT lets the hours away where they are 0. In a longer file the first hour is gone and the rest is there. No warning is given.
#
# Who meets it: subtitles that speech recognition has made, as Whisper writes 00:00.000. The film is translated without its first hour.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lattifai-captions==0.4.17 pysubs2==1.8.1
cd "$folder"

venv/bin/python - <<'P'
from lattifai.caption import Caption


def read(name, text):
    with open(name, "w") as file:
        file.write(text)
    return Caption.read(name)


late = "01:00:00.000 --> 01:00:02.000\nYes.\n"
for name, cues, expected in (
    ("01:00:00.000", late, ["Yes."]),
    ("00:00.000", "00:00.000 --> 00:02.000\nWho is it?\n", []),
    ("59:58.000, then 01:00:00.000", f"59:58.000 --> 59:59.500\nWho is it?\n\n{late}", ["Yes."]),
):
    seen = [cue.text for cue in read("in.vtt", f"WEBVTT\n\n{cues}").supervisions]
    print(f"{name}: {seen}")
    assert seen == expected
caption = read("in.srt", "1\n00:00:00,000 --> 00:00:02,000\n<i>Who is it?</i>\n")
line = caption.to_string("vtt").split("-->")[1].splitlines()[1]
print(f"<i>Who is it?</i> becomes {line}")
assert line == r"{\i1}Who is it?{\i0}"
assert "<i>Who is it?</i>" in caption.to_string("srt")
P
echo "as described"
