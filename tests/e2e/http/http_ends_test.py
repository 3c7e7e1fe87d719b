"""Requests that end early: the client hangs up, the server dies, linnet-http stops."""

import json
import signal
import socket
import threading
import time

from every_face import FACES


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
    door.wait_for_metric("linnet_http_requests_in_flight 2.0")  # with the request for the page
    go.set()
    again.join()
    assert len(server.calls) == 1
