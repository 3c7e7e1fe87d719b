#!/usr/bin/env bash
# bifixer 0.8.12 (PyPI) replaces Cyrillic and Greek letters that look like Latin ones, in words and symbols of their own script too,
# and removes whatever stands between "<" and ">".
#
# Guess before the run: letters are repaired only where a word mixes two scripts. "a < b" is no tag.
# Seen (bifixer 0.8.12, ftfy 6.3.1, xxhash 3.2.0, Python 3.11, --ignore_segmentation), the English side of English-German pairs:
#
#   'He lives in Москва now.' -> 'He lives in MockBa now.'
#   'We measured ΔT = 5 K.' -> 'We measured AT = 5 K.'
#   'The angles are α and β.' -> 'The angles are a and B.'
#   'Wait if a < b and c > d here.' -> 'Wait if a d here.'
#
# and of the German side 'Die Winkel sind α und β.' -> 'Die Winkel sind a und ß.', where ß is a letter of German.
#
# Who meets it: training data that went through bifixer, which is a step of several public pipelines for parallel corpora: formulas,
# names in their own script, texts on software. A pair stays in the corpus with its text changed on one side or on both.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bifixer==0.8.12 ftfy==6.3.1 xxhash==3.2.0
cd "$folder"

cat >check.py <<'P'
import subprocess

pairs = (
    ("He lives in Москва now.", "Er wohnt jetzt in Moskau.", "He lives in MockBa now.", "Er wohnt jetzt in Moskau."),
    ("We measured ΔT = 5 K.", "Gemessen: 5 K.", "We measured AT = 5 K.", "Gemessen: 5 K."),
    ("The angles are α and β.", "Die Winkel sind α und β.", "The angles are a and B.", "Die Winkel sind a und ß."),
    ("Wait if a < b and c > d here.", "Warte hier.", "Wait if a d here.", "Warte hier."),
)
with open("in.tsv", "w") as file:
    file.writelines(f"http://a.example\thttp://b.example\t{source}\t{target}\n" for source, target, *_ in pairs)
subprocess.run(["venv/bin/bifixer", "in.tsv", "out.tsv", "en", "de", "--ignore_segmentation", "-q"], check=True)
rows = [line.rstrip("\n").split("\t") for line in open("out.tsv")]
assert len(rows) == len(pairs)
for (source, target, *expected), row in zip(pairs, rows, strict=True):
    for before, after in ((source, row[2]), (target, row[3])):
        if before != after:
            print(f"{before!r} -> {after!r}")
    assert row[2:4] == expected
P
venv/bin/python check.py
echo "as described"
