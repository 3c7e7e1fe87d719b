"""What a client that means no good, or has a bug, costs, and what it gets."""

import asyncio
import gc
import gzip
import json
import re

import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request

PATHS = ["/translate", "/v2/translate", "/v1/translate", "/language/translate/v2"]
MIB = 1 << 20


def head(path: str, *lines: str, kind: str = "application/json") -> bytes:
    named = "".join(f"{line}\r\n" for line in lines)
    first = f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    return f"{first}{named}\r\n".encode()


def status(reply: bytes) -> int:
    return int(re.match(rb"HTTP/1\.\d (\d{3}) ", reply)[1])


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_is_too_large_is_refused_before_it_is_read(door, path):
    with door.connect() as client:
        client.sendall(head(path, f"Content-Length: {1 << 30}"))
        assert status(client.recv(100)) == 413


@pytest.mark.memory
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=a"])
def test_a_body_without_a_length_is_kept_up_to_the_limit_only(open_door, server, kind):
    door = open_door(server.grpc)
    assert door.get("/health").status == 200
    before = door.resident_bytes()
    with door.connect() as client:
        client.sendall(head("/translate", "Transfer-Encoding: chunked", kind=kind))
        part = b'--a\r\nContent-Disposition: form-data; name="q"\r\n\r\n'
        client.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        try:
            for _ in range(64):
                client.sendall(b"100000\r\n" + b" " * MIB + b"\r\n")
        except ConnectionError:
            pass  # it has answered and does not read the rest
        else:
            assert status(client.recv(100)) == 413
    assert door.get("/health").status == 200
    assert door.resident_bytes() - before < 32 * MIB


@pytest.mark.memory
def test_a_compressed_body_counts_unpacked(open_door, server):
    door = open_door(server.grpc)
    assert door.get("/health").status == 200
    before = door.resident_bytes()
    packed = gzip.compress(b'{"q": "' + b"a" * (256 * MIB) + b'"}', 9)
    assert len(packed) < MIB
    lines = f"Content-Length: {len(packed)}", "Content-Encoding: gzip"
    reply = door.raw(head("/translate", *lines) + packed)
    assert status(reply) == 413
    assert door.resident_bytes() - before < 32 * MIB


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"S" * 9000), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX-A: %s\r\n\r\n" % (b"S" * 9000), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n%s\r\n" % (b"X-A: SECRET\r\n" * 200), 431),
        (b"GET / HTTP/1.1\r\nSECRET\r\n\r\n", 400),
        (b"SECRET\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: SECRET\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
    ],
)
def test_a_head_that_cannot_be_read_is_json_and_is_not_repeated(open_door, server, sent, expected):
    """aiohttp's own answer is text with a part of the request, and its log has a traceback."""
    door = open_door(server.grpc)
    reply = door.raw(sent)
    assert status(reply) == expected, reply
    lines, _, body = reply.partition(b"\r\n\r\n")
    assert b"Cache-Control: no-store" in lines
    said = json.loads(body)
    assert said["error"] == said["message"]
    assert b"SSSS" not in reply
    assert b"SECRET" not in reply
    assert door.get("/health").status == 200
    assert door.stop() == 0
    log = door.log.read_text()
    assert "SSSS" not in log
    assert "SECRET" not in log
    assert [json.loads(line)["status"] for line in log.splitlines()] == [expected, 200]


def test_a_head_that_cannot_be_read_is_not_kept(linnet):
    """aiohttp's exception is held by the frames of its traceback, and holds a part of the head."""
    from linnet_http.connection import Connection

    async def refuse() -> int:
        loop = asyncio.get_running_loop()
        manager = web.Server(lambda request: web.Response())
        server = await loop.create_server(lambda: Connection(manager, loop=loop), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\nX-A: %s\r\n\r\n" % (b"a" * 9000))
        assert status(await reader.read()) == 431
        writer.close()
        server.close()
        return sum(type(it) is LineTooLong for it in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(refuse()) == 0
    finally:
        gc.enable()


def slow_request(kind: str) -> web.Request:
    """A request whose body does not come."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    payload = StreamReader(protocol, 1 << 16, loop=loop)
    payload.feed_data(b"--a\r\n" if "multipart" in kind else b"{")
    headers = {"Content-Type": kind, "Transfer-Encoding": "chunked"}
    return make_mocked_request("POST", "/translate", headers, payload=payload)


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=a"])
def test_a_body_that_does_not_come_times_out(linnet, monkeypatch, kind):
    from linnet_http import body
    from linnet_http.problem import Problem

    monkeypatch.setattr(body, "BODY_SECONDS", 0.01)

    async def read() -> None:
        await body.read_fields(slow_request(kind), 1 << 20)

    with pytest.raises(Problem) as problem:
        asyncio.run(read())
    assert problem.value.status == 408
    assert problem.value.reason == "BODY_TOO_SLOW"


@pytest.mark.parametrize("count", [1024, 1025])
def test_the_number_of_texts_is_limited(door, count):
    said = door.post("/translate", {"q": [" "] * count, "source": "en", "target": "de"})
    assert said.status == (200 if count == 1024 else 413)


def test_a_form_with_too_many_fields_is_refused(door):
    said = door.post("/translate", "&".join(["a=1"] * 5000))
    assert said.status == 400
    assert said.json["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2f..%2fpyproject.toml",
        "/page//etc/passwd",
        "/page/app.js%00.html",
        "/v1/models/..%2f..%2fetc",
        "/v2/glossaries/..%2f..%2fa",
    ],
)
def test_no_path_leads_out(door, path):
    reply = door.raw(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    assert status(reply) in (400, 404)
    assert b"no-store" in reply
