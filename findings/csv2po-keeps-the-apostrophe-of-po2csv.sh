#!/usr/bin/env bash
# csv2po of translate-toolkit 3.20.4 (PyPI) does not undo what po2csv did to a translation: a leading "-" or "@" gets an apostrophe for
# good, and backslashes are doubled.
#
# No guess was written down before the run. What one expects of two converters that belong together: the same PO file comes back.
# Seen (translate-toolkit 3.20.4, polib 1.2.0, Python 3.11), the translations before and after:
#
#   '- Milch' -> "'- Milch"
#   '-v zeigt mehr' -> "'-v zeigt mehr"
#   '@Name wurde erwähnt' -> "'@Name wurde erwähnt"
#   'C:\\Daten' -> 'C:\\\\Daten'
#
# The source texts get the same marks in the CSV file, and csv2po still finds their entries. A second round trip doubles the
# backslashes again.
#
# Who meets it: projects whose translators work in a spreadsheet. Lists, options of commands and paths reach the users changed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check translate-toolkit==3.20.4 polib==1.2.0
cd "$folder"

cat >check.py <<'P'
import subprocess

import polib

texts = {
    "- milk": ("- Milch", "'- Milch"),
    "-v shows more": ("-v zeigt mehr", "'-v zeigt mehr"),
    "@name was mentioned": ("@Name wurde erwähnt", "'@Name wurde erwähnt"),
    "C:\\data": ("C:\\Daten", "C:\\\\Daten"),
    "Plain": ("Einfach", "Einfach"),
}
before = polib.POFile()
before.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
before.extend(polib.POEntry(msgid=source, msgstr=target) for source, (target, _) in texts.items())
before.save("before.po")
for command in (["po2csv", "before.po", "texts.csv"], ["csv2po", "-t", "before.po", "texts.csv", "after.po"]):
    subprocess.run([f"venv/bin/{command[0]}", "--progress=none", *command[1:]], check=True)
after = {entry.msgid: entry.msgstr for entry in polib.pofile("after.po")}
for source, (target, expected) in texts.items():
    print(f"{target!r} -> {after[source]!r}")
    assert after[source] == expected
P
venv/bin/python check.py
echo "as described"
