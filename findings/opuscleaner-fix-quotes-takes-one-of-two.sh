#!/usr/bin/env bash
# The filter fix_quotes of opuscleaner 0.7.1 (PyPI) takes the opening quotation mark of a line and leaves its closing one.
#
# Guess before the run: it leaves lines that are right as they are.
# Seen (opuscleaner 0.7.1, Python 3.11):
#
#   '"Yes," she said.' -> 'Yes," she said.'
#   '„Ja“, sagte sie.' -> 'Ja“, sagte sie.'
#   '"Yes" and "no" are answers.' -> 'Yes" and "no" are answers.'
#   '„Alles ist gut.“' -> 'Alles ist gut.“'
#   "'Tis the season." -> 'Tis the season.'
#   '"All is well."' -> 'All is well.'
#
# The first character of a line goes if it is one of six marks. At the end only straight marks, ” and ; go, whatever was at the
# beginning. Only the last line loses both of its marks.
#
# Who meets it: training data of novels and news, where dialogue begins with a mark. A model learns to drop the opening mark.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps opuscleaner==0.7.1

"$folder/venv/bin/python" - "$folder"/venv/lib/python3*/site-packages/opuscleaner/filters/fix_quotes.py <<'P'
import subprocess
import sys

lines = {
    '"Yes," she said.': 'Yes," she said.',
    "„Ja“, sagte sie.": "Ja“, sagte sie.",
    '"Yes" and "no" are answers.': 'Yes" and "no" are answers.',
    "„Alles ist gut.“": "Alles ist gut.“",
    "'Tis the season.": "Tis the season.",
    '"All is well."': "All is well.",
}
given = "".join(f"{line}\tx\n" for line in lines)
found = subprocess.run([sys.executable, sys.argv[1]], input=given, capture_output=True, text=True, check=True).stdout
for (line, expected), out in zip(lines.items(), found.splitlines(), strict=True):
    seen = out.split("\t")[0]
    print(f"{line!r} -> {seen!r}")
    assert seen == expected
P
echo "as described"
