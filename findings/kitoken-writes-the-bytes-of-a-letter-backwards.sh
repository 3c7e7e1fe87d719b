#!/usr/bin/env bash
# kitoken 0.11.1 (PyPI) reverses the bytes of a letter that has no piece, if the model is a Unigram of SentencePiece with byte_fallback.
#
# Guess before the run: the ids are those of SentencePiece, whose models kitoken reads.
# Seen (kitoken 0.11.1, sentencepiece 0.2.3, Python 3.11, x86-64), the pieces of bytes from sentencepiece and from kitoken:
#
#   unigram: 'the 火 town' has <0xE7><0x81><0xAB> and <0xAB><0x81><0xE7>
#   unigram: 'café' has <0xC3><0xA9> and <0xA9><0xC3>
#   bpe: 'the 火 town' has <0xE7><0x81><0xAB> and <0xE7><0x81><0xAB>
#   bpe: 'café' has <0xC3><0xA9> and <0xC3><0xA9>
#
# The number of tokens is right. kitoken itself decodes its Unigram ids to bytes that are no UTF-8.
#
# Who meets it: services that tokenize with kitoken for a model trained with SentencePiece. Rare Chinese characters, symbols and letters of
# names reach the model as noise; the rest is right, so that the average of a test set hardly moves.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kitoken==0.11.1 sentencepiece==0.2.3
cd "$folder"

cat >check.py <<'P'
import re

from kitoken import Kitoken
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

lines = ["the old town by the river", "the river runs through the old town", "children play in the old garden", "日本語の本を読む"]
for kind in ("unigram", "bpe"):
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20), model_prefix=kind, model_type=kind, vocab_size=310, byte_fallback=True,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    real, other = SentencePieceProcessor(model_file=f"{kind}.model"), Kitoken.from_sentencepiece_file(f"{kind}.model")
    for text in ("the 火 town", "café"):
        ids = list(other.encode(text, False))
        first, second = (re.findall("<0x[89A-F].>", "".join(real.id_to_piece(it))) for it in (real.encode(text), ids))
        print(f"{kind}: {text!r} has {''.join(first)} and {''.join(second)}")
        assert len(first) in (2, 3)
        assert second == (first[::-1] if kind == "unigram" else first)
        assert (other.decode(ids, False) == text.encode()) == (kind == "bpe")
P
venv/bin/python check.py
echo "as described"
