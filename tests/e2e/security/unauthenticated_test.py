"""Peers without an authenticated call use few resources and are closed soon.

They are closed after 1.5 seconds here; tests/bench/security/unauthenticated.py measures what they
cost in ten.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
import threading
import time
import zlib
from itertools import count
from pathlib import Path

import grpc
import http2
import pytest
from attacks import ATTACKS, HELLO, LIST_MODELS, WATCH, WITH_TOKENS, attack, headers, idle
from http2 import (
    DATA,
    END_STREAM,
    HEADERS,
    RST_STREAM,
    WINDOW_UPDATE,
    RawClient,
    frame,
    message_prefix,
)
from resources import cpu_seconds, peak_kib, resident_kib

TOKEN = "search-0123456789abcdef"
TIMEOUT = 1.5
CONNECTIONS = 20
# The client shares the cores with the server and with other tests.
GRACE = 10.0
MAX_KIB = 64
MAX_CPU_SECONDS = 0.01
# A few attackers send more each than a crowd, and the processor may be slower than that of
# tests/bench/results, or share a core with another program.
CPU_SLACK = 0.01
# Memory that a server allocates once for any number of connections (arenas of threads, tables), and
# bytes that arrive between two checks; 20 connections share it here.
ONCE_KIB = 24576
CROWD = 500
# With tokens those that begin calls.
BEGIN = ["unfinished messages", "100 streams", "rapid reset", "unknown methods", *WITH_TOKENS]
CROWDS = [("open", name) for name in ATTACKS] + [("with tokens", name) for name in BEGIN]
REFUSED_STREAM = b"\0\0\0\7"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
OPEN = "linnet_connections"
CLOSED = "linnet_connections_unauthenticated_closed_total"
DEBIANS_GRPC = Path("/usr/lib/x86_64-linux-gnu/libgrpc++.so.1.51")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(f"{TOKEN} search inference\n")
    return path


@pytest.fixture(scope="module", params=["open", "with tokens"])
def strict(request, start, tokens):
    flags = ["--unauthenticated-timeout", str(TIMEOUT)]
    flags += ["--max-unauthenticated-bytes", str(CONNECTIONS * MAX_KIB * 1024)]
    server = start(*flags, *(["--tokens", str(tokens)] if request.param != "open" else []))
    server.metadata = [("authorization", f"Bearer {TOKEN}")]
    yield server
    assert server.stop() == 0


def open_files(server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def answers(server) -> bool:
    request = server.api.ListModelsRequest()
    with grpc.insecure_channel(server.grpc) as server.channel:
        return bool(server.method("ListModels")(request, timeout=30, metadata=server.metadata))


@pytest.mark.memory
@pytest.mark.parametrize("name", ATTACKS | WITH_TOKENS)
def test_attacker_is_closed_and_costs_little(name, strict, on_patched_grpc):
    if name in WITH_TOKENS and "--tokens" not in strict.process.args:
        pytest.skip("only where tokens are asked for is such a peer unknown")
    before = resident_kib(strict.process.pid)
    cpu = cpu_seconds(strict.process.pid)
    outcome = attack(
        strict.grpc,
        (ATTACKS | WITH_TOKENS)[name],
        CONNECTIONS,
        TIMEOUT + GRACE,
        sample=lambda: resident_kib(strict.process.pid),
    )
    assert outcome.open == 0, "closed at the latest after the timeout"
    assert max(outcome.samples) - before <= CONNECTIONS * MAX_KIB + ONCE_KIB
    used = cpu_seconds(strict.process.pid) - cpu
    assert used <= CONNECTIONS * (MAX_CPU_SECONDS + CPU_SLACK)
    assert answers(strict)


def cost(server, script) -> tuple[float, float]:
    """Returns resident memory at its highest in KiB, and CPU time."""
    pid = server.process.pid
    before = cpu_seconds(pid)
    outcome = attack(
        server.grpc, script, CROWD, TIMEOUT + GRACE, lambda: resident_kib(pid), every=0.05
    )
    assert outcome.open == 0, "closed at the latest after the timeout"
    return max(outcome.samples), cpu_seconds(pid) - before


@pytest.fixture(scope="module")
def crowded(start, tokens):
    """Servers with default limits, without tokens and with them, each with what a crowd of idle
    connections costs it."""
    started = {}

    def of(kind: str):
        if kind not in started:
            flags = ["--tokens", str(tokens)] if kind == "with tokens" else []
            server = start("--unauthenticated-timeout", str(TIMEOUT), *flags)
            cost(server, idle)  # what is allocated once
            started[kind] = server, *cost(server, idle)
        return started[kind]

    yield of
    assert [server.stop() for server, *_ in started.values()] == [0] * len(started)


@pytest.mark.memory
@pytest.mark.parametrize(("kind", "name"), CROWDS)
def test_a_crowd_costs_no_more_than_so_much_each(kind, name, crowded, on_patched_grpc):
    """Memory that earlier crowds have left is included."""
    server, idle_kib, idle_cpu = crowded(kind)
    kib, cpu = cost(server, (ATTACKS | WITH_TOKENS)[name])
    assert kib - idle_kib <= CROWD * MAX_KIB
    assert cpu - idle_cpu <= CROWD * MAX_CPU_SECONDS


def test_calls_beyond_what_may_be_held_are_refused_until_a_message_is_complete(
    start, on_patched_grpc
):
    server = start("--max-unauthenticated-bytes", str(64 << 10))
    client = RawClient(server.grpc)
    begun = b"".join(headers(stream) for stream in (1, 3, 5))  # 16 KiB each, and what follows
    message = b"a" * 13_000
    client.socket.sendall(begun + frame(DATA, 0, 1, message_prefix(len(message) + 1) + message))
    client.socket.sendall(headers(7))
    refused = client.wait_for(http2.RST_STREAM)
    assert (refused.stream, refused.payload) == (7, REFUSED_STREAM)
    # No method reads this as a message, which makes the connection a known one all the same.
    client.socket.sendall(frame(DATA, END_STREAM, 1, b"a"))
    assert client.wait_for(http2.HEADERS, 1)
    client._next_stream = 9
    for _ in range(10):
        answered = client.call("ListModels", b"")
        assert client.wait_for(http2.DATA, answered)
    assert server.stop() == 0


def test_data_beyond_what_may_be_held_ends_the_connection(start, on_patched_grpc):
    server = start("--max-unauthenticated-bytes", str(64 << 10))
    connection = http2.connect(server.grpc)
    connection.sendall(HELLO + headers(1) + frame(DATA, 0, 1, message_prefix(1_000_000)))
    # Small pieces: what refers to them counts as well, but not as bytes that have come.
    connection.sendall(frame(DATA, 0, 1, b"a" * 100) * 250)
    connection.settimeout(1)
    assert not http2.is_closed(connection)
    connection.settimeout(60)
    connection.sendall(frame(DATA, 0, 1, b"a" * 100) * 60)
    assert http2.is_closed(connection)
    assert server.stop() == 0


def test_no_socket_is_left_open(strict):
    """Covers connections that end by the client, by the server, and by the server's timeout."""
    strict.wait_for(OPEN, lambda count: count == 0)
    before = open_files(strict)
    for _ in range(3):
        outcome = attack(strict.grpc, ATTACKS["one byte a second"], CONNECTIONS, TIMEOUT + GRACE)
        assert outcome.open == 0
        for _ in range(CONNECTIONS):
            assert answers(strict)
    strict.wait_for(OPEN, lambda count: count == 0)
    assert open_files(strict) <= before + 2, "all but those that read the metrics"


