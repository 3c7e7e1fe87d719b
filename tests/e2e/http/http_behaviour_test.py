"""What holds for every face: statuses, tokens, limits, origins, and the end."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import deepl
import grpc
import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

ROOT = Path(__file__).resolve().parents[3]
JOB = {"q": "a", "source": "en", "target": "de"}
# One request of each face, and where its error has the message.
FACES = {
    "libretranslate": ("/translate", JOB, lambda said: said["error"]),
    "deepl": ("/v2/translate", {"text": ["a"], "target_lang": "DE"}, lambda said: said["message"]),
    "deeplx": ("/translate", {"text": "a", "target_lang": "DE"}, lambda said: said["message"]),
    "google": (
        "/language/translate/v2",
        {"q": "a", "target": "de"},
        lambda said: said["error"]["message"],
    ),
    "native": (
        "/v1/translate",
        {"contents": ["a"], "target_language_code": "de"},
        lambda said: said["error"]["message"],
    ),
}


def error(code: grpc.StatusCode, reason: str, retry: float | None = None):
    """An error as linnet-server sends it, for FakeServer; as gRPC itself does without a reason."""
    if not reason:
        return code, ()
    status = status_pb2.Status(code=code.value[0], message=f"as told: {reason}")
    status.details.add().Pack(error_details_pb2.ErrorInfo(domain="linnet", reason=reason))
    if retry is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(1000 * retry))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return code, (("grpc-status-details-bin", status.SerializeToString()),)


CASES = {
    "busy": (error(grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED", 2.2), 429),
    "late": (error(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_TOO_CLOSE"), 504),
    "long": (error(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT"), 504),
    "down": (error(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", 1), 503),
    "broken": (error(grpc.StatusCode.INTERNAL, "INTERNAL"), 500),
    "large": (error(grpc.StatusCode.INVALID_ARGUMENT, "CALL_TOO_LARGE"), 413),
    "wrong": (error(grpc.StatusCode.INVALID_ARGUMENT, "BAD_OPTION"), 400),
    "old": (error(grpc.StatusCode.UNIMPLEMENTED, "UNKNOWN_FIELD"), 400),
    "message": (error(grpc.StatusCode.RESOURCE_EXHAUSTED, ""), 413),
    "token": (error(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"), 401),
    "pair": (error(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND"), 404),
}
# Messages of linnet-http in place of those of gRPC and the server.
OTHERS = {
    "message": "the request or its answer is too large",
    "late": "the server is busy and cannot answer within the 30 s of this front end: try again "
    "later, send less text at once, or have its operator raise --timeout",
    "long": "the server cannot answer within the 30 s of this front end: send less text at once, "
    "or have its operator raise --timeout",
}
# What the clients of a face expect instead.
INSTEAD = {
    "libretranslate": {401: 403, 404: 400},
    "deepl": {401: 403, 404: 400},
    "deeplx": {401: 403},
}


def test_every_face_has_the_status_and_the_form_of_its_errors(fake, open_door):
    told = []
    server = fake(lambda number: told[-1])
    door = open_door(server.address)
    for reason, (failure, status) in CASES.items():
        told.append(failure)
        for face, (path, body, message) in FACES.items():
            said = door.post(path, body)
            assert said.status == INSTEAD.get(face, {}).get(status, status), (face, reason)
            assert message(said.json).startswith(OTHERS.get(reason, "as told")), (face, reason)
            assert said.headers.get("Retry-After") == {"busy": "3", "down": "1"}.get(reason)
            assert said.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("reason", "raised"),
    [
        ("wrong", deepl.DeepLException),
        ("old", deepl.DeepLException),
        ("large", deepl.DeepLException),
        ("message", deepl.DeepLException),
        ("token", deepl.AuthorizationException),
        ("pair", deepl.DeepLException),
    ],
)
def test_deepls_client_sends_nothing_again_that_will_fail_again(fake, open_door, reason, raised):
    """It repeats 429 and every status from 500 up, five times."""
    server = fake(lambda number: CASES[reason][0])
    translator = deepl.DeepLClient("key", server_url=open_door(server.address).url)
    with pytest.raises(raised):
        translator.translate_text("a", target_lang="DE")
    assert len(server.calls) == 1


def test_no_server(open_door):
    """The address of the server is not told to strangers."""
    door = open_door("127.0.0.1:1")
    said = door.post("/translate", JOB)
    assert said.status == 503
    assert said.json["error"] == "the translation server cannot be reached: try again later"
    assert door.get("/health").status == 503


@pytest.mark.parametrize(
    ("headers", "body", "token"),
    [
        ({"Authorization": "Bearer abc"}, JOB, "Bearer abc"),
        ({"Authorization": "DeepL-Auth-Key abc"}, JOB, "Bearer abc"),
        ({"Authorization": "abc"}, JOB, "Bearer abc"),
        ({}, {**JOB, "api_key": "abc"}, "Bearer abc"),
        ({}, {**JOB, "api_key": ""}, ""),
        ({}, JOB, ""),
    ],
)
def test_the_token_is_passed_on(fake, open_door, headers, body, token):
    server = fake(lambda number: CASES["busy"][0])
    open_door(server.address).post("/translate", body, **headers)
    assert server.tokens == [token]


def test_tokens_in_urls_are_ignored_unless_allowed(fake, open_door):
    server = fake(lambda number: CASES["busy"][0])
    open_door(server.address).post("/translate?key=abc", JOB)
    door = open_door(server.address, "--url-tokens")
    door.post("/translate?key=abc", JOB)
    assert server.tokens == ["", "Bearer abc"]
    assert "abc" not in door.log.read_text()


def test_the_last_entry_of_a_trusted_proxy_names_the_client(fake, open_door):
    server = fake(lambda number: CASES["busy"][0])
    forwarded = {"X_Forwarded_For": "6.6.6.6, 203.0.113.9"}
    open_door(server.address).post("/translate", JOB, **forwarded)
    door = open_door(server.address, "--trusted-proxies", "127.0.0.0/8")
    door.post("/translate", JOB, **forwarded)
    assert server.forwarded == ["127.0.0.1", "203.0.113.9"]


def test_a_client_that_hangs_up_cancels_its_call(door, server):
    body = {
        "contents": ["one two three"] * 64,
        "source_language_code": "en",
        "target_language_code": "de",
        "options": {"min_target_tokens": 1000, "max_target_tokens": 1024},
    }
    sent = json.dumps(body).encode()
    with door.connect() as client:
        head = "POST /v1/translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        server.wait_for_calls(1)
    name = 'linnet_requests_total{code="CANCELLED",method="Translate"}'
    server.wait_for(name, lambda count: count >= 1)


STREAM = {"contents": ["a"], "target_language_code": "de"}


def opened_stream(door) -> socket.socket:
    """A client that has got the first event of a stream."""
    sent = json.dumps(STREAM).encode()
    head = "POST /v1/translate/stream HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    client = door.connect()
    client.sendall(head.encode() + sent)
    found = b""
    while b"event: part" not in found:
        part = client.recv(1 << 16)
        assert part, found
        found += part
    return client


def test_a_stream_that_fails_says_so_in_its_last_event(fake, open_door):
    """EventSource would repeat the request after a stream without one."""
    server = fake()
    server.parts, server.cut = 1, True
    server.released.set()
    said = open_door(server.address).post("/v1/translate/stream", STREAM)
    assert said.status == 200
    *_, last = said.body.decode().strip().split("\n\n")
    assert last.startswith("event: error\n")
    assert json.loads(last.partition("data: ")[2])["message"] == "as told"


def test_events_of_a_stream_are_sent_one_by_one(fake, open_door):
    """Also to a client that would take them compressed, where they would wait for each other."""
    server = fake()
    server.parts = 2
    with opened_stream(open_door(server.address)) as client:
        server.released.set()
        found = b""
        while b"event: response" not in found:
            part = client.recv(1 << 16)
            assert part
            found += part


def test_a_stream_whose_client_hangs_up_ends_without_a_trace(fake, open_door):
    server = fake()
    server.parts = 1000
    door = open_door(server.address)
    opened_stream(door).close()
    server.released.set()
    assert server.ended.wait(60)
    assert door.stop() == 0
    assert "Traceback" not in door.log.read_text()


def test_a_stop_ends_open_streams(fake, open_door):
    server = fake()
    server.parts = 1000
    door = open_door(server.address)
    with opened_stream(door) as client:
        assert door.stop() == 0
        found = b""
        while part := client.recv(1 << 16):
            found += part
    assert b"event: error" in found
    assert server.ended.wait(60)


def test_all_requests_end_when_the_server_is_killed(open_door, start):
    """Each of 200 gets an answer or an error of its face."""
    server = start()
    door = open_door(server.grpc)
    replies, guard = [], threading.Lock()
    slow = {"options": {"min_target_tokens": 200, "max_target_tokens": 256}}

    def ask(number: int) -> None:
        face = list(FACES)[number % len(FACES)]
        path, body, message = FACES[face]
        body = {**body, **(slow if face == "native" else {})}
        for name in ("q", "text", "contents"):
            if name in body:
                text = "one two three " * 20 + str(number)
                body[name] = [text] if isinstance(body[name], list) else text
        said = door.post(path, body)
        with guard:
            replies.append((said.status, message, said.json))

    callers = [threading.Thread(target=ask, args=(number,)) for number in range(200)]
    for caller in callers:
        caller.start()
    server.wait_for_calls(1)
    server.stop(signal.SIGKILL)
    for caller in callers:
        caller.join(120)
    assert len(replies) == 200
    failed = [(message, body) for status, message, body in replies if status != 200]
    assert {status for status, _, _ in replies} <= {200, 429, 500, 503, 504}
    assert failed
    for message, body in failed:
        assert message(body)
    assert door.get("/health").status == 503


def test_deepls_repeated_request_joins_the_one_that_runs(fake, open_door, linnet):
    """deepl 1.32.0 leaves after 10 s and sends the same request again at once."""
    go = threading.Event()
    server = fake(lambda number: go.wait(60) and None)
    door = open_door(server.address)
    path, body, _ = FACES["deepl"]
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    with door.connect() as client:
        client.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        end = time.monotonic() + 60
        while not server.calls:
            assert time.monotonic() < end
            time.sleep(0.01)
    again = threading.Thread(target=lambda: door.post(path, body))
    again.start()
    wait_for_metric(door, "linnet_http_requests_in_flight 2.0")  # with the request for the page
    go.set()
    again.join()
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json; charset=latin-1", b"{}", 415),
        ("application/json", b"[]", 400),
        ("application/x-www-form-urlencoded", b"q=%ff&source=en&target=de", 400),
        ("application/x-www-form-urlencoded", b"q=a&q=b&source=en&target=de", 200),
        ("application/x-www-form-urlencoded", b' {"q": "a"}', 415),  # curl -d
        ("application/json", b'{"q": 1, "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "\\ud800", "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "", "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "a", "source": "en", "target": null}', 400),
    ],
)
def test_wrong_bodies(door, kind, body, status):
    said = door.send("POST", "/translate", body, Content_Type=kind)
    assert said.status == status, said.body
    assert status == 200 or said.json["error"]


@pytest.mark.parametrize("face", FACES)
def test_unknown_paths_and_methods_have_the_form_of_their_face(door, face):
    path, _, message = FACES[face]
    said = door.get(path.removesuffix("translate") + "none")
    assert said.status == 404
    assert message(said.json).startswith("there is no such path")
    said = door.send("DELETE", path)
    assert said.status == 405
    assert message(said.json).startswith("DELETE is not allowed here: use ")


def test_deepl_repeats_nothing_for_the_shares_of_the_server(fake, open_door):
    """The server's limits are on load, so a retry helps: 429, and not 456, which ends a program."""
    table = (ROOT / "docs/ERRORS.md").read_text()
    reasons = re.findall(r"^\| (\w+) \| RESOURCE_EXHAUSTED \| RetryInfo", table, re.MULTILINE)
    assert "SHARE_USED" in reasons
    told = iter(reasons)
    server = fake(lambda number: error(grpc.StatusCode.RESOURCE_EXHAUSTED, next(told), 1))
    door = open_door(server.address)
    path, body, message = FACES["deepl"]
    for reason in reasons:
        said = door.post(path, body)
        assert (said.status, said.headers["Retry-After"]) == (429, "1"), reason
        assert message(said.json) == "as told"


