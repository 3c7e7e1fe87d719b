"""The image of linnet-http, in front of a server.

In containers, so slow, and skipped where there is no engine: see container_test.py.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator

import pytest
from containers import wait_until
from replicas import free_port

pytestmark = pytest.mark.slow

MAX_BYTES = 400_000_000  # Debian 75 to 220 MB, Python 40, the packages 40


# Without rights, on the network of this machine.
ALONE = ("--detach", "--network", "host", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp")
ALONE += ("--volume", "/var/lib/linnet")  # glossaries and documents


@pytest.fixture
def served(engine, http_image, server) -> Iterator[tuple[str, str]]:
    """The name and the address of linnet-http in a container, once the server serves."""
    name, port = f"linnet-http-{uuid.uuid4().hex[:8]}", free_port()
    flags = ("--listen", f"127.0.0.1:{port}", "--server", server.grpc, "--server-metrics", "")
    engine("run", *ALONE, "--name", name, http_image, *flags)
    address = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{address}/health"), "linnet-http", 300)
    yield name, address
    engine("rm", "--force", name)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            return reply.status == 200
    except OSError:
        return False


def post(url: str, body: dict, token: str = "") -> dict:
    headers = {"Content-Type": "application/json", "Authorization": token}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def test_container_translates_and_has_the_page(served):
    _, address = served
    body = {"q": "Where is the train station?", "source": "en", "target": "de"}
    assert post(f"{address}/translate", body)["translatedText"] == "Wo ist der Bahnhof?"
    with urllib.request.urlopen(f"{address}/", timeout=30) as page:
        assert b"<title>Linnet</title>" in page.read()


def test_container_keeps_glossaries(served):
    _, address = served
    body = {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "station\tHalt"}
    made = post(f"{address}/v2/glossaries", body, "DeepL-Auth-Key a")
    assert made["entry_count"] == 1


def test_container_stops_in_order(engine, served):
    name, _ = served
    engine("stop", "--time", "20", name)
    (state,) = json.loads(engine("inspect", name).stdout)
    assert state["State"]["ExitCode"] == 0


def test_image_is_small_and_has_no_libtorch(engine, http_image):
    (image,) = json.loads(engine("image", "inspect", http_image).stdout)
    assert image["Size"] < MAX_BYTES
    listed = ("run", "--rm", "--network", "none", "--entrypoint", "ls", http_image)
    assert engine(*listed, "/opt/linnet/bin").stdout.split() == ["linnet-http"]