def test_authenticated_connection_stays_open(strict):
    request = strict.api.ListModelsRequest()
    with grpc.insecure_channel(strict.grpc) as strict.channel:
        call = strict.method("ListModels")
        assert call(request, timeout=30, metadata=strict.metadata)
        idle = RawClient(strict.grpc)
        assert http2.is_closed(idle.socket), "closed after the timeout"
        connected = []
        strict.channel.subscribe(connected.append)
        assert call(request, timeout=30, metadata=strict.metadata)
        assert grpc.ChannelConnectivity.CONNECTING not in connected
    assert strict.metric(CLOSED) >= 1


def busy_calls(streams: list[int]) -> bytes:
    """Calls with 1 KB of headers each, such as a signed token, as gRPC's clients may send them."""
    more = {f"x-{i}": "a" * 100 for i in range(10)} | {"authorization": f"Bearer {TOKEN}"}
    return b"".join(
        headers(stream, LIST_MODELS, **more)
        + frame(DATA, 0, stream, message_prefix(0))
        + frame(DATA, END_STREAM, stream, b"")
        for stream in streams
    )


def wait_for_answers(client: RawClient, streams: list[int]) -> None:
    """Those that are refused before the first message has come are sent again, as gRPC's clients
    do."""
    left, numbers = set(streams), count(max(streams) + 2, 2)
    for arrived in client.frames():
        if arrived.stream not in left:
            continue
        if arrived.kind == HEADERS and arrived.flags & END_STREAM:
            left.remove(arrived.stream)
        if arrived.kind == RST_STREAM and arrived.payload == REFUSED_STREAM:
            left.remove(arrived.stream)
            left.add(next(numbers))
            client.socket.sendall(busy_calls([max(left)]))
        if not left:
            break
    assert not left


def test_first_calls_of_a_busy_client_are_answered(strict, on_patched_grpc):
    """As many as it may begin at once."""
    client = RawClient(strict.grpc)
    client.socket.settimeout(30)
    first = list(range(1, 200, 2))
    client.socket.sendall(busy_calls(first))
    wait_for_answers(client, first)


