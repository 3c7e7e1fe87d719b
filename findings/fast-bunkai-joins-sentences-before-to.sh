#!/usr/bin/env bash
# fast-bunkai 0.1.1 (PyPI) ends no Japanese sentence before one that begins with the letter と (to), such as とても ("very"), ところで ("by the
# way") or ともだち ("friend").
#
# Guess before the run: the sentences are those of bunkai, with which it calls itself compatible.
# Seen (fast-bunkai 0.1.1, bunkai 1.5.7, Python 3.11, x86-64), the number of sentences:
#
#   bunkai 2, fast-bunkai 1: これは本です。とても面白い。
#   bunkai 2, fast-bunkai 1: 着きました！ところで、元気？
#   bunkai 2, fast-bunkai 1: 人が来た。ともだちだ。
#   bunkai 2, fast-bunkai 1: 時間がない。とにかく行こう。
#   bunkai 2, fast-bunkai 2: 人が来た。友達だ。
#   bunkai 2, fast-bunkai 2: これは本です。かなり面白い。
#   bunkai 1, fast-bunkai 1: 行こう！と思った。
#
# と is also the particle behind what somebody says or thinks, where the sentence goes on (last line). bunkai has a tagger for this.
#
# Who meets it: translation and speech of Japanese text. Reviews are full of とても. Two sentences reach the model as one.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fast-bunkai==0.1.1 bunkai==1.5.7

"$folder/venv/bin/python" - <<'P'
from bunkai import Bunkai
from fast_bunkai import FastBunkai

slow, fast = Bunkai(), FastBunkai()
for text, expected in (
    ("これは本です。とても面白い。", (2, 1)),
    ("着きました！ところで、元気？", (2, 1)),
    ("人が来た。ともだちだ。", (2, 1)),
    ("時間がない。とにかく行こう。", (2, 1)),
    ("人が来た。友達だ。", (2, 2)),
    ("これは本です。かなり面白い。", (2, 2)),
    ("行こう！と思った。", (1, 1)),
):
    seen = len(list(slow(text))), len(list(fast(text)))
    print(f"bunkai {seen[0]}, fast-bunkai {seen[1]}: {text}")
    assert seen == expected
P
echo "as described"
