"""Authenticated peers that do not finish their messages are ended by `request-timeout`, or earlier
by the patched gRPC, with their connections, while such messages hold half of `max-request-memory`.
"""

from __future__ import annotations

import threading

import grpc
import pytest
import resources
from attacks import attack, known_unfinished_messages

TOKENS = {"attacker": "attacker-0123456789abcdef", "polite": "polite-0123456789abcdef"}
CONNECTIONS = 4  # each begins 25 calls a second, with messages of 4 MB
WAVES = 4  # of as many connections, one after the other
REQUEST_TIMEOUT = 30
QUOTA = 64 << 20  # less than one wave sends, if it may
COMPLETE = 'linnet_requests_total{code="OK",method="ListModels"}'


@pytest.fixture
def server(start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{token} {name} inference\n" for name, token in TOKENS.items()))
    flags = ["--tokens", str(tokens), "--max-request-memory", str(QUOTA)]
    flags += ["--request-timeout", str(REQUEST_TIMEOUT), "--unauthenticated-timeout", "3"]
    server = start(*flags)
    yield server
    assert server.stop() == 0


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
def test_unfinished_messages_end_their_connections_alone(server, on_patched_grpc):
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
                lambda: known_unfinished_messages(TOKENS["attacker"], REQUEST_TIMEOUT / 2),
                CONNECTIONS,
                REQUEST_TIMEOUT / 2,
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
