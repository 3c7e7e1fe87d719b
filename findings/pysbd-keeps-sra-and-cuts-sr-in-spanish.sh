#!/usr/bin/env bash
# pysbd 0.3.4 (PyPI) cuts Spanish sentences after "Sr." but not after "Sra.", and joins sentences that end with everyday words
# such as "auto" or "sobre".
#
# Guess before the run: forms of address and their feminine are treated alike, and a list of abbreviations has abbreviations.
# Seen (pysbd 0.3.4, Python 3.11, language "es", clean=False):
#
#   2    Vino la Sra. Gil anoche. Se fue pronto.
#   3    Vino el Sr. Gil anoche. Se fue pronto.
#   2    Vino el Dr. Gil anoche. Se fue pronto.
#   3    Vino la Dra. Gil anoche. Se fue pronto.
#   2    Ana vendió el coche. Luis lo compró.
#   1    Ana vendió el auto. Luis lo compró.
#   1    Ana cerró el sobre. Luis lo abrió.
#   1    Ana tiene un mono. Luis lo cuida.
#   1    Ana está muy bien. Luis está enfermo.
#
# Each text has two sentences. "sr" and "dra" are listed as abbreviations, but not as those that a name follows. That second list
# has prefixes of words instead (auto-, sobre-, mono-, bien-, para-, extra-), and a full stop after one never ends a sentence.
#
# Who meets it: programs that split Spanish text before translation, summaries or speech.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysbd==0.3.4

"$folder/venv/bin/python" -W ignore - <<'P'
import pysbd

expected = {
    "Vino la Sra. Gil anoche. Se fue pronto.": 2,
    "Vino el Sr. Gil anoche. Se fue pronto.": 3,
    "Vino el Dr. Gil anoche. Se fue pronto.": 2,
    "Vino la Dra. Gil anoche. Se fue pronto.": 3,
    "Ana vendió el coche. Luis lo compró.": 2,
    "Ana vendió el auto. Luis lo compró.": 1,
    "Ana cerró el sobre. Luis lo abrió.": 1,
    "Ana tiene un mono. Luis lo cuida.": 1,
    "Ana está muy bien. Luis está enfermo.": 1,
}
segmenter = pysbd.Segmenter(language="es", clean=False)
for text, sentences in expected.items():
    seen = len(segmenter.segment(text))
    print(f"{seen}    {text}")
    assert seen == sentences
P
echo "as described"
