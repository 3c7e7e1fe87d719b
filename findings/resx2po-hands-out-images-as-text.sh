#!/usr/bin/env bash
# resx2po of translate-toolkit 3.20.4 (PyPI) takes the images and file references of a .resx file for text to translate. po2resx writes what
# comes back into them.
#
# Guess before the run: the texts of a file come back as they are. None was written down on images. What one expects is that they are left
# alone, since their entries name a type and texts have none.
# Seen (translate-toolkit 3.20.4, lxml 6.1.3, Python 3.11), the texts in the PO file:
#
#   Title: Hello
#   Icon: iVBORw0KGgo=
#   Manual: manual.html;System.String
#
# and the image after "UEBERSETZT" was given as its translation:
#
#   UEBERSETZT
#
# Who meets it: machine translation of .NET programs with forms, whose images are in the same file as the texts. Each image is sent to the
# translator as one long word, and is broken unless the answer is the same.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check translate-toolkit==3.20.4 lxml==6.1.3
cd "$folder"

cat >in.resx <<'X'
<?xml version="1.0" encoding="utf-8"?>
<root><resheader name="resmimetype"><value>text/microsoft-resx</value></resheader>
<data name="Title" xml:space="preserve"><value>Hello</value></data>
<data name="Icon" type="System.Drawing.Bitmap, System.Drawing" mimetype="application/x-microsoft.net.object.bytearray.base64">
<value>iVBORw0KGgo=</value></data>
<data name="Manual" type="System.Resources.ResXFileRef, System.Windows.Forms"><value>manual.html;System.String</value></data></root>
X
venv/bin/resx2po --progress=none in.resx texts.po
venv/bin/python - <<'P'
import subprocess
import xml.etree.ElementTree as ElementTree

from translate.storage import factory

store = factory.getobject("texts.po")
seen = {unit.getlocations()[0]: unit for unit in store.units if unit.source}
for name, unit in seen.items():
    print(f"{name}: {unit.source}")
assert list(seen) == ["Title", "Icon", "Manual"]
seen["Icon"].target = "UEBERSETZT"
store.save()
subprocess.run(["venv/bin/po2resx", "--progress=none", "-t", "in.resx", "texts.po", "out.resx"], check=True)
image = ElementTree.parse("out.resx").find("data[@name='Icon']/value").text
print(image)
assert image == "UEBERSETZT"
P
echo "as described"
