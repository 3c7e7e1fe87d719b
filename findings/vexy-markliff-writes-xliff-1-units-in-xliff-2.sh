#!/usr/bin/env bash
# vexy-markliff 1.3.2 (PyPI) writes XLIFF 2.1 whose units are those of XLIFF 1.2, cuts a sentence at each inline mark, and gives back
# HTML with neither headings, lists, code nor links, where its description promises a lossless round trip.
#
# Guess before the run: each paragraph is a <unit> with <segment>, inline marks are codes, and md2xliff with xliff2md gives the same file.
# Seen (vexy-markliff 1.3.2, translate-toolkit 3.20.4, Python 3.11), for a heading, a sentence with code and a link, and a list:
#
#   version 2.1, elements: file source trans-unit xliff
#   sources: ['Title', 'Run', 'cp -r', 'first, then read', 'the guide', '.', 'A & B']
#   units that a reader of XLIFF 2 finds: 0
#   back: ['<p>Title</p>', '<p>Run</p>', '<p>cp -r</p>', '<p>first, then read</p>', '<p>the guide</p>', '<p>.</p>', '<p>A & B</p>']
#
# The address of the link is in neither file. "&" comes back without its escape. No warning is given.
#
# Who meets it: documentation that is sent to translators as XLIFF. Tools for XLIFF 2 show an empty file; translators of other tools get
# pieces of sentences, and the page cannot be built from them.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check vexy-markliff==1.3.2 translate-toolkit==3.20.4
cd "$folder"
cat >page.md <<'T'
# Title

Run `cp -r` first, then read [the guide](http://docs.example/guide).

- A &amp; B
T
venv/bin/vexy-markliff md2xliff page.md page.xlf >/dev/null 2>&1
venv/bin/vexy-markliff xliff2md page.xlf back.md >/dev/null 2>&1

venv/bin/python - <<'P'
import xml.etree.ElementTree as ElementTree

from translate.storage import xliff2

root = ElementTree.parse("page.xlf").getroot()
names = sorted({element.tag.split("}")[-1] for element in root.iter()})
print(f"version {root.get('version')}, elements: {' '.join(names)}")
assert root.get("version") == "2.1" and root.tag.startswith("{urn:oasis:names:tc:xliff:document:2.") and "unit" not in names
sources = [element.text for element in root.iter() if element.tag.endswith("}source")]
print(f"sources: {sources}")
assert sources == ["Title", "Run", "cp -r", "first, then read", "the guide", ".", "A & B"]
units = len(xliff2.Xliff2File.parsefile("page.xlf").units)
print(f"units that a reader of XLIFF 2 finds: {units}")
assert units == 0
back = open("back.md").read().split("\n")
print(f"back: {back}")
assert back == [f"<p>{source}</p>" for source in sources]
assert "docs.example" not in open("page.xlf").read()
P
echo "as described"
