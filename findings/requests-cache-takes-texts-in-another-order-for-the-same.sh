#!/usr/bin/env bash
# requests-cache 1.3.3 (PyPI) takes texts in another order for the same request, if they are repeated parameters of a URL or a form, or a
# list of JSON. Each text gets the translation of another one.
#
# Guess before the run: two requests with different bodies have different answers in the cache.
# Seen (requests-cache 1.3.3, requests 2.34.2, Python 3.11), for "yes", "no" and then "no", "yes", of a server that answers with both texts
# in capitals:
#
#   GET ?q=yes&q=no: YES NO, then YES NO from the cache
#   POST, form text=yes&text=no: YES NO, then YES NO from the cache
#   POST, JSON ["yes", "no"]: YES NO, then YES NO from the cache
#   POST, JSON {"text": ["yes", "no"]}: YES NO, then NO YES from the server
#
# Parameters are sorted for the key, and so is a list at the root of a JSON body. A list within an object keeps its order.
#
# Who meets it: clients of translation services that take several texts as repeated parameters and answer in their order. It is enough that
# a program collects the texts in a set.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check requests-cache==1.3.3 requests==2.34.2

"$folder/venv/bin/python" - <<'P'
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests_cache


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(" ".join(re.findall("yes|no", self.path + body)).upper().encode())

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for name, method, option, key in (
    ("GET ?q=yes&q=no", "GET", "params", "q"),
    ("POST, form text=yes&text=no", "POST", "data", "text"),
    ('POST, JSON ["yes", "no"]', "POST", "json", None),
    ('POST, JSON {"text": ["yes", "no"]}', "POST", "json", "text"),
):
    session = requests_cache.CachedSession(backend="memory", allowable_methods=["GET", "POST"])
    first, second = (
        session.request(method, f"http://127.0.0.1:{server.server_port}/", **{option: {key: texts} if key else texts})
        for texts in (["yes", "no"], ["no", "yes"])
    )
    print(f"{name}: {first.text}, then {second.text} from the {'cache' if second.from_cache else 'server'}")
    assert (first.text, first.from_cache) == ("YES NO", False)
    assert (second.text, second.from_cache) == (("NO YES", False) if "{" in name else ("YES NO", True))
P
echo "as described"
