#!/usr/bin/env bash
# simple-sentencepiece 0.14 (PyPI) reads the vocabulary of a SentencePiece BPE model, as its README says, and cuts many words otherwise than
# SentencePiece does.
#
# Guess before the run: the pieces are those of SentencePiece, for BPE as for Unigram.
# Seen (simple-sentencepiece 0.14, sentencepiece 0.2.3, Python 3.11, x86-64), models of 100 pieces (Unigram) and 150 pieces (BPE):
#
#   unigram: 25 of 25 words alike
#   bpe: 10 of 25 words alike
#   sentencepiece: ▁the ▁garden
#   simple-sentencepiece: ▁t he ▁garden
#
# SentencePiece applies the merges of a BPE model in their order. simple-sentencepiece cuts as if the scores in the vocabulary, which count
# the merges, were those of a Unigram model. All pieces are known to the model and decode to the same text, so nothing fails.
#
# Who meets it: models with a BPE vocabulary of SentencePiece that are served without SentencePiece. The model gets pieces that it hardly
# ever saw together.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check simple-sentencepiece==0.14 sentencepiece==0.2.3
cd "$folder"

venv/bin/python - <<'P'
import random

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from ssentencepiece import Ssentencepiece

WORDS = """the house of a man is not far from river and children play in garden while old people read newspapers about weather market
translation sentence language computer science history""".split()
draw = random.Random(3)
with open("text", "w") as file:
    for _ in range(3000):
        file.write(" ".join(draw.choice(WORDS) for _ in range(draw.randint(5, 14))).capitalize() + ".\n")
words = [word for word in WORDS if len(word) > 2]
alike = {}
for kind, size in (("unigram", 100), ("bpe", 150)):
    SentencePieceTrainer.train(input="text", model_prefix=kind, vocab_size=size, model_type=kind, minloglevel=2)
    theirs = SentencePieceProcessor(model_file=f"{kind}.model")
    simple = Ssentencepiece(f"{kind}.vocab")
    alike[kind] = sum(theirs.encode(word) == simple.encode(word) for word in words)
    assert all(simple.decode(simple.encode(word)) == word for word in words)
    print(f"{kind}: {alike[kind]} of {len(words)} words alike")
print("sentencepiece:", *theirs.encode("the garden", out_type=str))
print("simple-sentencepiece:", *simple.encode("the garden", out_type=str))
assert alike["unigram"] == len(words) and alike["bpe"] < len(words) / 2
P
echo "as described"
