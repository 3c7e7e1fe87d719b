"""Limits and timeouts of connections, and clients that misbehave."""

from __future__ import annotations

import signal
import time

import grpc
import http2
import pytest
from http2 import RawClient

OPEN = "linnet_connections"
REFUSED = "linnet_connections_refused_total"
ADMITTED = "linnet_admitted_tokens"


@pytest.fixture(scope="module")
def strict(start):
    """A server with short timeouts."""
    return start("--request-timeout", "1")


LONG = {"min_target_tokens": 1000, "max_target_tokens": 1024, "beam_size": 5}


def request(server, *contents: str, **options) -> bytes:
    return server.api.TranslateRequest(
        contents=contents, source_language_code="en", target_language_code="de", options=options
    ).SerializeToString()


def works(server) -> bool:
    with grpc.insecure_channel(server.grpc) as server.channel:
        return server.translate("A bird sings.").model == "en-de"


def answers(server) -> bool:
    """Calls on the existing channel."""
    try:
        return server.translate("A bird sings.", timeout=30).model == "en-de"
    except grpc.RpcError:
        return False


def test_connections_are_limited(start):
    server = start("--max-connections", "3", "--max-connections-per-address", "2")
    first, second = RawClient(server.grpc), RawClient(server.grpc)
    for client in (first, second):
        assert client.settings()
    assert http2.is_closed(http2.connect(server.grpc)), "the third of this address"
    other = http2.connect(server.grpc, source="127.0.0.2")
    server.wait_for(OPEN, lambda count: count == 3)
    assert http2.is_closed(http2.connect(server.grpc, source="127.0.0.2")), "the fourth of all"
    server.wait_for(REFUSED, lambda count: count == 2)
    probe = http2.connect(server.grpc, source="127.0.0.3")
    server.wait_for(OPEN, lambda count: count == 4)
    assert http2.is_closed(http2.connect(server.grpc, source="127.0.0.4")), "room for one probe"
    server.wait_for(REFUSED, lambda count: count == 3)
    probe.close()
    first.close()
    server.wait_for(OPEN, lambda count: count == 2)
    assert works(server), "the connection is accepted again"
    second.close()
    other.close()
    assert server.stop() == 0


def test_silent_connection_is_closed(start):
    server = start("--unauthenticated-timeout", "1")
    assert http2.is_closed(http2.connect(server.grpc))
    garbage = http2.connect(server.grpc)
    garbage.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert http2.is_closed(garbage)
    assert works(server)
    assert server.stop() == 0


@pytest.mark.long
def test_silent_connection_is_closed_after_twenty_seconds(start):
    """Before a longer timeout: HTTP/2 has not begun."""
    server = start("--unauthenticated-timeout", "60")
    began = time.monotonic()
    assert http2.is_closed(http2.connect(server.grpc))
    assert 15 < time.monotonic() - began < 40
    assert server.stop() == 0


def test_half_open_connection_is_detected(strict):
    """Half open: the client's side is gone without a FIN or RST."""
    silent = RawClient(strict.grpc, answers_pings=False)
    kinds = [frame.kind for frame in silent.frames()]
    assert kinds.count(http2.PING) >= 1, "then it was closed"
    polite = RawClient(strict.grpc)
    for _ in range(4):
        assert polite.wait_for(http2.PING), "a client that answers pings stays connected"
    polite.close()


def test_call_that_arrives_during_the_shutdown_may_be_repeated(start, on_patched_grpc):
    """The client calls while the server's GOAWAY is on its way."""
    server = start()
    client = RawClient(server.grpc, answers_pings=False)  # it has not seen GOAWAY
    client.call("Translate", request(server, *["one two three"] * 64, **LONG))
    server.wait_for(ADMITTED, lambda tokens: tokens > 0)
    server.process.send_signal(signal.SIGTERM)
    client.wait_for(http2.GOAWAY)
    answer = client.wait_for(http2.HEADERS, client.call("ListModels", b""))
    assert b"14" in answer.payload, "UNAVAILABLE"
    assert b"the server is shutting down" in answer.payload
    client.close()
    assert server.process.wait(60) == 0


def test_client_lost_during_a_call_is_detected(strict):
    silent = RawClient(strict.grpc, answers_pings=False)
    long_call = request(strict, *["one two three"] * 64, **LONG)
    silent.call("Translate", long_call)
    strict.wait_for(ADMITTED, lambda tokens: tokens > 0)
    assert list(silent.frames()), "until the server closes the connection"
    strict.wait_for(ADMITTED, lambda tokens: tokens == 0)


def test_call_of_a_client_that_does_not_read_is_ended(strict):
    """The client answers pings, but never opens its window for the answer."""
    slow = RawClient(strict.grpc, window=10)
    stream = slow.call("Translate", request(strict, *["A bird sings."] * 20))
    assert len(slow.wait_for(http2.DATA, stream).payload) <= 10
    assert slow.wait_for(http2.RST_STREAM, stream)
    assert strict.metric(ADMITTED) == 0
    again = slow.call("ListModels", b"")
    assert slow.wait_for(http2.DATA, again), "the connection itself stays open"
    slow.close()
    assert "slow_readers" in strict.log.read_text()


def test_client_that_never_reads_does_not_block_others(strict):
    deaf = RawClient(strict.grpc)
    for _ in range(3):
        deaf.call("Translate", request(strict, *["A bird sings."] * 50))
    assert works(strict)
    strict.wait_for(ADMITTED, lambda tokens: tokens == 0)
    assert http2.is_closed(deaf.socket), "it did not answer pings either"


def test_concurrent_calls_per_connection_are_limited(strict):
    client = RawClient(strict.grpc)
    assert client.settings()[http2.MAX_CONCURRENT_STREAMS] == 100
    known = client.call("ListModels", b"")
    assert client.wait_for(http2.DATA, known)
    begun = http2.header_block("/linnet.v1.TextService/Translate")
    for stream in range(known + 2, known + 2 + 2 * 101, 2):
        client.send(http2.HEADERS, http2.END_HEADERS, stream, begun)
    assert list(client.frames()), "exceeding the limit ends the connection"


def test_calls_of_a_usual_client_wait_for_a_stream(start):
    server = start()
    call = server.api.TranslateRequest(
        contents=["A bird sings."], source_language_code="en", target_language_code="de"
    )
    futures = [server.method("Translate").future(call, timeout=60) for _ in range(150)]
    assert {future.result().model for future in futures} == {"en-de"}
    assert server.metric(OPEN) == 1
    assert server.stop() == 0


def test_killed_server_restarts_on_its_port_at_once(start):
    server = start()
    address = server.grpc
    call = server.translate_slowly(8)
    server.wait_for('linnet_sequences{model="en-de",state="running"}', lambda running: running > 0)
    server.process.send_signal(signal.SIGKILL)
    assert call.exception(timeout=60).code() == grpc.StatusCode.UNAVAILABLE
    server.process.wait(30)
    again = start("--listen", address)
    end = time.monotonic() + 60
    while not answers(server):  # the old channel reconnects
        assert time.monotonic() < end
        time.sleep(0.1)
    assert again.stop() == 0


@pytest.mark.parametrize("address", ["localhost:0", "0.0.0.0:0", "[::]:0"])
def test_listens_on_names_and_all_addresses(start, address):
    server = start("--listen", address)
    port = server.grpc.rsplit(":", 1)[1]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as server.channel:
        assert server.translate("A bird sings.").model == "en-de"
    assert server.stop() == 0
