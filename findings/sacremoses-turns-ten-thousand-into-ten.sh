#!/usr/bin/env bash
# sacremoses 0.2.0 (PyPI) writes a comma or a full stop into numbers whose thousands are separated by a no-break space. Where that mark
# is the decimal separator, ten thousand becomes ten.
#
# Guess before the run: MosesPunctNormalizer makes an ordinary blank of a no-break space, or keeps it.
# Seen (sacremoses 0.2.0, Python 3.11), with U+00A0 shown as "_":
#
#   en: 'The town has 10_000 people.' -> 'The town has 10.000 people.'
#   de: 'Der Ort hat 10_000 Einwohner.' -> 'Der Ort hat 10,000 Einwohner.'
#   fr: 'La ville a 10_000 habitants.' -> 'La ville a 10,000 habitants.'
#   es: 'El peso es de 2_500 kg.' -> 'El peso es de 2,500 kg.'
#   de: 'Am 3. Mai 2019_20 Gäste.' -> 'Am 3. Mai 2019,20 Gäste.'
#
# The step norm_numbers, on by default, inserts "," for German, Spanish, Czech and French, where it is the decimal comma, and "."
# for all other languages, English too. U+202F, the narrow no-break space, is kept. norm_numbers=False keeps the numbers.
#
# Who meets it: preparation of training data and of texts to translate, with typeset numbers. French and German style ask for this
# very space, so source and target get different values.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sacremoses==0.2.0

"$folder/venv/bin/python" - <<'P'
from sacremoses import MosesPunctNormalizer

SPACE, NARROW = "\u00a0", "\u202f"
for language, text, expected in (
    ("en", "The town has 10_000 people.", "The town has 10.000 people."),
    ("de", "Der Ort hat 10_000 Einwohner.", "Der Ort hat 10,000 Einwohner."),
    ("fr", "La ville a 10_000 habitants.", "La ville a 10,000 habitants."),
    ("es", "El peso es de 2_500 kg.", "El peso es de 2,500 kg."),
    ("de", "Am 3. Mai 2019_20 Gäste.", "Am 3. Mai 2019,20 Gäste."),
):
    seen = MosesPunctNormalizer(language).normalize(text.replace("_", SPACE))
    print(f"{language}: {text!r} -> {seen!r}")
    assert seen == expected
    # Neither another space nor another setting changes the value.
    narrow = text.replace("_", NARROW)
    assert MosesPunctNormalizer(language).normalize(narrow) == narrow
    kept = MosesPunctNormalizer(language, norm_numbers=False).normalize(text.replace("_", SPACE))
    assert kept == text.replace("_", SPACE)
P
echo "as described"
