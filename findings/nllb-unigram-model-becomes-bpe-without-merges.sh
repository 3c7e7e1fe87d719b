#!/usr/bin/env bash
# transformers 5.24.0 (PyPI) reads a Unigram SentencePiece model in a folder of NLLB as a BPE, for which it finds
# almost no merges. Texts fall apart into letters.
#
# Guess before the run: NllbTokenizer reads the type of sentencepiece.bpe.model and builds Unigram or BPE, as transformers 4 does.
# Seen (transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3, protobuf 7.36.2, Python 3.11, x86-64):
#
#   unigram: sentencepiece has 107 pieces; tokenizer.json has a BPE with 17 merges; 6 pieces of the text become 32 tokens
#   bpe: sentencepiece has 150 pieces; tokenizer.json has a BPE with 112 merges; 6 pieces of the text become 6 tokens
#
# No warning is given. A merge is made of each two pieces that form a third one, and a Unigram model has few of these.
# NllbTokenizerFast of transformers 4.57.6 writes a Unigram model from the same file, with 6 tokens.
#
# Who meets it: people who trained their own SentencePiece model for a model of this family. Unigram is the default type of
# SentencePiece's trainer. Fine-tuning and serving then use other tokens than the model was trained on.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2

TRANSFORMERS_VERBOSITY=error "$folder/venv/bin/python" - "$folder" <<'P'
import json
import os
import random
import sys
import warnings

import sentencepiece
from transformers import NllbTokenizer

folder = sys.argv[1]
words = (
    "the cat sat on the mat and then it went home to sleep in the garden while birds sang over old trees "
    "near a small river where children play with stones every morning before school"
).split()
choose = random.Random(0)
with open(f"{folder}/text", "w") as file:
    for _ in range(2000):
        file.write(" ".join(choose.choice(words) for _ in range(8)).capitalize() + ".\n")

text = "the children sleep in the garden"
warnings.simplefilter("error")
for kind in ("unigram", "bpe"):
    model = f"{folder}/{kind}"
    os.makedirs(model)
    sentencepiece.SentencePieceTrainer.train(
        input=f"{folder}/text",
        model_prefix=f"{model}/sentencepiece.bpe",
        model_type=kind,
        vocab_size=150,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    original = sentencepiece.SentencePieceProcessor(model_file=f"{model}/sentencepiece.bpe.model")
    tokenizer = NllbTokenizer.from_pretrained(model)
    tokenizer.save_pretrained(f"{model}/saved")
    with open(f"{model}/saved/tokenizer.json") as file:
        saved = json.load(file)["model"]
    pieces, tokens = original.encode(text, out_type=str), tokenizer.tokenize(text)
    print(
        f"{kind}: sentencepiece has {len(original)} pieces; tokenizer.json has a {saved['type']} with "
        f"{len(saved['merges'])} merges; {len(pieces)} pieces of the text become {len(tokens)} tokens"
    )
    assert saved["type"] == "BPE"
    if kind == "unigram":
        assert len(saved["merges"]) < len(original) / 4 and len(tokens) > 4 * len(pieces)
    else:
        assert tokens == pieces
P
echo "as described"
