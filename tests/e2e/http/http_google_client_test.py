"""Google's own client of version 2 of its API, unchanged, with another endpoint.

Slow: the client is in an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from programs import tools

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2
client = translate_v2.Client(
    credentials=AnonymousCredentials(), client_options={"api_endpoint": sys.argv[1]}
)
texts = ["one two three", "four"]
print(json.dumps({
    "list": client.translate(texts, target_language="de", source_language="en", format_="text"),
    "one": client.translate("one two three", target_language="de", source_language="en"),
    "languages": client.get_languages(),
    "detected": client.detect_language("Guten Tag, wie geht es Ihnen heute?"),
}))
try:
    client.translate("a", target_language="xx", source_language="en")
except Exception as error:
    print(json.dumps({"code": error.code, "message": error.message}))
"""


def test_googles_client_of_version_2(door, server):
    python = tools(Path(__file__).with_name("http_tools.txt")) / "bin/python"
    command = [str(python), "-c", PROGRAM, door.url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, failed = map(json.loads, done.stdout.splitlines())
    expected = [server.translate(it).translations[0].text for it in ("one two three", "four")]
    assert [it["translatedText"] for it in said["list"]] == expected
    assert said["one"]["input"] == "one two three"
    assert {"language": "de", "name": "German"} in said["languages"]
    assert said["detected"]["language"] == "de"
    assert failed["code"] == 404
    assert "xx" in failed["message"]
