#!/usr/bin/env bash
# argos-translate-files 1.4.4 (PyPI) makes visible text of the comments of an HTML page, and of a doctype in lower case. In subtitles it
# joins the lines of two speakers.
#
# Guess before the run: a translator that gives back each text unchanged gives back the same page and the same cues.
# Seen (argos-translate-files 1.4.4, argos-translate-lt 1.12.1, Python 3.11), the text that a browser shows of the result, and the cue:
#
#   '<!DOCTYPE html><p>Hello.</p>' -> 'Hello.'
#   '<!doctype html><p>Hello.</p>' -> 'html Hello.'
#   '<p><!-- ask sales -->Hello.</p>' -> 'ask sales Hello.'
#   '- Who is there?\n- It is me.' -> '- Who is there? - It is me.'
#
# The comment went to the translator, too. Pages of EPUB files go through the same function.
#
# Who meets it: users of translation servers that take files by this package. Many frameworks write the doctype in lower case, and put
# comments on a page as marks: readers see "html" at the top, and notes that were not meant for them.
#
# Needs 500 MB of disk, for a translation engine that this script does not use.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check argos-translate-files==1.4.4 argos-translate-lt==1.12.1
cd "$folder"

cat >check.py <<'P'
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

from argostranslatefiles.argostranslatefiles import translate_file


class Text(HTMLParser):
    """Collects what a browser shows: neither tags nor comments nor doctypes."""

    parts = ()

    def handle_data(self, data: str):
        self.parts += tuple(data.split())


texts = []
same = SimpleNamespace(
    from_lang=SimpleNamespace(code="en"), to_lang=SimpleNamespace(code="de"), translate=lambda text: texts.append(text) or text
)
cue = "- Who is there?\n- It is me."
for name, content, expected in (
    ("page.html", "<!DOCTYPE html><p>Hello.</p>", "Hello."),
    ("page.html", "<!doctype html><p>Hello.</p>", "html Hello."),
    ("page.html", "<p><!-- ask sales -->Hello.</p>", "ask sales Hello."),
    ("film.srt", cue, "- Who is there? - It is me."),
):
    time = "1\n00:00:01,000 --> 00:00:03,000\n" if content == cue else ""
    Path(name).write_text(time + content)
    seen = Path(translate_file(same, str(Path(name).resolve()))).read_text().removeprefix(time).strip()
    if not time:
        text = Text()
        text.feed(seen)
        text.close()
        seen = " ".join(text.parts)
    print(f"{content!r} -> {seen!r}")
    assert seen == expected
assert " ask sales " in texts
P
venv/bin/python check.py
echo "as described"
