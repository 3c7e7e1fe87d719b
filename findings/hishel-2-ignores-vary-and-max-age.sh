#!/usr/bin/env bash
# hishel 2.0.0 (PyPI) answers every request for a URL with the first answer that it had, in whatever language. hishel 1.4.0 followed the
# headers of HTTP with the same program: session.mount("http://", CacheAdapter()).
#
# Guess before the run: the cache keeps an answer for each value of the header that Vary names, and asks again after max-age.
# Seen (hishel 1.4.0 and 2.0.0, requests 2.34.2, Python 3.11), answers to Accept-Language de, fr, de, and requests that reached the server:
#
#   1.4.0: de fr de (2) with Vary: Accept-Language
#   1.4.0: de fr de (3) with Cache-Control: max-age=0
#   1.4.0: de fr de (3) with Cache-Control: no-store
#   2.0.0: de de de (1) with Vary: Accept-Language
#   2.0.0: de de de (1) with Cache-Control: max-age=0
#   2.0.0: de de de (1) with Cache-Control: no-store
#
# The documentation of 2.0.0 says so: headers are ignored by default, and CacheAdapter(rfc=True) brings the old answers back.
#
# Who meets it: clients of services that choose the language by Accept-Language, after an upgrade that raises no error.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >check.py <<'P'
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from hishel.requests import CacheAdapter

old = sys.argv[1] == "1.4.0"
HEADERS = ["Vary: Accept-Language", "Cache-Control: max-age=0", "Cache-Control: no-store"]
asked = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        header = HEADERS[int(self.path[1:])]
        self.send_header(*header.split(": "))
        if "Vary" in header:
            self.send_header("Cache-Control", "max-age=60")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(self.headers["Accept-Language"].encode())

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for options in [{}] if old else [{}, {"rfc": True}]:
    session = requests.Session()
    session.mount("http://", CacheAdapter(**options))
    for index, header in enumerate(HEADERS):
        url = f"http://127.0.0.1:{server.server_port}/{index}"
        answers = " ".join(session.get(url, headers={"Accept-Language": it}).text for it in ("de", "fr", "de"))
        seen = f"{answers} ({asked.count(f'/{index}')})"
        if not options:
            print(f"{sys.argv[1]}: {seen} with {header}")
        assert seen == (("de fr de (3)" if index else "de fr de (2)") if old or options else "de de de (1)")
    asked.clear()
P
for version in 1.4.0 2.0.0; do
  python3 -m venv $version
  $version/bin/pip install --quiet --disable-pip-version-check "hishel[requests]==$version" requests==2.34.2
  $version/bin/python check.py $version
done
echo "as described"
