#!/usr/bin/env bash
# sil-thot 3.5.3 (PyPI) aligns no word of a sentence with more than 200 words by its HMM and IBM 4 models, and of one with more than 1,024
# by fast_align and IBM 1. It raises no error, and all such sentences have the same score.
#
# Guess before the run: a sentence of 250 words gets an alignment.
# Seen (sil-thot 3.5.3, Python 3.11, x86-64), after training on 1,000 short pairs that are translated word by word, links and the
# logarithm of the probability:
#
#   HmmAlignmentModel     200 words: some links, -727.3
#   HmmAlignmentModel     201 words: no links, -99999.0
#   Ibm4AlignmentModel    200 words: some links, -inf
#   Ibm4AlignmentModel    201 words: no links, -99999.0
#   FastAlignModel       1024 words: some links, -5759.1
#   FastAlignModel       1025 words: no links, -99999.0
#   Ibm1AlignmentModel   1024 words: some links, -7145.3
#   Ibm1AlignmentModel   1025 words: no links, -99999.0
#
# Who meets it: alignment of laws, scripture and text without sentence boundaries, with sil-machine too, which uses these models. Scores
# that rank pairs by quality put all long ones at the same place.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sil-thot==3.5.3

"$folder/venv/bin/python" - <<'P'
import random

from thot import alignment

words = "the a dog cat house tree sees likes eats big small red old new man woman child book water bread".split()


def pair(length: int) -> tuple[list[str], list[str]]:
    source = random.choices(words, k=length)
    return source, [f"{word}_de" for word in source]


for name, limit in (("HmmAlignmentModel", 200), ("Ibm4AlignmentModel", 200), ("FastAlignModel", 1024), ("Ibm1AlignmentModel", 1024)):
    random.seed(1)
    model = getattr(alignment, name)()
    for _ in range(1000):
        model.add_sentence_pair(*pair(random.randint(3, 12)), 1)
    model.start_training()
    for _ in range(5):
        model.train()
    model.end_training()
    for length in (limit, limit + 1):
        score, matrix = model.get_best_alignment(*pair(length))
        links = sum(bool(matrix[row, column]) for row in range(length) for column in range(length))
        print(f"{name:20} {length:5} words: {'some' if links else 'no'} links, {score:.1f}")
        assert (links > 10, score > -99999.0 or score == float("-inf")) == (length == limit,) * 2
P
echo "as described"
