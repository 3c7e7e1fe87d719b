#!/usr/bin/env bash
# NonZeroNumeralsFilter of opusfilter 3.3.1 (PyPI) sees only the digits of ASCII. A pair whose target writes its numbers in Arabic, Hindi
# or full-width digits scores 0 and is dropped.
#
# Guess before the run: ١٠٠٠٠ is the number 10000, since Python's int() and str.isdigit() know these digits.
# Seen (opusfilter 3.3.1, Python 3.11), the score, which has to be 0.5 by default:
#
#   1.0 It costs 25 euros. | Es kostet 25 Euro.
#   0.0 It costs 25 euros. | يكلف ٢٥ يورو.
#   0.0 It costs 25 euros. | इसकी कीमत २५ यूरो है।
#   0.0 It costs 25 euros. | 価格は２５ユーロです。
#   1.0 It costs 25 euros. | يكلف 25 يورو.
#   1.0 يكلف ٢٥ يورو. | इसकी कीमत ९९ यूरो है।
#
# The last pair has two different numbers, and passes as if it had none.
#
# Who meets it: parallel corpora with Arabic, Persian, Hindi, Bengali, Nepali or Japanese. Lines with numbers disappear from the training
# data on one side of the world, and the model never learns to convert digits.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check opusfilter==3.3.1

"$folder/venv/bin/python" - <<'P'
from opusfilter.filters import NonZeroNumeralsFilter

numerals = NonZeroNumeralsFilter()
english, arabic = "It costs 25 euros.", "يكلف ٢٥ يورو."
for source, target, expected in (
    (english, "Es kostet 25 Euro.", 1.0),
    (english, arabic, 0.0),
    (english, "इसकी कीमत २५ यूरो है।", 0.0),
    (english, "価格は２５ユーロです。", 0.0),
    (english, "يكلف 25 يورو.", 1.0),
    (arabic, "इसकी कीमत ९९ यूरो है।", 1.0),
):
    score = next(numerals.score([(source, target)]))
    print(score[0], source, "|", target)
    assert score == [expected]
    assert numerals.accept(score) == (expected == 1.0)
P
echo "as described"