def test_messages_name_the_fields_of_the_face(door):
    text = "Bonjour tout le monde, comment allez-vous ?"
    for path, body, field in (
        ("/translate", {"q": text, "source": "auto", "target": "de"}, "source"),
        ("/translate", {"text": text, "to": "de"}, "the source language"),
        ("/language/translate/v2", {"q": text, "target": "de"}, "source"),
        ("/v2/translate", {"text": text, "target_lang": "DE"}, "source_lang"),
        (
            "/v1/translate",
            {"contents": [text], "target_language_code": "de"},
            "source_language_code",
        ),
    ):
        reply = door.post(path, body)
        said = f'"{field} is not set and the text seems to be in'
        assert said in reply.body.decode(), reply.body


def test_texts_in_messages_have_the_numbers_of_the_request(linnet):
    """Of a list, the server gets only those that are to be translated."""
    from linnet_http.problem import Problem

    problem = Problem(400, "contents[0] and contents[2] differ", field="contents[1]")
    problem.renumber([3, 5, 9])
    assert (problem.message, problem.field) == ("contents[3] and contents[9] differ", "contents[5]")


def preflight(door, origin: str) -> dict:
    asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "a, b"}
    said = door.send("OPTIONS", "/translate", Origin=origin, **asked)
    assert said.status == 204
    return said.headers


