"""Envoy's own transcoder with deploy/balancers/envoy-json.yaml, as docs/HTTP.md describes it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import ROOT, tools

pytestmark = pytest.mark.slow

REQUEST = {
    "contents": ["one two three. four."],
    "source_language_code": "en",
    "target_language_code": "de",
}


@pytest.fixture(scope="module")
def start_envoy(tmp_path_factory, door):
    """start_envoy(server address) → Envoy, with the methods of a Door."""
    envoy = tools(Path(__file__).with_name("http_tools.txt")) / "bin/envoy"
    running = []

    def start(address: str):
        folder = tmp_path_factory.mktemp("envoy")
        text = (ROOT / "deploy/balancers/envoy-json.yaml").read_text()
        (command,) = re.findall(
            r"^#   \.venv/bin/python (-m grpc_tools.*) \\\n#    (.*)$", text, re.MULTILINE
        )
        words = " ".join(command).replace("linnet.pb", f"{folder}/linnet.pb").split()
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = text.replace("port_value: 8081", f"port_value: {port}")
        text = text.replace("port_value: 50051", f"port_value: {address.rpartition(':')[2]}")
        text = text.replace("proto_descriptor: linnet.pb", f"proto_descriptor: {folder}/linnet.pb")
        (folder / "envoy.yaml").write_text(text)
        log = (folder / "log").open("w")
        command = [str(envoy), "-c", str(folder / "envoy.yaml"), "--disable-hot-restart"]
        process = subprocess.Popen([*command, "--concurrency", "1"], stdout=log, stderr=log)
        running.append(process)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return type(door)(process, f"http://127.0.0.1:{port}")
            except ConnectionRefusedError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.05)

    yield start
    for process in running:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def envoy(start_envoy, server):
    return start_envoy(server.grpc)


def path(method: str) -> str:
    return f"/linnet.v1.TextService/{method}"


def test_messages_are_those_of_linnet_http(envoy, door):
    said = envoy.post(path("Translate"), REQUEST)
    assert said.status == 200, said.body
    theirs, ours = said.json, door.post("/v1/translate", REQUEST).json
    for one in (theirs, ours):
        del one["timings"]
    assert theirs["translations"][0]["text"] == ours["translations"][0]["text"]
    assert set(theirs["translations"][0]) <= set(ours["translations"][0])


def test_an_error_has_its_status_and_its_reason(envoy):
    said = envoy.post(path("Translate"), {**REQUEST, "target_language_code": "xx"})
    assert said.status == 404
    details = {it["@type"].rpartition("/")[2]: it for it in said.json["details"]}
    assert details["google.rpc.ErrorInfo"]["reason"] == "MODEL_NOT_FOUND"


def test_a_request_that_is_too_large_is_413(envoy):
    said = envoy.post(path("Translate"), {**REQUEST, "contents": ["a" * 5_000_000]})
    assert said.status == 413


def test_a_stream_is_events_without_names(envoy):
    said = envoy.post(path("StreamTranslate"), {"request": REQUEST})
    assert said.headers["Content-Type"] == "text/event-stream"
    events = [
        json.loads(it.removeprefix("data: ")) for it in said.body.decode().split("\n\n") if it
    ]
    assert "response" in events[-1]
    assert all("part" in it for it in events[:-1])


def test_a_stream_that_fails_looks_whole(start_envoy, fake):
    """What docs/HTTP.md warns of: only the missing response tells."""
    server = fake()
    server.parts = 1
    server.released.set()
    envoy = start_envoy(server.address)
    said = envoy.post(path("StreamTranslate"), {"request": REQUEST})
    assert b'"response"' in said.body
    server.cut = True
    said = envoy.post(path("StreamTranslate"), {"request": REQUEST})
    assert said.status == 200
    assert b"part" in said.body
    assert b"response" not in said.body
    assert b"as told" not in said.body


def test_unknown_methods_and_fields_of_the_url_are_refused(envoy):
    """Envoy would pass them on as they are, and the answer be 503, which clients repeat."""
    assert envoy.post(path("None"), {}).status == 404
    assert envoy.post(path("Translate") + "?a=b", REQUEST).status == 400
