#!/usr/bin/env bash
# CHRFScore of torchmetrics 1.9.0 (PyPI) leaves out the reference of a translation that has nothing in common with it: an empty
# translation costs nothing. A perfect translation of one short word scores 37.5.
#
# Guess before the run: CHRFScore() is chrF++ as sacrebleu computes it, of the whole corpus.
# Seen (torchmetrics 1.9.0, sacrebleu 2.6.0, torch 2.11.0, Python 3.11, x86-64), torchmetrics and sacrebleu with word_order=2:
#
#   four perfect translations: 100.0 and 100.0
#   three of them empty: 100.0 and 28.9
#   three of them in another script: 86.9 and 27.7
#   only "Hi", perfect: 37.5 and 100.0
#
# The reference with the best score of its sentence is counted, and 0 is not better than the 0 at the beginning. Orders of n-grams that
# no sentence is long enough for count as 0.
#
# Who meets it: validation during training, and comparisons of systems. A system that returns nothing for hard sentences scores best.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0 torchmetrics==1.9.0 sacrebleu==2.6.0

"$folder/venv/bin/python" - <<'P'
import sacrebleu
from torchmetrics.text import CHRFScore

references = [
    "The cat sleeps on the old wooden chair.",
    "Nobody knew where the key had been hidden.",
    "We arrived at the station far too late.",
    "Prices rose again in the third quarter.",
]
other = ["Мы не знаем", "Это было вчера", "Кошка спит"]
for label, hypotheses, targets, expected in (
    ("four perfect translations", references, references, (100.0, 100.0)),
    ("three of them empty", [references[0], "", "", ""], references, (100.0, 28.9)),
    ("three of them in another script", [references[0], *other], references, (86.9, 27.7)),
    ('only "Hi", perfect', ["Hi"], ["Hi"], (37.5, 100.0)),
):
    torch_score = 100 * CHRFScore()(hypotheses, [[it] for it in targets]).item()
    sacre_score = sacrebleu.corpus_chrf(hypotheses, [targets], word_order=2).score
    print(f"{label}: {torch_score:.1f} and {sacre_score:.1f}")
    assert (round(torch_score, 1), round(sacre_score, 1)) == expected
P
echo "as described"
