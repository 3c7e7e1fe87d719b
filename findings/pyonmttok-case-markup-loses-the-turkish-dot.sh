#!/usr/bin/env bash
# The tokenizer pyonmttok 1.38.1 (PyPI) with case_markup takes the dot off the Turkish capital İ and makes ß of the German capital ẞ. The
# argument lang keeps the first, and then makes SS of the second.
#
# Guess before the run: detokenize() of tokenize() gives back the text. Markup that cannot express a letter's case leaves that letter alone.
# Seen (pyonmttok 1.38.1, Python 3.11, x86-64):
#
#   lang=None: 'İyi günler, İzmir!' -> 'Iyi günler, Izmir!'
#   lang=None: 'GROẞE FREUDE' -> 'GROßE FREUDE'
#   lang=tr: 'İyi günler, İzmir!' -> 'İyi günler, İzmir!'
#   lang=tr: 'GROẞE FREUDE' -> 'GROSSE FREUDE'
#   lang=de: 'İzmir' -> 'I\u0307zmir'
#   lang=el: 'ΆΓΙΟΣ' -> 'ΑΓΙΟΣ'
#
# With German the letter becomes two characters. Without lang the tokens are 'iyi' and 'izmir' with a mark for the capital, and the plain i
# becomes I again. case_feature loses the same letters.
#
# Who meets it: models for several languages, which have one tokenizer for all, with the case markup that OpenNMT's toolkits use. A Turkish
# sentence that begins with İ is misspelt, in the training data and in the answer.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyonmttok==1.38.1

"$folder/venv/bin/python" - <<'P'
import pyonmttok

for lang, text, expected in (
    (None, "İyi günler, İzmir!", "Iyi günler, Izmir!"),
    (None, "GROẞE FREUDE", "GROßE FREUDE"),
    ("tr", "İyi günler, İzmir!", "İyi günler, İzmir!"),
    ("tr", "GROẞE FREUDE", "GROSSE FREUDE"),
    ("de", "İzmir", "I\u0307zmir"),
    ("el", "ΆΓΙΟΣ", "ΑΓΙΟΣ"),
):
    options = {"lang": lang} if lang else {}
    tokenizer = pyonmttok.Tokenizer("conservative", joiner_annotate=True, case_markup=True, **options)
    seen = tokenizer.detokenize(tokenizer.tokenize(text)[0])
    shown = seen.replace("\u0307", "\\u0307")
    print(f"lang={lang}: {text!r} -> '{shown}'")
    assert seen == expected
features = pyonmttok.Tokenizer("space", case_feature=True)
assert features.detokenize(*features.tokenize("İzmir")) == "Izmir"
plain = pyonmttok.Tokenizer("conservative", joiner_annotate=True)
assert plain.detokenize(plain.tokenize("İyi günler, İzmir!")[0]) == "İyi günler, İzmir!"
P
echo "as described"
