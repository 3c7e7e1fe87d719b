#!/usr/bin/env bash
# lokit-python 0.5.4 (PyPI) writes marks of its own for the variables of a translation into XLIFF and TMX: the source has {name}, the target
# {LOKIT_P1}. Read back into a PO file, the marks stay, and entries marked fuzzy are no longer.
#
# Guess before the run: PO comes back from XLIFF as it was, since conversion with "zero data loss" is promised.
# Seen (lokit-python 0.5.4, polib 1.2.0, Python 3.11), translations of "Hello, {name}!", and fuzzy entries:
#
#   PO: 'Hallo, {name}!', ['Close']
#   PO of the PO: 'Hallo, {name}!', ['Close']
#   target of the XLIFF: 'Hallo, {LOKIT_P1}!'
#   PO of the XLIFF: 'Hallo, {LOKIT_P1}!', []
#   target of the TMX: 'Hallo, {LOKIT_P1}!'
#   PO of the TMX: 'Hallo, {LOKIT_P1}!', []
#
# The marks are meant for machine translation. XLIFF and TMX have no note of what they stand for.
#
# Who meets it: catalogues that go to translators as XLIFF. The program shows {LOKIT_P1}, or an error, in place of the name, and
# translations that nobody has checked count as checked.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lokit-python==0.5.4 polib==1.2.0
cd "$folder"

cat >in.po <<'O'
msgid ""
msgstr "Language: de\nContent-Type: text/plain; charset=UTF-8\n"

#, python-brace-format
msgid "Hello, {name}!"
msgstr "Hallo, {name}!"

#, fuzzy
msgid "Close"
msgstr "Nahe"
O
cat >check.py <<'P'
import re
from pathlib import Path

import lokit
import polib


def check(name: str, path: str, expected: tuple[str, list[str]]):
    catalogue = polib.pofile(path)
    seen = catalogue.find("Hello, {name}!").msgstr, [entry.msgid for entry in catalogue if entry.fuzzy]
    print(f"{name}: {seen[0]!r}, {seen[1]}")
    assert seen == expected


right, marked = "Hallo, {name}!", "Hallo, {LOKIT_P1}!"
check("PO", "in.po", (right, ["Close"]))
catalogue = lokit.parse.po("in.po", progress=False)
lokit.parse.write.po(catalogue, "same.po")
check("PO of the PO", "same.po", (right, ["Close"]))
for kind in ("xliff", "tmx"):
    getattr(lokit.parse.write, kind)(catalogue, f"out.{kind}")
    target = re.search("Hallo, [^<]*", Path(f"out.{kind}").read_text())[0]
    print(f"target of the {kind.upper()}: {target!r}")
    assert target == marked
    lokit.parse.write.po(getattr(lokit.parse, kind)(f"out.{kind}", progress=False), "back.po")
    check(f"PO of the {kind.upper()}", "back.po", (marked, []))
P
venv/bin/python check.py
echo "as described"
