#!/usr/bin/env bash
# num2words 0.5.14 (PyPI) leaves out the minus of numbers between -1 and 0 in most languages. In Persian and Bengali it reads 1.05 as 1.5.
#
# No guess was written down on these numbers. What one expects: -0.5 keeps its minus, as -1.5 does, and 1.05 its zero.
# Seen (num2words 0.5.14, Python 3.11), number and words:
#
#   en -0.5 zero point five
#   en -1.5 minus one point five
#   de -0.5 null Komma fünf
#   fr -0.5 zéro virgule cinq
#   es -0.5 cero punto cinco
#   ja -0.5 零点五
#   it -0.5 meno zero virgola cinque
#   fa 1.05 یک و نیم
#   fa 1.5 یک و نیم
#   bn 1.05 এক দশমিক পাঁচ
#   bn 1.5 এক দশমিক পাঁচ
#
# The Persian words say "one and a half", the Bengali words "one point five". No error is given.
#
# Who meets it: speech of translated text, and training data in which numbers are written out. A frost of half a degree is read as warmth,
# and a dose of 1.05 mg as one of 1.5 mg.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check num2words==0.5.14

"$folder/venv/bin/python" - <<'P'
from num2words import num2words

for language, number in (
    ("en", -0.5),
    ("en", -1.5),
    ("de", -0.5),
    ("fr", -0.5),
    ("es", -0.5),
    ("ja", -0.5),
    ("it", -0.5),
    ("fa", 1.05),
    ("fa", 1.5),
    ("bn", 1.05),
    ("bn", 1.5),
):
    print(language, number, num2words(number, lang=language))
for language in ("en", "de", "fr", "es", "ja"):
    assert num2words(-0.5, lang=language) == num2words(0.5, lang=language)
    assert num2words(-1.5, lang=language) != num2words(1.5, lang=language)
assert num2words(-0.5, lang="it") != num2words(0.5, lang="it")
for language in ("fa", "bn"):
    assert num2words(1.05, lang=language) == num2words(1.5, lang=language)
P
echo "as described"
