#!/usr/bin/env bash
# opus_read of opustools 1.9.0 (PyPI) writes TMX that is not well-formed wherever one sentence is aligned with two.
#
# Guess before the run: an alignment of one with two becomes one <tu> whose <seg> holds both sentences, as they share a line in the
# Moses format.
# Seen (opustools 1.9.0, lxml 6.1.3, Python 3.11), for the alignments 1-1, 1-2 and 1-1:
#
#   moses: 3 lines, 'Zwei Hälften.\tTwo halves.' among them
#   tmx: Opening and ending tag mismatch: body line 7 and tu, line 18, column 8
#   read with recover=True: [['Eins.', 'One.'], ['Zwei Hälften.', 'Two'], ['Drei.', 'Three.']]
#
# <tu> is closed after the first sentence of the target, the <tuv> of the second one stands outside, and a second </tu> closes
# what is not open. A tolerant reader keeps half of a translation and loses "halves.".
#
# Who meets it: whoever hands OPUS corpora to a translation memory. Corpora of subtitles and of parliaments have many such
# alignments.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check opustools==1.9.0 lxml==6.1.3
cd "$folder"

"$folder/venv/bin/python" - "$folder/venv/bin/opus_read" <<'P'
import subprocess
import sys
import zipfile

from lxml import etree

texts = {"de": ["Eins.", "Zwei Hälften.", "Drei."], "en": ["One.", "Two", "halves.", "Three."]}
for language, sentences in texts.items():
    body = "".join(f'<s id="{i}">{sentence}</s>\n' for i, sentence in enumerate(sentences, 1))
    with zipfile.ZipFile(f"{language}.zip", "w") as file:
        file.writestr(f"C/raw/{language}/a.xml", f'<?xml version="1.0" encoding="utf-8"?>\n<text>\n{body}</text>\n')
links = "".join(f'<link xtargets="{it}" id="SL{i}" />\n' for i, it in enumerate(("1;1", "2;2 3", "3;4")))
with open("links.xml", "w") as file:
    file.write(
        '<?xml version="1.0" encoding="utf-8"?>\n<cesAlign version="1.0">\n'
        f'<linkGrp targType="s" fromDoc="de/a.xml.gz" toDoc="en/a.xml.gz" >\n{links}</linkGrp>\n</cesAlign>\n'
    )
given = "-d C -s de -t en -p raw -af links.xml -sz de.zip -tz en.zip -q".split()
for mode in ("moses", "tmx"):
    subprocess.run([sys.argv[1], *given, "-wm", mode, "-w", f"out.{mode}"], check=True, capture_output=True)

lines = open("out.moses").read().splitlines()
print(f"moses: {len(lines)} lines, {lines[1]!r} among them")
assert lines == ["Eins.\tOne.", "Zwei Hälften.\tTwo halves.", "Drei.\tThree."]
try:
    etree.parse("out.tmx")
except etree.XMLSyntaxError as error:
    print(f"tmx: {error.msg}")
else:
    raise SystemExit("the file is well-formed")
tree = etree.parse("out.tmx", etree.XMLParser(recover=True))
units = [[seg.text for seg in unit.iter("seg")] for unit in tree.iter("tu")]
print(f"read with recover=True: {units}")
assert units == [["Eins.", "One."], ["Zwei Hälften.", "Two"], ["Drei.", "Three."]]
P
echo "as described"