def test_other_origins_may_call_by_default(door):
    headers = preflight(door, "https://a.example")
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Access-Control-Allow-Headers"] == "a, b"
    assert headers["Access-Control-Max-Age"] == "3600", "browsers keep one without for 5 s only"
    said = door.post("/translate", JOB, Origin="https://a.example")
    exposed = said.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"ETag", "Retry-After", "Content-Location"} <= set(exposed)
    # A cache may give the answer to a program to a page as well.
    assert door.post("/translate", JOB).headers["Access-Control-Allow-Origin"] == "*"


def test_origins_can_be_named_or_closed(open_door, server):
    door = open_door(server.grpc, "--cors-origins", "https://a.example")
    assert (
        preflight(door, "https://a.example")["Access-Control-Allow-Origin"] == "https://a.example"
    )
    assert "Access-Control-Allow-Origin" not in preflight(door, "https://b.example")
    assert door.get("/languages").headers["Vary"] == "Origin"
    closed = open_door(server.grpc, "--cors-origins", "")
    assert "Access-Control-Allow-Origin" not in preflight(closed, "https://a.example")


def test_pages_come_with_a_strict_policy(door):
    for path, kind in {
        "/": "text/html",
        "/status": "text/html",
        "/page/app.js": "text/javascript",
    }.items():
        said = door.get(path)
        assert said.status == 200
        assert said.headers["Content-Type"].startswith(kind)
        policy = said.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert b"linnet_requests_total" in door.get("/server-metrics").body


