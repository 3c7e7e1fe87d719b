#!/usr/bin/env bash
# LatinWordDetokenizer of sil-machine 1.9.2 (PyPI) removes the blank behind a word in single quotes and before a hyphen or "<", and
# adds one behind a dash.
#
# Guess before the run: LatinWordTokenizer and LatinWordDetokenizer, made for each other, give back an ordinary sentence.
# Seen (sil-machine 1.9.2, Python 3.11):
#
#   "He said 'no' to her." -> "He said 'no'to her."
#   "The word 'love' is here." -> "The word 'love'is here."
#   'Day 1 - the garden' -> 'Day 1- the garden'
#   'He came—and left.' -> 'He came— and left.'
#   'It is < 5 km away.' -> 'It is <5 km away.'
#   '« Viens », dit-il.' -> '«Viens», dit-il.'
#   'He said, "Go home."' -> 'He said, "Go home."'
#   "It's the dogs' bowl." -> "It's the dogs' bowl."
#
# The tokenizer keeps single quotes in the word ("'no'"), and the detokenizer takes the second one for an elision as in l'homme.
#
# Who meets it: statistical engines of sil-machine, whose settings name this pair of classes, with texts that have quotations within
# quotations.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sil-machine==1.9.2

"$folder/venv/bin/python" - <<'P'
from machine.tokenization import LatinWordDetokenizer, LatinWordTokenizer

tokenizer, detokenizer = LatinWordTokenizer(), LatinWordDetokenizer()
for text, expected in (
    ("He said 'no' to her.", "He said 'no'to her."),
    ("The word 'love' is here.", "The word 'love'is here."),
    ("Day 1 - the garden", "Day 1- the garden"),
    ("He came—and left.", "He came— and left."),
    ("It is < 5 km away.", "It is <5 km away."),
    ("« Viens », dit-il.", "«Viens», dit-il."),
    ('He said, "Go home."', 'He said, "Go home."'),
    ("It's the dogs' bowl.", "It's the dogs' bowl."),
):
    seen = detokenizer.detokenize(list(tokenizer.tokenize(text)))
    print(f"{text!r} -> {seen!r}")
    assert seen == expected
P
echo "as described"
