"""Authenticated peers that do not finish their messages are ended by `request-timeout`, or earlier
by gRPC if its buffers reach `max-request-memory`. It may then reset calls of others as well.

Resident memory is not compared with the quota, which gRPC exceeds: see "Known gaps" in SECURITY.md.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from attacks import attack, known_unfinished_messages

TOKENS = {"attacker": "attacker-0123456789abcdef", "polite": "polite-0123456789abcdef"}
CONNECTIONS = 4  # each begins 25 calls a second, with messages of 4 MB
ATTACK_SECONDS = 6
REQUEST_TIMEOUT = 3
QUOTA = 64 << 20  # less than they may send at once
MAY_BE_RETRIED = {"RESOURCE_EXHAUSTED", "UNAVAILABLE"}
IN_FLIGHT = 'linnet_requests_in_flight{method="Translate"}'
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
    """The code of a small call of another client."""
    request = server.api.TranslateRequest(
        contents=["A bird."], source_language_code="en", target_language_code="de"
    )
    metadata = [("authorization", f"Bearer {TOKENS['polite']}")]
    try:
        server.method("Translate")(request, timeout=60, metadata=metadata)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def test_others_are_served_beside_unfinished_messages(server):
    assert polite_call(server) == "OK"
    codes, in_flight = [], []
    with ThreadPoolExecutor(1) as pool:
        attacking = pool.submit(
            attack,
            server.grpc,
            lambda: known_unfinished_messages(TOKENS["attacker"], ATTACK_SECONDS),
            CONNECTIONS,
            ATTACK_SECONDS + 3 * REQUEST_TIMEOUT,
            acknowledges=True,
        )
        while not attacking.done():
            in_flight.append(server.metric(IN_FLIGHT))
            codes.append(polite_call(server))
            time.sleep(0.05)
    attacking.result()
    assert server.metric(COMPLETE) == CONNECTIONS, "known connections"
    assert max(in_flight) > CONNECTIONS
    assert in_flight[-1] == 0, "ended by the request timeout"
    beside = [code for code, held in zip(codes, in_flight, strict=True) if held > 0]
    assert "OK" in beside
    assert set(codes) <= MAY_BE_RETRIED | {"OK"}
    assert codes[-1] == "OK"
