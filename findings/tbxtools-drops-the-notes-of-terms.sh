#!/usr/bin/env bash
# tbxtools 0.1.0 (PyPI) drops the notes of terms in <ntig> when it converts a TBX file of 2008 to the standard of today. Forbidden terms
# become ordinary ones.
#
# Guess before the run: part of speech, gender and status stay with their term, and only names of elements change.
# Seen (tbxtools 0.1.0, Python 3.11), terms and their notes, before and after:
#
#   before: printer (noun, preferredTerm), printing machine (noun, deprecatedTerm), Drucker (noun, masculine)
#   after: printer (), printing machine (), Drucker (noun, masculine)
#
# An <ntig> has its term and the notes in a <termGrp>, which is removed when only the term has been moved out. A <tig>, as for the last
# term, has none. No warning is given.
#
# Who meets it: term bases from the years of TBX 2. A glossary made of the result asks for words that the terminologists ruled out.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tbxtools==0.1.0

"$folder/venv/bin/python" - <<'P'
from xml.etree import ElementTree

from tbxtools import TBX

NOTES = """<termNote type="partOfSpeech">noun</termNote><termNote type="administrativeStatus">{}Term-admn-sts</termNote>"""
NTIG = "<ntig><termGrp><term>{}</term>" + NOTES + "</termGrp></ntig>"
BASE = f"""<martif type="TBX-Basic" xml:lang="en">
<martifHeader><fileDesc><sourceDesc><p>Printers</p></sourceDesc></fileDesc></martifHeader><text><body><termEntry id="c1">
<langSet xml:lang="en">{NTIG.format("printer", "preferred")}{NTIG.format("printing machine", "deprecated")}</langSet>
<langSet xml:lang="de"><tig><term>Drucker</term><termNote type="partOfSpeech">noun</termNote>
<termNote type="grammaticalGender">masculine</termNote></tig></langSet></termEntry></body></text></martif>"""


def terms(text: str) -> str:
    shown = []
    for element in ElementTree.fromstring(text).iter():
        if element.tag.rpartition("}")[2] in ("tig", "ntig", "termSec"):
            (term,) = (part.text for part in element.iter() if part.tag.endswith("term"))
            notes = [part.text.removesuffix("-admn-sts") for part in element.iter() if part.tag.endswith("termNote")]
            shown.append(f"{term} ({', '.join(notes)})")
    return ", ".join(shown)


# The addresses of schemas are given as none, since they are asked for on the network otherwise.
before, after = terms(BASE), terms(TBX(BASE).convert2to3(schemas_js={}))
print(f"before: {before}\nafter: {after}")
assert before == "printer (noun, preferredTerm), printing machine (noun, deprecatedTerm), Drucker (noun, masculine)"
assert after == "printer (), printing machine (), Drucker (noun, masculine)"
P
echo "as described"