def test_metrics_count_by_face_and_status(door):
    door.post("/translate", JOB)
    door.post("/v1/translate", {"contents": []})
    page = door.get("/metrics").body.decode()
    assert 'linnet_http_requests_total{face="libretranslate",status="200"}' in page
    assert 'linnet_http_requests_total{face="native",status="400"}' in page
    assert 'linnet_http_request_duration_seconds_bucket{face="libretranslate",le="+Inf"}' in page


def test_the_log_has_no_texts(open_door, server):
    door = open_door(server.grpc)
    door.post("/translate", {**JOB, "q": "SECRET", "api_key": "TOKEN"})
    door.get("/v1/translate?q=SECRET&target=de&source=en")
    assert door.stop() == 0
    lines = [json.loads(line) for line in door.log.read_text().splitlines()]
    assert [line["status"] for line in lines if line["event"] == "request"] == [200, 200]
    assert "SECRET" not in door.log.read_text()
    assert "TOKEN" not in door.log.read_text()


def wait_for_metric(door, line: str) -> None:
    """A worker writes its numbers a tenth of a second later, or when it is asked itself."""
    end = time.monotonic() + 60
    while line not in (page := door.get("/metrics").body.decode()):
        assert time.monotonic() < end, page


def test_several_workers_share_port_and_metrics(open_door, server):
    door = open_door(server.grpc, "--workers", "2")
    for _ in range(8):
        assert door.post("/translate", JOB).status == 200
    wait_for_metric(door, 'linnet_http_requests_total{face="libretranslate",status="200"} 8.0')
    assert door.stop() == 0


def test_requests_of_a_worker_that_was_killed_are_no_longer_in_flight(fake, open_door):
    server = fake(lambda number: server.released.wait(60) and None)
    door = open_door(server.address)
    sent = json.dumps(JOB).encode()
    head = "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    with door.connect() as client:
        client.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        wait_for_metric(door, "linnet_http_requests_in_flight 2.0")  # with that for the page
        os.kill(door.worker(), signal.SIGKILL)
        assert client.recv(1) == b""
    server.released.set()
    wait_for_metric(door, "linnet_http_requests_in_flight 1.0")


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


def test_a_server_with_tls_and_a_certificate_of_another_name(open_door, start, tmp_path):
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=linnet"
    command += " -addext subjectAltName=DNS:linnet"
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    server = start("--tls-cert", certificate, "--tls-key", key)
    trusting = open_door(server.grpc, "--ca-file", certificate, "--tls-server-name", "linnet")
    assert trusting.get("/health").status == 200
    doubting = open_door(server.grpc, "--ca-file", certificate)
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