def test_client_that_cancels_all_of_its_calls_at_once_stays_connected(strict, on_patched_grpc):
    client = RawClient(strict.grpc)
    client.socket.settimeout(30)
    client.socket.sendall(busy_calls([1]))
    wait_for_answers(client, [1])
    cancelled = range(3, 203, 2)
    cancel = struct.pack(">I", 8)
    calls = [busy_calls([stream]) for stream in cancelled]
    ends = [frame(RST_STREAM, 0, stream, cancel) for stream in cancelled]
    client.socket.sendall(b"".join(calls + ends))
    again = list(range(203, 403, 2))
    client.socket.sendall(busy_calls(again))
    wait_for_answers(client, again)


def test_health_call_does_not_authenticate_a_peer(start, tokens):
    server = start("--tokens", str(tokens), "--unauthenticated-timeout", "1")
    connection = http2.connect(server.grpc)
    check = frame(DATA, END_STREAM, 1, message_prefix(0))
    connection.sendall(HELLO + headers(1, "/grpc.health.v1.Health/Check") + check)
    assert http2.is_closed(connection)
    assert server.stop() == 0


def test_watches_without_a_token_take_no_share_of_its_holders(start, tokens):
    networks, calls = 50, 12  # of 16 KiB each; the calls are more than a 51st of the memory
    server = start("--tokens", str(tokens), "--max-request-memory", str(8 << 20))
    check = frame(DATA, END_STREAM, 1, message_prefix(0))
    watchers = [RawClient(server.grpc, source=f"127.0.0.{2 + i}") for i in range(networks)]
    for watcher in watchers:
        watcher.socket.sendall(headers(1, WATCH) + check)
        assert watcher.wait_for(DATA, 1)
    ended = threading.Event()
    begin = server.channel.stream_stream("/linnet.v1.TextService/TranslateDocument")
    metadata = [("authorization", f"Bearer {TOKEN}")]
    held = [begin(iter(ended.wait, True), metadata=metadata, timeout=60) for _ in range(calls)]
    server.wait_for(
        'linnet_requests_in_flight{method="TranslateDocument"}',
        lambda count: count + sum(call.done() for call in held) == calls,
    )
    assert not any(call.done() for call in held), "none was refused"
    ended.set()
    assert server.stop() == 0


def test_reflection_makes_no_connection_known(start):
    server = start("--unauthenticated-timeout", "1")
    connection = http2.connect(server.grpc)
    asked = frame(DATA, 0, 1, message_prefix(2) + b"\x3a\0")  # the services
    connection.sendall(HELLO + headers(1, REFLECTION) + asked)
    assert http2.is_closed(connection)
    assert server.stop() == 0


@pytest.mark.parametrize("method", ["Translate", "TranslateDocument"])
def test_request_that_does_not_arrive_is_ended(method, start):
    """Also holds on an authenticated connection."""
    server = start("--request-timeout", "1")
    client = RawClient(server.grpc)
    assert client.wait_for(http2.DATA, client.call("ListModels", b""))
    connection = client.socket
    path = f"/linnet.v1.TextService/{method}"
    connection.sendall(headers(3, path) + frame(DATA, 0, 3, message_prefix(1000) + b"a" * 500))
    assert client.wait_for(http2.RST_STREAM, 3)
    client._next_stream = 5
    again = client.call("ListModels", b"")
    assert client.wait_for(http2.DATA, again), "the connection itself stays open"
    assert server.stop() == 0
    assert "slow_requests" in server.log.read_text()


def test_too_long_message_is_refused_early(start, on_patched_grpc):
    server = start()
    client = RawClient(server.grpc)
    body = frame(DATA, 0, 1, message_prefix(1 << 30) + b"a" * 100)
    client.socket.sendall(headers(1) + body)
    assert client.wait_for(http2.RST_STREAM, 1)
    assert server.stop() == 0


@pytest.mark.memory
@pytest.mark.parametrize("announced", ["gzip", "deflate", "", "identity"])
@pytest.mark.parametrize("path", ["/grpc.health.v1.Health/Check", "/linnet.v1.TextService/Score"])
def test_compressed_message_is_never_decompressed(path, announced, start):
    """gRPC would do that before it looks at the size, and 4 MB of these may become 4 GB."""
    server = start()
    server.metadata = None
    before = peak_kib(server.process.pid)
    packed = zlib.compress(bytes(60 << 20), 9, 31 if announced != "deflate" else 15)
    encoding = {"grpc-encoding": announced} if announced else {}
    client = RawClient(server.grpc)
    client.socket.sendall(headers(1, path, **encoding))
    body = b"\1" + struct.pack(">I", len(packed)) + packed
    for at in range(0, len(body), 16384):
        last = END_STREAM if at + 16384 >= len(body) else 0
        client.socket.sendall(frame(DATA, last, 1, body[at : at + 16384]))
    assert client.wait_for(HEADERS, 1), "the call ends with an error"
    client.close()  # it would not answer the last ping of a drain
    assert answers(server)
    assert peak_kib(server.process.pid) - before < 30 << 10
    assert server.stop() == 0


