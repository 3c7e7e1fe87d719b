"""Varnish in front of linnet-http: what it keeps, and that it never gives a wrong answer."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest
from programs import skip

pytestmark = pytest.mark.slow

TEXTS = [f"one two three {number}" for number in range(40)]
ROUNDS = 5


class Varnish:
    def __init__(self, door, folder: Path):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url, self.folder = f"http://127.0.0.1:{port}", folder
        # Its defaults: the page of linnet-http asks for no rules.
        self.process = subprocess.Popen(
            [
                *("varnishd", "-F", "-j", "none", "-n", str(folder), "-s", "malloc,64m"),
                *("-a", f"127.0.0.1:{port}", "-b", door.url.removeprefix("http://")),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)

    def counter(self, name: str) -> int:
        command = ["varnishstat", "-1", "-n", str(self.folder), "-f", f"MAIN.{name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout.split()[1])


@pytest.fixture
def cached(reloadable, open_door, tmp_path):
    """A linnet-http behind Varnish, as the door to it, with the cache and the reload."""
    if not shutil.which("varnishd"):
        skip("there is no varnishd: apt-get install varnish")
    server, reload = reloadable
    door = open_door(server.grpc, "--server-metrics", server.metrics)
    varnish = Varnish(door, tmp_path / "varnish")
    yield type(door)(varnish.process, varnish.url), varnish, reload, server
    varnish.process.terminate()
    varnish.process.wait(60)


def current(text: str) -> str:
    query = urllib.parse.urlencode({"q": text, "source": "en", "target": "de"})
    return f"/v1/translate?{query}"


def test_immutable_answers_are_kept_and_right_after_a_reload(cached):
    door, varnish, reload, server = cached
    old = {text: door.get(current(text)) for text in TEXTS}
    places = {text: said.headers["Content-Location"] for text, said in old.items()}
    hits, misses = varnish.counter("cache_hit"), varnish.counter("cache_miss")
    before = server.metric('linnet_requests_total{code="OK",method="Translate"}')
    for _ in range(ROUNDS):
        for text, place in places.items():
            assert door.get(place).body == old[text].body
    hits = varnish.counter("cache_hit") - hits
    misses = varnish.counter("cache_miss") - misses
    assert (hits, misses) == (len(TEXTS) * (ROUNDS - 1), len(TEXTS))
    after = server.metric('linnet_requests_total{code="OK",method="Translate"}')
    assert after - before == len(TEXTS), "the server translated each text once more"
    assert door.get(places[TEXTS[0]], If_None_Match=old[TEXTS[0]].headers["ETag"]).status == 304
    reload()
    for text in TEXTS:
        new = door.get(current(text))
        direct = server.translate(text, model="en-de").translations[0].text
        assert new.json["text"] == direct != old[text].json["text"]
        place = new.headers["Content-Location"]
        assert place != places[text]
        assert [door.get(place).json["text"] for _ in range(2)] == [direct] * 2
        # The old name still has the old answer, which nobody is told any more.
        assert door.get(places[text]).body == old[text].body
    unknown = places[TEXTS[0]].replace("+0&", "+new&")
    assert [door.get(unknown).status for _ in range(2)] == [404, 404]


def test_nothing_else_is_kept(cached):
    """The lists of languages differ by the body of a GET, which Varnish drops."""
    door, varnish, _, _ = cached
    paths = ["/languages", "/v2/languages", "/v1/models", "/health", "/metrics", "/none", "/spec"]
    paths += ["/frontend/settings", "/openapi.json", "/v2/usage", "/v1/answers/0/translate?q=a"]
    paths += ["/language/translate/v2?q=a&source=en&target=de", current("a"), "/", "/page/app.js"]
    for path in paths:
        first, second = door.get(path), door.get(path)
        assert first.status == second.status
        for said in (first, second):
            assert re.fullmatch(r"\d+", said.headers["X-Varnish"]), f"{path} is from the cache"
    assert varnish.counter("cache_hit") == 0
    body = {"contents": ["one. two."], "source_language_code": "en", "target_language_code": "de"}
    for _ in range(2):
        said = door.post("/v1/translate/stream", body)
        assert b"event: response" in said.body
    token = {"Authorization": "Bearer abc"}
    assert door.get(current("a"), **token).headers["Cache-Control"] == "no-store"
