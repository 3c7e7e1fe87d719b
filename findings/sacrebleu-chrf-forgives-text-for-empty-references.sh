#!/usr/bin/env bash
# chrF and chrF++ of sacrebleu 2.6.0 (PyPI) do not count what a system writes for a line whose reference is empty. A corpus with an
# invented sentence on each such line scores 100.
#
# No guess was written down before the run. What one expects: every n-gram of a hypothesis counts for precision, so that text for an
# empty reference costs points.
# Seen (sacrebleu 2.6.0, Python 3.11), for four lines, two of which are empty in the reference:
#
#   metric    lines left empty    a sentence invented for each
#   BLEU      100.0               46.8
#   chrF2     100.0               100.0
#   chrF2++   100.0               100.0
#   TER       0.0                 112.5
#
# One of these lines alone scores 0.0, so the mean of sentences and the corpus disagree. In a corpus, n-grams of an order are counted
# only for lines whose reference has some.
#
# Who meets it: evaluation on lines as they are in a document, with empty ones, and on references that translators left out on purpose.
# By this metric a model that invents text looks perfect.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sacrebleu==2.6.0

"$folder/venv/bin/python" - <<'P'
from sacrebleu.metrics import BLEU, CHRF, TER

references = ["The cat sleeps on the old wooden chair.", "", "Nobody knew where the key had been hidden.", ""]
invented = [line or "This is a long sentence about nothing at all." for line in references]
print("metric    lines left empty    a sentence invented for each")
for name, metric in (("BLEU", BLEU()), ("chrF2", CHRF()), ("chrF2++", CHRF(word_order=2)), ("TER", TER())):
    empty, text = (metric.corpus_score(lines, [references]).score for lines in (references, invented))
    print(f"{name:10}{empty:<20.1f}{text:.1f}")
    assert round(empty, 1) == (0 if name == "TER" else 100)
    if name.startswith("chrF"):
        assert round(text, 1) == 100 and metric.sentence_score(invented[1], [""]).score == 0
    else:
        assert abs(text - empty) > 50
P
echo "as described"
