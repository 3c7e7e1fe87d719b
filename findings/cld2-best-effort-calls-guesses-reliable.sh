#!/usr/bin/env bash
# pycld2 0.42 (PyPI, Google's CLD2) calls its answers reliable when bestEffort is set, also where the same text without
# bestEffort has no answer and is called unreliable.
#
# Guess before the run: bestEffort names the likeliest language where CLD2 would say "unknown", and isReliable, which is "True if the
# detection is high confidence", stays False there.
# Seen (pycld2 0.42, Python 3.11, x86-64):
#
#   text                    default         bestEffort=True
#   Merci beaucoup !        un, False       en, True
#   Ich bin müde.           un, False       sk, True
#   Alles klar.             un, False       en, True
#   Non lo so.              un, False       en, True
#   Ti amo.                 un, False       war, True
#   Waar is het station?    un, False       af, True
#   Qwrt plk                un, False       en, True
#
# Six short phrases of French, German, Italian and Dutch get a wrong language, and letters without meaning get English. Only for
# still shorter texts, such as "OK", does isReliable stay False.
#
# Who meets it: programs that set bestEffort, which the documentation offers for short texts, and then trust isReliable.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycld2==0.42

"$folder/venv/bin/python" - <<'P'
import pycld2

texts = {
    "Merci beaucoup !": "fr",
    "Ich bin müde.": "de",
    "Alles klar.": "de",
    "Non lo so.": "it",
    "Ti amo.": "it",
    "Waar is het station?": "nl",
    "Qwrt plk": None,
}
print(f"{'text':24}{'default':16}bestEffort=True")
for text, language in texts.items():
    reliable, _, answers = pycld2.detect(text)
    surely, _, guesses = pycld2.detect(text, bestEffort=True)
    print(f"{text:24}{f'{answers[0][1]}, {reliable}':16}{guesses[0][1]}, {surely}")
    assert answers[0][1] == "un" and not reliable
    assert guesses[0][1] not in ("un", language) and surely
assert not pycld2.detect("OK", bestEffort=True)[0]
P
echo "as described"
