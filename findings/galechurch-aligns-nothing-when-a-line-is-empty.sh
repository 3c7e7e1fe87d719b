#!/usr/bin/env bash
# The sentence aligner galechurch 0.1.0 (PyPI) aligns no sentence with any other when one of them is empty.
#
# Guess before the run: two texts with the same sentences are aligned one to one. None was written down on an empty line. What one expects
# is that it is left alone, or pairs with the empty line of the other side.
# Seen (galechurch 0.1.0, Python 3.11, x86-64), pairs of the same four sentences:
#
#   as they are: 4 pairs
#   with an empty line in the English text: 0 pairs
#   with an empty line in both texts, at the same place: 0 pairs
#   with 1 empty line among 1,000 sentences: 0 pairs
#
# All sentences come back as sentences without a partner, the English ones first and then the German ones. A line that has only a blank does
# the same. No error and no warning is given.
#
# Who meets it: parallel corpora made of texts with paragraphs, where lines are sentences and an empty line stands between paragraphs. The
# document gives no pair.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check galechurch==0.1.0

"$folder/venv/bin/python" - <<'P'
from galechurch import align

english = ["The house is red.", "He came home late.", "In the morning it rained.", "We ate bread and cheese."]
german = ["Das Haus ist rot.", "Er kam spät nach Hause.", "Am Morgen regnete es.", "Wir aßen Brot und Käse."]


def pairs(source, target):
    lines = align(source, target).to_pharaoh_lines()
    found = [line for line in lines if not line.startswith("[]:") and not line.endswith(":[]")]
    assert found or len(lines) == len(source) + len(target)
    return len(found)


def with_line(sentences, line=""):
    return [*sentences[:2], line, *sentences[2:]]


for name, source, target, expected in (
    ("as they are", english, german, 4),
    ("with an empty line in the English text", with_line(english), german, 0),
    ("with an empty line in both texts, at the same place", with_line(english), with_line(german), 0),
    ("with 1 empty line among 1,000 sentences", with_line(english * 250), german * 250, 0),
):
    seen = pairs(source, target)
    print(f"{name}: {seen} pairs")
    assert seen == expected
assert pairs(with_line(english, " "), with_line(german, " ")) == 0
P
echo "as described"
