#!/usr/bin/env bash
# moz.l10n 0.15.0 (PyPI) makes blanks of the no-break spaces in Android's strings.xml, and removes those at an end.
#
# Guess before the run: white space is what XML calls so, which U+00A0 and other spaces outside ASCII are not, so that
# parsing and serializing a file keeps them.
# Seen (moz.l10n 0.15.0, lxml 6.1.3, Python 3.11), with U+00A0 shown as "_" and U+202F as "~":
#
#   'Prix_: 10_000~€' -> 'Prix : 10 000 €'
#   '«~Oui~»' -> '« Oui »'
#   'Nom_:_' -> 'Nom :'
#   'Seite&#160;5' -> 'Seite 5'
#   'Seite\u00a05' -> 'Seite_5'
#   '"Seite_5"' -> 'Seite_5'
#
# Only an escape or quotation marks keep the character, and files written by hand or by translators seldom have these. Values
# of .properties files keep it.
#
# Who meets it: French, Swedish and German apps: lines break before "!" and inside numbers. A label that ends in the space that keeps it
# from the value loses it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check moz.l10n==0.15.0 lxml==6.1.3

"$folder/venv/bin/python" - <<'P'
import xml.etree.ElementTree as ElementTree

from moz.l10n.resource import parse_resource, serialize_resource

NO_BREAK, NARROW = "\u00a0", "\u202f"


def show(text):
    return repr(text.replace(NO_BREAK, "_").replace(NARROW, "~")).replace("\\\\", "\\")


for text, expected in (
    (f"Prix{NO_BREAK}: 10{NO_BREAK}000{NARROW}€", "Prix : 10 000 €"),
    (f"«{NARROW}Oui{NARROW}»", "« Oui »"),
    (f"Nom{NO_BREAK}:{NO_BREAK}", "Nom :"),
    ("Seite&#160;5", "Seite 5"),
    ("Seite\\u00a05", f"Seite{NO_BREAK}5"),
    (f'"Seite{NO_BREAK}5"', f"Seite{NO_BREAK}5"),
):
    source = f'<?xml version="1.0" encoding="utf-8"?>\n<resources><string name="a">{text}</string></resources>'
    output = "".join(serialize_resource(parse_resource("strings.xml", source)))
    seen = ElementTree.fromstring(output.encode()).findtext("string").replace("\\u00a0", NO_BREAK)
    print(f"{show(text)} -> {show(seen)}")
    assert seen == expected
properties = "".join(serialize_resource(parse_resource("a.properties", f"a = 10{NO_BREAK}000\n")))
assert NO_BREAK in properties or "\\u00a0" in properties.lower()
P
echo "as described"
