"""Authenticated peers that do not finish their messages are ended by `request-timeout`, or earlier
by the patched gRPC, with their connections, while such messages hold half of `max-request-memory`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import http2
import pytest
import resources
from attacks import (
    attack,
    known_calls_without_message,
    known_unfinished_messages,
    known_watches,
)

TOKENS = {"attacker": "attacker-0123456789abcdef", "polite": "polite-0123456789abcdef"}
CONNECTIONS = 4  # each begins 25 calls a second, with messages of 4 MB
WAVES = 4  # of as many connections, one after the other
IN_FLIGHT = 'linnet_requests_in_flight{method="Translate"}'
QUOTA = 64 << 20  # less than one wave sends, if it may
COMPLETE = 'linnet_requests_total{code="OK",method="ListModels"}'


@pytest.fixture
def start_with(start, tmp_path):
    """Starts a server with tokens, a bound on memory and a timeout of requests."""
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{token} {name} inference\n" for name, token in TOKENS.items()))

    def started(quota: int, request_timeout: int):
        flags = ["--tokens", str(tokens), "--max-request-memory", str(quota)]
        flags += ["--request-timeout", str(request_timeout), "--unauthenticated-timeout", "3"]
        return start(*flags)

    return started


def polite_call(server) -> str:
    """The code of a call of another client."""
    request = server.api.TranslateRequest(
        contents=["A bird."], source_language_code="en", target_language_code="de"
    )
    metadata = [("authorization", f"Bearer {TOKENS['polite']}")]
    try:
        server.method("Translate")(request, timeout=60, metadata=metadata)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


@pytest.mark.memory
def test_unfinished_messages_end_their_connections_alone(start_with, on_patched_grpc):
    seconds = 15  # of a wave at most, half of the timeout of its requests
    server = start_with(QUOTA, 2 * seconds)
    assert polite_call(server) == "OK"
    before = resources.resident_kib(server.process.pid)
    codes, resident = [], []
    ended = threading.Event()

    def others() -> None:
        while not ended.is_set():
            codes.append(polite_call(server))
            resident.append(resources.resident_kib(server.process.pid))

    other = threading.Thread(target=others)
    other.start()
    try:
        for _ in range(WAVES):
            outcome = attack(
                server.grpc,
                lambda: known_unfinished_messages(TOKENS["attacker"], seconds),
                CONNECTIONS,
                seconds,
                acknowledges=True,
            )
            assert outcome.open == 0, "closed before the timeout"
            assert outcome.sent > QUOTA / 2
    finally:
        ended.set()
        other.join()
    assert server.metric(COMPLETE) == WAVES * CONNECTIONS, "known connections"
    assert set(codes) == {"OK"}
    assert (max(resident) - before) << 10 < QUOTA
    assert server.stop() == 0


def test_unfinished_messages_end_at_the_request_timeout(start_with):
    server = start_with(1 << 30, 3)  # more than the attacker sends
    assert polite_call(server) == "OK"
    codes, in_flight = [], []
    with ThreadPoolExecutor(1) as pool:
        attacking = pool.submit(
            attack,
            server.grpc,
            lambda: known_unfinished_messages(TOKENS["attacker"], 1),
            1,
            9,
            acknowledges=True,
        )
        while not attacking.done():
            in_flight.append(server.metric(IN_FLIGHT))
            codes.append(polite_call(server))
            time.sleep(0.05)
    attacking.result()
    assert server.metric(COMPLETE) == 1, "a known connection"
    assert max(in_flight) > 1
    assert in_flight[-1] == 0, "ended by the request timeout"
    assert set(codes) == {"OK"}
    assert server.stop() == 0


def test_data_of_calls_that_have_ended_closes_the_connection(start, on_patched_grpc):
    """They are skipped, so that neither flow control nor a message bounds them."""
    server = start()
    peer = http2.RawClient(server.grpc)
    called = peer.call("ListModels", b"")
    trailers = http2.END_STREAM | http2.END_HEADERS
    while peer.wait_for(http2.HEADERS, called).flags & trailers != trailers:
        pass
    skipped = http2.frame(http2.DATA, http2.END_STREAM, called, b"") * 2000
    with contextlib.suppress(ConnectionError):
        for _ in range(5):
            peer.socket.sendall(skipped)
    peer.socket.settimeout(10)
    assert http2.is_closed(peer.socket)


LITTLE = 32 << 20
MANY = 40  # connections, each with 98 calls
LONG_HEADERS = {f"x-{i:03}": "a" * 100 for i in range(100)}  # 11 KB
CALLS = {
    "calls without a message": known_calls_without_message,
    "with long headers": lambda token: known_calls_without_message(token, **LONG_HEADERS),
    "watches": known_watches,
}


@pytest.mark.memory
@pytest.mark.parametrize("kind", CALLS)
def test_open_calls_hold_no_more_than_the_memory_of_requests(kind, start_with):
    server = start_with(LITTLE, 60)
    assert polite_call(server) == "OK"
    before = resources.resident_kib(server.process.pid)
    samples = attack(
        server.grpc,
        lambda: CALLS[kind](TOKENS["attacker"]),
        MANY,
        seconds=4,
        sample=lambda: resources.resident_kib(server.process.pid),
        acknowledges=True,
    ).samples
    assert polite_call(server) == "OK"
    server.wait_for(COMPLETE, lambda calls: calls >= MANY)  # known connections
    # Their connections, and calls that are being refused, add to the open calls.
    assert (max(samples) - before) << 10 < 1.5 * LITTLE


@pytest.mark.memory
def test_watches_of_long_names_hold_no_more_than_the_memory_of_requests(start_with):
    server = start_with(LITTLE, 60)
    assert polite_call(server) == "OK"  # the connection is a known one
    before = resources.resident_kib(server.process.pid)
    watch = server.channel.unary_stream("/grpc.health.v1.Health/Watch")
    name = b"a" * 1_000_000
    request = b"\x0a" + b"\xc0\x84\x3d" + name  # a field and its length: HealthCheckRequest
    watches = [watch(request, timeout=60) for _ in range(90)]
    # UNAVAILABLE: a server that has no time to read them has half of its memory in them, and the
    # patched gRPC ends their connection.
    codes = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE")
    for each in watches:
        with pytest.raises(grpc.RpcError) as refused:
            next(each)
        assert refused.value.code().name in codes
    assert polite_call(server) == "OK"
    # The server does not keep the 90 MB that were sent. Memory that malloc has not given back adds
    # to that of the open calls: up to 20 MB have been seen, the most on a busy machine.
    assert (resources.resident_kib(server.process.pid) - before) << 10 < 2 * LITTLE


def test_only_probe_of_an_address_succeeds_while_others_hold_the_memory_of_health(start):
    server = start("--max-request-memory", str(1 << 20))  # of which health may hold 128 KiB

    def is_refused(peer: http2.RawClient, path: str) -> bool:
        call = peer.call("", b"", **{":path": path})
        return peer.wait_for(http2.HEADERS, call).flags & http2.END_STREAM != 0

    peers = [http2.RawClient(server.grpc, source=f"127.0.0.{host}") for host in (2, 3, 4, 5)]
    for peer in peers:
        watches = 0
        while not is_refused(peer, "/grpc.health.v1.Health/Watch"):
            watches += 1
        assert 1 <= watches < 8
    assert watches == 1, "what is left is too little for a second one"
    check = "/grpc.health.v1.Health/Check"
    assert [is_refused(peer, check) for peer in peers] == [True] * len(peers)
    assert not is_refused(http2.RawClient(server.grpc), check)
    for peer in peers:
        peer.close()
    assert server.stop() == 0
