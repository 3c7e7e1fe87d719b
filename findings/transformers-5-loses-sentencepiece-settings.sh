#!/usr/bin/env bash
# transformers 5.24.0 (PyPI) keeps two settings of a SentencePiece model in none of its tokenizers for NLLB and mBART-50:
# remove_extra_whitespaces and byte_fallback.
#
# Guess before the run: tokenizer.json says what the SentencePiece model says. Blanks at the ends are removed or kept as its
# setting tells, and a letter without a piece becomes its bytes if the model was trained with byte_fallback.
# Seen (transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3, protobuf 7.36.2, Python 3.11, x86-64):
#
#   NllbTokenizer, remove_extra_whitespaces=True: 'the cat ' is ['▁the', '▁cat'], read as ['▁the', '▁cat', '▁']
#   NllbTokenizer, remove_extra_whitespaces=True: 'the é' is ['▁the', '▁', '<0xC3>', '<0xA9>'], read as ['▁the', '▁', '<unk>']
#   NllbTokenizer, remove_extra_whitespaces=False: 'the  cat' is ['▁the', '▁', '▁cat'], read as ['▁the', '▁cat']
#
# and the same with MBart50Tokenizer. All 256 byte pieces are in the vocabulary, "byte_fallback" in tokenizer.json is false, and
# no warning is given; transformers 4.57.6 warns of it, and removes the blank at the end.
#
# Who meets it: programs whose texts end in a blank, which now costs a token that the model was never trained on, and models
# trained with byte_fallback, which lose each letter that has no piece.
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
from transformers import MBart50Tokenizer, NllbTokenizer

folder = sys.argv[1]
words = (
    "the cat sat on the mat and then it went home to sleep in the garden while birds sang over old trees "
    "near a small river where children play with stones every morning before school"
).split()
choose = random.Random(0)
with open(f"{folder}/text", "w") as file:
    for _ in range(2000):
        file.write(" ".join(choose.choice(words) for _ in range(8)).capitalize() + ".\n")

warnings.simplefilter("error")
# NLLB's own model is a BPE, mBART-50's is Unigram.
for kind, model_type in ((NllbTokenizer, "bpe"), (MBart50Tokenizer, "unigram")):
    for remove in (True, False):
        model = f"{folder}/{kind.__name__}-{remove}"
        os.makedirs(model)
        sentencepiece.SentencePieceTrainer.train(
            input=f"{folder}/text",
            model_prefix=f"{model}/sentencepiece.bpe",
            model_type=model_type,
            vocab_size=400,
            hard_vocab_limit=False,
            byte_fallback=True,
            remove_extra_whitespaces=remove,
            minloglevel=2,
        )
        original = sentencepiece.SentencePieceProcessor(model_file=f"{model}/sentencepiece.bpe.model")
        tokenizer = kind.from_pretrained(model)
        tokenizer.save_pretrained(f"{model}/saved")
        with open(f"{model}/saved/tokenizer.json") as file:
            assert json.load(file)["model"]["byte_fallback"] is False
        assert all(f"<0x{byte:02X}>" in tokenizer.get_vocab() for byte in range(256))
        for text in ("the cat ", "the é") if remove else ("the  cat",):
            expected, seen = original.encode(text, out_type=str), tokenizer.tokenize(text)
            print(f"{kind.__name__}, remove_extra_whitespaces={remove}: {text!r} is {expected}, read as {seen}")
            assert expected != seen
        if remove:
            assert tokenizer.tokenize("the cat ") == ["▁the", "▁cat", "▁"]
            assert not any(token.startswith("<0x") for token in tokenizer.tokenize("the é"))
        else:
            assert tokenizer.tokenize("the  cat") == ["▁the", "▁cat"]
P
echo "as described"
