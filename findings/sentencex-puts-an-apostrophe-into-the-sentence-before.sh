#!/usr/bin/env bash
# sentencex 1.0.32 (PyPI) ends a sentence behind the apostrophe with which the next one begins, as in Dutch 's Avonds and Afrikaans 'n Man.
#
# Guess before the run: a sentence that begins with 's or 't begins with its apostrophe, as in sentencex 0.6.1.
# Seen (sentencex 0.6.1 and 1.0.32, Python 3.11, x86-64), the sentences:
#
#   nl 0.6.1   Het is laat. | 's Avonds regent het.
#   nl 1.0.32  Het is laat. ' | s Avonds regent het.
#   nl 0.6.1   Het is laat. | ’s Avonds regent het.
#   nl 1.0.32  Het is laat. ’ | s Avonds regent het.
#   af 0.6.1   Dit reën. | 'n Man kom.
#   af 1.0.32  Dit reën. ' | n Man kom.
#   en 0.6.1   It was late. | 'Twas cold.
#   en 1.0.32  It was late. ' | Twas cold.
#   it 0.6.1   È tardi. | 'Ndrangheta è ovunque.
#   it 1.0.32  È tardi. ' | Ndrangheta è ovunque.
#
# A quotation in single quotes, which is closed again, is cut right. Version 1 is a new implementation, in Rust.
#
# Who meets it: translation by sentences of Dutch, where 's and 't begin many sentences, and of Afrikaans, where 'n is the article. The model
# reads "s Avonds" and "n Man", and the sentence before ends with an apostrophe.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 0.6.1 1.0.32; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "sentencex==$version"
done

cat >"$folder/cut.py" <<'P'
import sys

from sentencex import segment

for language, text in (
    ("nl", "Het is laat. 's Avonds regent het."),
    ("nl", "Het is laat. ’s Avonds regent het."),
    ("af", "Dit reën. 'n Man kom."),
    ("en", "It was late. 'Twas cold."),
    ("it", "È tardi. 'Ndrangheta è ovunque."),
    ("en", "She asked. 'Where?' He left."),
):
    sentences = [part.strip() for part in segment(language, text)]
    if "Where" in text:
        assert sentences[1].startswith("'Where?'")
        continue
    print(f"{language} {sys.argv[1]:8}{' | '.join(sentences)}")
    first, second = sentences
    mark = text[text.index(". ") + 2]
    assert (first[-1] == mark) == (sys.argv[1] == "1.0.32")
    assert (second[0] == mark) == (sys.argv[1] == "0.6.1")
P
for version in 0.6.1 1.0.32; do
  "$folder/$version/bin/python" "$folder/cut.py" "$version"
done
echo "as described"
