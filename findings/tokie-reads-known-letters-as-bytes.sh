#!/usr/bin/env bash
# tokie 0.1.4 (PyPI) cuts pieces that are in the vocabulary into bytes, if a tokenizer.json has a Unigram model with byte_fallback. A blank
# before a word costs three tokens.
#
# Guess before the run: the ids are those of tokenizers. tokie calls itself 100 % accurate.
# Seen (tokie 0.1.4, tokenizers 0.23.3, Python 3.11, x86-64), for a vocabulary that has the pieces ▁ ▁the ▁東京 caf é e:
#
#   byte_fallback=False, 'the 東京': ['▁the', '▁東京'] of tokenizers, ['▁the', '▁東京'] of tokie
#   byte_fallback=False, 'the café': ['▁the', '▁', 'caf', 'é'] of tokenizers, ['▁the', '▁', 'caf', 'é'] of tokie
#   byte_fallback=True, 'the 東京': ['▁the', '▁東京'] of tokenizers, ['▁the', 'E2 96 81 E6 9D B1 E4 BA AC'] of tokie
#   byte_fallback=True, 'the café': ['▁the', '▁', 'caf', 'é'] of tokenizers, ['▁the', 'E2 96 81 63 61 66 C3 A9'] of tokie
#
# The entries for bytes have the score 0, as SentencePiece writes it, and pieces have less. With -10 for bytes tokie gives the pieces of
# tokenizers.
#
# Who meets it: models for several languages with a SentencePiece Unigram. Texts become several times as long, and the model was never
# trained on such tokens.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokie==0.1.4 tokenizers==0.23.3
cd "$folder"

cat >check.py <<'P'
import tokie
from tokenizers import Tokenizer, models, pre_tokenizers


def show(ids: list[int]) -> list[str]:
    """The pieces, with the bytes that follow each other in one."""
    text = "\n".join(map(real.id_to_token, ids))
    return text.replace(">\n<0x", " ").replace("<0x", "").replace(">", "").split("\n")


for fallback, byte_score in ((False, None), (True, 0.0), (True, -10.0)):
    bytes_ = [(f"<0x{byte:02X}>", byte_score) for byte in range(256)] if fallback else []
    pieces = [("▁", -3.0), ("▁the", -2.0), ("▁東京", -4.0), ("caf", -5.0), ("é", -6.0), ("e", -5.0)]
    real = Tokenizer(models.Unigram([("<unk>", 0.0), *bytes_, *pieces], unk_id=0, byte_fallback=fallback))
    real.pre_tokenizer = pre_tokenizers.Metaspace()
    real.save("tokenizer.json")
    other = tokie.Tokenizer.from_json("tokenizer.json")
    for text, pieces, bytes_ in (
        ("the 東京", ["▁the", "▁東京"], ["▁the", "E2 96 81 E6 9D B1 E4 BA AC"]),
        ("the café", ["▁the", "▁", "caf", "é"], ["▁the", "E2 96 81 63 61 66 C3 A9"]),
    ):
        expected, seen = show(real.encode(text).ids), show(list(other.encode(text).ids))
        if byte_score != -10.0:
            print(f"byte_fallback={fallback}, {text!r}: {expected} of tokenizers, {seen} of tokie")
        assert expected == pieces
        assert seen == (bytes_ if byte_score == 0.0 else pieces)
P
venv/bin/python check.py
echo "as described"
