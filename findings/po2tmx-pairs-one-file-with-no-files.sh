#!/usr/bin/env bash
# po2tmx of translate-toolkit 3.20.4 (PyPI) pairs the singular of a PO entry with the plural form 0, and the plural with all others. In
# Arabic "One file" becomes the translation of "No files". po2csv does the same, and leaves out the other forms.
#
# Guess before the run: the form for n = 1, which Plural-Forms names, belongs to the singular.
# Seen (translate-toolkit 3.20.4, Python 3.11), pairs of the translation memory:
#
#   ar: One file = لا ملفات (no files), n = 0
#   ar: %d files = ملف واحد (one file), n = 1
#   ar: %d files = ملفان (two files), n = 2
#   ar: %d files = %d ملفات, n = 3
#   sl: %d cat sleeps = %d mačk spi, n = 0
#   sl: %d cats sleep = %d mačka spi, n = 1
#   sl: %d cats sleep = %d mački spita, n = 2
#   sl: %d cats sleep = %d mačke spijo, n = 3
#
# The notes in brackets are ours. No warning is given.
#
# Who meets it: translation memories and training data made of the catalogues of free software. A model for Arabic learns that one file is
# none.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check translate-toolkit==3.20.4
cd "$folder"

cat >check.py <<'P'
import csv
import subprocess
import xml.etree.ElementTree as ElementTree
from gettext import c2py

arabic = "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 && n%100<=99 ? 4 : 5"
slovene = "n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0"
for code, rule, one, many, forms in (
    ("ar", arabic, "One file", "%d files", ["لا ملفات", "ملف واحد", "ملفان", "%d ملفات", "%d ملفا", "%d ملف"]),
    ("sl", slovene, "%d cat sleeps", "%d cats sleep", ["%d mačk spi", "%d mačka spi", "%d mački spita", "%d mačke spijo"]),
):
    header = f"Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals={len(forms)}; plural={rule};\\n"
    lines = [f'msgid ""\nmsgstr "{header}"\n', f'msgid "{one}"\nmsgid_plural "{many}"']
    lines += [f'msgstr[{index}] "{form}"' for index, form in enumerate(forms)]
    with open("in.po", "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(["venv/bin/po2tmx", "--progress=none", "-l", code, "in.po", "out.tmx"], check=True)
    subprocess.run(["venv/bin/po2csv", "--progress=none", "in.po", "out.csv"], check=True)
    pairs = [tuple(seg.text for seg in unit.iter("seg")) for unit in ElementTree.parse("out.tmx").iter("tu")]
    number = {index: next(n for n in range(101) if c2py(rule)(n) == index) for index in range(len(forms))}
    for index, (source, target) in enumerate(pairs[:4]):
        print(f"{code}: {source} = {target}, n = {number[index]}")
    assert pairs == [(one, forms[0]), *((many, form) for form in forms[1:])]
    assert c2py(rule)(1) == 1
    rows = [(row["source"], row["target"]) for row in csv.DictReader(open("out.csv"))]
    assert rows == [(one, forms[0]), (many, forms[1])]
P
venv/bin/python check.py
echo "as described"
