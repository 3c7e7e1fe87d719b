"""The program: its options, processes, sockets and metrics."""

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from every_face import JOB


def test_metrics_count_by_face_and_status(door):
    door.post("/translate", JOB)
    door.post("/v1/translate", {"contents": []})
    page = door.get("/metrics").body.decode()
    assert 'linnet_http_requests_total{face="libretranslate",status="200"}' in page
    assert 'linnet_http_requests_total{face="native",status="400"}' in page
    assert 'linnet_http_request_duration_seconds_bucket{face="libretranslate",le="+Inf"}' in page


def test_several_workers_share_port_and_metrics(open_door, server):
    door = open_door(server.grpc, "--workers", "2")
    for _ in range(8):
        assert door.post("/translate", JOB).status == 200
    door.wait_for_metric('linnet_http_requests_total{face="libretranslate",status="200"} 8.0')
    assert door.stop() == 0


def test_requests_of_a_worker_that_was_killed_are_no_longer_in_flight(fake, open_door):
    server = fake(lambda number: server.released.wait(60) and None)
    door = open_door(server.address)
    sent = json.dumps(JOB).encode()
    head = "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    with door.connect() as client:
        client.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        door.wait_for_metric("linnet_http_requests_in_flight 2.0")  # with that for the page
        os.kill(door.worker(), signal.SIGKILL)
        assert client.recv(1) == b""
    server.released.set()
    door.wait_for_metric("linnet_http_requests_in_flight 1.0")


def test_workers_end_with_the_process_that_started_them(open_door, server):
    door = open_door(server.grpc)
    worker = door.worker()
    door.process.kill()
    end = time.monotonic() + 60
    while Path(f"/proc/{worker}/cmdline").exists() and Path(f"/proc/{worker}/cmdline").read_bytes():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_unix_socket(open_door, server, tmp_path):
    path = tmp_path / "socket"
    door = open_door(server.grpc, "--listen", f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert door.stop() == 0


@pytest.fixture
def certificate(tmp_path) -> tuple[Path, Path]:
    """A certificate for linnet and 127.0.0.1, and its key."""
    made, key = tmp_path / "server.pem", tmp_path / "server.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=linnet"
    command += " -addext subjectAltName=DNS:linnet,IP:127.0.0.1"
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", made], check=True, capture_output=True
    )
    return made, key


def test_https(open_door, server, certificate):
    made, key = certificate
    door = open_door(server.grpc, "--tls-certificate", str(made), "--tls-key", str(key))
    assert door.url.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=made)
    with urllib.request.urlopen(f"{door.url}/health", context=context) as reply:
        assert reply.status == 200
    sender = urllib.request.Request(f"{door.url}/translate", b"q=a&source=en&target=de")
    with urllib.request.urlopen(sender, context=context) as reply:
        assert json.load(reply)["translatedText"]
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        urllib.request.urlopen(f"{door.url}/health")


def test_a_server_with_tls_and_a_certificate_of_another_name(open_door, start, certificate):
    made, key = certificate
    server = start("--tls-cert", made, "--tls-key", key)
    trusting = open_door(server.grpc, "--ca-file", made, "--tls-server-name", "linnet")
    assert trusting.get("/health").status == 200
    doubting = open_door(server.grpc, "--ca-file", made, "--tls-server-name", "other")
    assert doubting.get("/health").status == 503


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--tls-server-name", "linnet"], "needs --ca-file"),
        (["--workers", "0"], "--workers is 0, it must be 1 to 64"),
        (["--timeout", "-1"], "it must be above 0"),
        (["--listen", "nowhere"], "must be HOST:PORT"),
        (["--tls-certificate", "a"], "belong together"),
        (["--trusted-proxies", "nobody"], "invalid"),
        (["--none"], "unrecognized arguments"),
    ],
)
def test_wrong_options_end_with_status_2(run_door, flags, said):
    done = run_door(*flags)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_worker_that_cannot_start_ends_the_program(run_door, tmp_path):
    ended = run_door("--server", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--glossaries", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.endswith("error: a worker could not start; the log says why\n")
    assert "unable to open database file" in ended.stderr
    assert ended.stdout == ""
