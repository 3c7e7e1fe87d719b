"""Writes the named character references of HTML as rows of C++ for character_references.cc.

    python3 server/markup/named_references.py OUTPUT

The names are those of the HTML standard (13.5), which Python has in html.entities.
"""

import sys
from html.entities import html5
from pathlib import Path

rows = []
for name, text in sorted(html5.items()):
    if name.endswith(";"):
        bare = name[:-1]
        escapes = "".join(f"\\{byte:03o}" for byte in text.encode())
        rows.append(f'{{"{bare}", "{escapes}", {str(bare in html5).lower()}}},\n')
Path(sys.argv[1]).write_text("".join(rows))
