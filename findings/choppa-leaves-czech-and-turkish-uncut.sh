#!/usr/bin/env bash
# choppa-srx 1.0.0 (PyPI) with LanguageTool's rules, which it ships, cuts nothing in languages that these rules do not know, such as
# Czech, Turkish and Vietnamese. A text comes back as one segment, without an error.
#
# Guess before the run: every language is cut at its own full stops, Hindi and Thai too, and a code that is not known is refused.
# Seen (choppa-srx 1.0.0, regex 2026.11.19, Python 3.11), segments of the same three sentences:
#
#   3    sv_two    Det är bra. Hur mår du? Vi går.
#   3    ar_two    هذا جيد. كيف حالك؟ نحن ذاهبون.
#   1    cs_two    To je dobré. Jak se máš? Jdeme.
#   1    tr_two    Bu iyi. Nasılsın? Gidiyoruz.
#   1    fi_two    Se on hyvä. Mitä kuuluu? Mennään.
#   1    hu_two    Ez jó. Hogy vagy? Megyünk.
#   1    vi_two    Tốt lắm. Bạn khỏe không? Chúng ta đi.
#   1    he_two    זה טוב. מה שלומך? אנחנו הולכים.
#   1    ko_two    좋아요. 어떻게 지내요? 우리는 갑니다.
#   1    hi_two    यह अच्छा है। आप कैसे हैं? हम चलते हैं।
#   3    en_two    To je dobré. Jak se máš? Jdeme.
#
# A code that no map knows ("xx_two") is treated in the same way.
#
# Who meets it: translation of documents in many languages with one segmenter. A whole paragraph becomes one source, and a model drops
# or cuts what it cannot hold.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check choppa-srx==1.0.0 regex==2026.11.19

"$folder/venv/bin/python" - <<'P'
from pathlib import Path

import choppa
from choppa import SrxDocument, SrxTextIterator

rules = Path(choppa.__file__).parent / "data/srx/languagetool_segment.srx"
document = SrxDocument(ruleset=str(rules))
for count, language, text in (
    (3, "sv_two", "Det är bra. Hur mår du? Vi går."),
    (3, "ar_two", "هذا جيد. كيف حالك؟ نحن ذاهبون."),
    (1, "cs_two", "To je dobré. Jak se máš? Jdeme."),
    (1, "tr_two", "Bu iyi. Nasılsın? Gidiyoruz."),
    (1, "fi_two", "Se on hyvä. Mitä kuuluu? Mennään."),
    (1, "hu_two", "Ez jó. Hogy vagy? Megyünk."),
    (1, "vi_two", "Tốt lắm. Bạn khỏe không? Chúng ta đi."),
    (1, "he_two", "זה טוב. מה שלומך? אנחנו הולכים."),
    (1, "ko_two", "좋아요. 어떻게 지내요? 우리는 갑니다."),
    (1, "hi_two", "यह अच्छा है। आप कैसे हैं? हम चलते हैं।"),
    (3, "en_two", "To je dobré. Jak se máš? Jdeme."),
):
    segments = list(SrxTextIterator(document, language, text))
    print(f"{len(segments)}    {language}    {text}")
    assert len(segments) == count and "".join(segments) == text
assert len(list(SrxTextIterator(document, "xx_two", "One. Two."))) == 1
P
echo "as described"
