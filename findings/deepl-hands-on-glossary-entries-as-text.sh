#!/usr/bin/env bash
# deepl 1.32.0 (PyPI) returns the entries of a v3 glossary as the text that the API sent, although their type is Dict[str, str].
#
# Guess before the run: get_multilingual_glossary_entries(...).dictionaries[0].entries is a dictionary, as its type says, and as
# the entries of a v2 glossary are.
# Seen (deepl 1.32.0, Python 3.11), from a server that answers in the form of DeepL's reference, with "entries" as text:
#
#   v2: {'Hello': 'Guten Tag', 'tree': 'Baum'}
#   v3: 'Hello\tGuten Tag\ntree\tBaum'
#   given back with another name: AttributeError: 'str' object has no attribute 'items'
#
# Who meets it: programs that copy or extend a glossary: read the entries, add one, write them back.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check deepl==1.32.0

env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY "$folder/venv/bin/python" - <<'P'
import inspect
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Dict

import deepl
from deepl.api_data import MultilingualGlossaryDictionaryEntries

ENTRIES = "Hello\tGuten Tag\ntree\tBaum"
DICTIONARY = {"source_lang": "en", "target_lang": "de", "entries": ENTRIES, "entries_format": "tsv"}


class Api(BaseHTTPRequestHandler):
    def do_GET(self):
        is_v2 = self.path.startswith("/v2/")
        body = ENTRIES if is_v2 else json.dumps({"dictionaries": [DICTIONARY]})
        self.send_response(200)
        self.send_header("Content-Type", "text/tab-separated-values" if is_v2 else "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Api)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = deepl.DeepLClient("key", server_url=f"http://127.0.0.1:{server.server_port}")

before = client.get_glossary_entries("11111111-2222-3333-4444-555555555555")
print(f"v2: {before}")
assert before == {"Hello": "Guten Tag", "tree": "Baum"}

(found,) = client.get_multilingual_glossary_entries("11111111-2222-3333-4444-555555555555", "en", "de").dictionaries
declared = inspect.signature(MultilingualGlossaryDictionaryEntries.entries.fget).return_annotation
assert declared == Dict[str, str]
print(f"v3: {found.entries!r}")
assert found.entries == ENTRIES

try:
    client.create_multilingual_glossary("copy", [found])
except AttributeError as error:
    print(f"given back with another name: AttributeError: {error}")
else:
    raise SystemExit("the entries were accepted")
P
echo "as described"