def test_compression_is_refused_as_unimplemented(start):
    server = start()
    request = server.api.TranslateRequest(contents=["One."], target_language_code="de")
    server.channel = grpc.insecure_channel(server.grpc, compression=grpc.Compression.Gzip)
    with pytest.raises(grpc.RpcError) as refused:
        server.method("Translate")(request, timeout=30)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert server.stop() == 0


def test_too_many_calls_before_settings_ack_close_the_connection(start, on_patched_grpc):
    server = start()
    connection = http2.connect(server.grpc)
    connection.sendall(HELLO + b"".join(headers(stream) for stream in range(1, 200, 2)))
    connection.settimeout(1)
    assert not http2.is_closed(connection), "so many are allowed"
    connection.settimeout(60)
    connection.sendall(headers(201))
    assert http2.is_closed(connection)
    assert server.stop() == 0


WIDER = struct.pack(">I", 1)  # an update of a window, by a byte


def test_calls_that_begin_at_once_may_widen_their_windows(start, on_patched_grpc):
    """A hundred calls of a client of gRPC to a server that has read no message of them yet."""
    server, calls = start(), range(1, 200, 2)
    client = RawClient(server.grpc)
    for call in calls:
        client.socket.sendall(headers(call, LIST_MODELS))
        for window in (call, 0):  # its own and that of the connection
            client.send(WINDOW_UPDATE, 0, window, WIDER)
    for call in calls:
        client.send(DATA, END_STREAM, call, message_prefix(0))
    ends = HEADERS, END_STREAM
    answered = (it.stream for it in client.frames() if (it.kind, it.flags & END_STREAM) == ends)
    assert set(itertools.islice(answered, len(calls))) == set(calls)
    assert server.stop() == 0


def test_updates_of_windows_without_end_close_the_connection(start, on_patched_grpc):
    server = start()
    connection = http2.connect(server.grpc)
    connection.sendall(HELLO + b"".join(headers(call) for call in range(1, 100, 2)))
    with contextlib.suppress(ConnectionError):
        connection.sendall(frame(WINDOW_UPDATE, 0, 0, WIDER) * 400)  # 100 of them are free
    assert http2.is_closed(connection)
    assert server.stop() == 0


def test_connection_ends_at_max_age(start):
    server = start("--max-connection-age", "1", "--max-deadline", "1")
    client = RawClient(server.grpc)
    assert client.wait_for(http2.DATA, client.call("ListModels", b""))
    assert http2.GOAWAY in [it.kind for it in client.frames()], "then it was closed"
    assert server.stop() == 0


def test_calls_end_within_the_grace_of_an_aged_connection(start):
    grace = 4  # max-deadline
    server = start("--max-connection-age", "1", "--max-deadline", "4")
    begin = time.monotonic()
    watch = server.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=60)
    assert next(watch)[1] == 1

    def lines():
        yield 1, "A bird sings."
        time.sleep(max(0.0, begin + 2 - time.monotonic()))
        yield 2, "A bird sings."

    assert len(list(server.document(lines()))) >= 2, "a running call survives the age"
    with pytest.raises(grpc.RpcError) as end:
        next(watch)
    assert end.value.code() == grpc.StatusCode.UNAVAILABLE, "the rest ends with the grace"
    assert grace < time.monotonic() - begin < grace + GRACE
    assert server.stop() == 0


def test_startup_log_names_the_grpc_build(start, grpc_patches):
    for address, listens in (("127.0.0.1:0", False), ("0.0.0.0:0", True)):
        server = start("--listen", address)
        log = server.log.read_text()
        assert f"patched={int(grpc_patches > 0)}" in log
        assert ("grpc_with_defect" in log) == (listens and not grpc_patches)
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("flags", "warned"),
    [
        (["--listen", "0.0.0.0:0"], True),
        (["--listen", "127.0.0.1:0"], False),
        (["--listen", "0.0.0.0:0", "--trusted-proxies", "192.0.2.1"], False),
    ],
)
def test_startup_warns_of_debians_grpc_on_a_network(start, monkeypatch, flags, warned):
    if not DEBIANS_GRPC.exists():
        pytest.skip(f"no {DEBIANS_GRPC}: the programs were built with another gRPC")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(DEBIANS_GRPC.parent))  # goes before the rpath
    server = start(*flags)
    log = server.log.read_text()
    assert "patched=0" in log
    assert ("grpc_with_defect" in log) == warned
    assert ("SECURITY.md" in log) == warned
    assert server.stop() == 0
