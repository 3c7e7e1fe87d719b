#!/usr/bin/env bash
# ttconv 1.2.3 (PyPI) repeats the text of cues that overlap, and its WebVTT has "<" and "&" as they are, so that words are lost when the
# file is read.
#
# Guess before the run: a conversion from SRT to SRT or WebVTT keeps the cues, and escapes what WebVTT requires.
# Seen (ttconv 1.2.3, Python 3.11), for two cues, the second of which begins and ends within the first:
#
#   SRT: ['Look at that!', 'Look at that! / A bird.', 'Look at that!', 'Is 2 < 3 & 4?']
#   WebVTT: ['Look at that!', 'Look at that! / A bird.', 'Look at that!', 'Is 2 < 3 & 4?']
#   SRT of the WebVTT: ['Look at that!', 'Look at that! / A bird.', 'Look at that!', 'Is 2 & 4?']
#
# One cue becomes three: the model behind it knows screens, not cues, and each change begins a new screen.
#
# Who meets it: subtitles of two speakers, or with signs at the top. A translation of the result counts and pays the line three times,
# and may word it in three ways.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ttconv==1.2.3
cd "$folder"
cat >film.srt <<'T'
1
00:00:01,000 --> 00:00:04,000
Look at that!

2
00:00:02,000 --> 00:00:03,000
A bird.

3
00:00:05,000 --> 00:00:06,000
Is 2 < 3 & 4?
T
venv/bin/tt convert -i film.srt -o out.srt >/dev/null 2>&1
venv/bin/tt convert -i film.srt -o out.vtt >/dev/null 2>&1
venv/bin/tt convert -i out.vtt -o back.srt >/dev/null 2>&1

venv/bin/python - <<'P'
def texts(name):
    blocks = open(name).read().strip().split("\n\n")
    return [" / ".join(block.split(" --> ")[1].split("\n")[1:]) for block in blocks if " --> " in block]


screens = ["Look at that!", "Look at that! / A bird.", "Look at that!"]
for label, name, last in (
    ("SRT", "out.srt", "Is 2 < 3 & 4?"),
    ("WebVTT", "out.vtt", "Is 2 < 3 & 4?"),
    ("SRT of the WebVTT", "back.srt", "Is 2 & 4?"),
):
    print(f"{label}: {texts(name)}")
    assert texts(name) == [*screens, last]
P
echo "as described"
