#!/usr/bin/env bash
# docx2python 3.7.1 (PyPI) leaves out the no-break hyphens of Word, and returns text that was moved at its old place too.
#
# Guess before the run: inserted text is there and deleted text is not. No guess was written down on no-break hyphens and moved text.
# What one expects is a hyphen or U+2011, and the text at its new place only.
# Seen (docx2python 3.7.1, lxml 6.1.3, Python 3.11), paragraphs as Word shows them and as docx2python returns them:
#
#   'Take 10‑20 drops.'     'Take 1020 drops.'
#   'The years 1990‑95'     'The years 199095'
#   'He never came.'        'He never came.'
#   ''                      'Second, we ate.'
#   'First, we slept.'      'First, we slept.'
#   'Second, we ate.'       'Second, we ate.'
#
# The third paragraph has an insertion and a deletion, the fourth was moved behind the fifth.
#
# Who meets it: corpora and translations made from the text of documents under review, and doses, years and pages, for which typists use
# this hyphen so that no line breaks there.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check docx2python==3.7.1 lxml==6.1.3
cd "$folder"

cat >check.py <<'P'
import zipfile

from docx2python import docx2python

SCHEMAS = "http://schemas.openxmlformats.org"
WORD, PACKAGE = f"{SCHEMAS}/wordprocessingml/2006/main", f"{SCHEMAS}/package/2006"
HYPHEN = "</w:t></w:r><w:r><w:noBreakHyphen/></w:r><w:r><w:t>"
paragraphs = (
    ("Take 10‑20 drops.", f"<w:r><w:t>Take 10{HYPHEN}20 drops.</w:t></w:r>", "Take 1020 drops."),
    ("The years 1990‑95", f"<w:r><w:t>The years 1990{HYPHEN}95</w:t></w:r>", "The years 199095"),
    (
        "He never came.",
        '<w:r><w:t xml:space="preserve">He </w:t></w:r><w:ins w:id="1" w:author="A"><w:r><w:t>never</w:t></w:r></w:ins>'
        '<w:del w:id="2" w:author="A"><w:r><w:delText>always</w:delText></w:r></w:del><w:r><w:t xml:space="preserve"> came.</w:t></w:r>',
        "He never came.",
    ),
    ("", '<w:moveFrom w:id="3" w:author="A"><w:r><w:t>Second, we ate.</w:t></w:r></w:moveFrom>', "Second, we ate."),
    ("First, we slept.", "<w:r><w:t>First, we slept.</w:t></w:r>", "First, we slept."),
    ("Second, we ate.", '<w:moveTo w:id="4" w:author="A"><w:r><w:t>Second, we ate.</w:t></w:r></w:moveTo>', "Second, we ate."),
)
body = "".join(f"<w:p>{content}</w:p>" for _, content, _ in paragraphs)
types = f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
types += '<Override PartName="/d.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
relation = f'<Relationship Id="r" Type="{SCHEMAS}/officeDocument/2006/relationships/officeDocument" Target="d.xml"/>'
with zipfile.ZipFile("a.docx", "w") as archive:
    archive.writestr("[Content_Types].xml", types)
    archive.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{relation}</Relationships>')
    archive.writestr("_rels/d.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships"/>')
    archive.writestr("d.xml", f'<w:document xmlns:w="{WORD}" xmlns:r="{SCHEMAS}/officeDocument/2006/relationships"><w:body>{body}</w:body></w:document>')
with docx2python("a.docx") as document:
    seen = document.text.split("\n\n")
for (shown, _, expected), text in zip(paragraphs, seen, strict=True):
    print(f"{shown!r:24}{text!r}")
    assert text == expected
P
venv/bin/python check.py
echo "as described"
