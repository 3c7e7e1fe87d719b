"""What peers can do on whose connections no call has been authenticated.

Few connections of each kind here; tests/bench/unauthenticated.py measures what many cost. Debian's
gRPC has the defects that deps/grpc mends, so these are skipped on it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import grpc
import http2
import pytest
from attacks import ATTACKS, ENDED_BY_GRPC, attack, headers
from http2 import DATA, RawClient, frame, message_prefix

CONNECTIONS = 20
# The attackers have the same cores as the server, which other tests keep busy as well.
SECONDS = 30.0
MAX_KIB = 64
# What a server allocates once for any crowd: threads' arenas, tables. 20 connections share it here.
ONCE_KIB = 8192


@pytest.fixture(scope="module")
def on_patched_grpc(server_binary) -> None:
    libraries = subprocess.run(["ldd", str(server_binary)], capture_output=True, text=True).stdout
    loaded = [line for line in libraries.splitlines() if "libgrpc++.so" in line]
    if ".deps/grpc" not in loaded[0]:
        pytest.skip("Debian's gRPC has the defects: ./start.sh --patched-grpc builds one without")


@pytest.fixture(scope="module")
def attacked(start):
    server = start()
    yield server
    assert server.stop() == 0


def resident_kib(server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def answers(server) -> bool:
    with grpc.insecure_channel(server.grpc) as server.channel:
        return bool(server.method("ListModels")(server.api.ListModelsRequest(), timeout=30))


@pytest.mark.memory
@pytest.mark.parametrize("name", ENDED_BY_GRPC)
def test_an_attacker_is_closed_and_costs_little(name, attacked, on_patched_grpc):
    before = resident_kib(attacked)
    outcome = attack(
        attacked.grpc,
        ATTACKS[name],
        CONNECTIONS,
        SECONDS,
        sample=lambda: resident_kib(attacked),
    )
    assert outcome.open == 0
    assert max(outcome.samples) - before <= CONNECTIONS * MAX_KIB + ONCE_KIB
    assert answers(attacked)


def test_a_message_that_is_too_long_is_refused_before_it_has_come(attacked, on_patched_grpc):
    client = RawClient(attacked.grpc)
    client.socket.sendall(headers(1) + frame(DATA, 0, 1, message_prefix(1 << 30) + b"a" * 100))
    assert client.wait_for(http2.RST_STREAM, 1)
    client.close()


def test_more_calls_than_allowed_cost_the_connection_before_settings_are_acknowledged(
    start, on_patched_grpc
):
    server = start("--max-streams", "3")
    connection = http2.connect(server.grpc)
    connection.sendall(http2.PREFACE + frame(http2.SETTINGS, 0, 0, b""))
    connection.sendall(b"".join(headers(stream) for stream in (1, 3, 5)))
    connection.settimeout(1)
    assert not http2.is_closed(connection), "it may have so many"
    connection.settimeout(60)
    connection.sendall(headers(7))
    assert http2.is_closed(connection)
    assert server.stop() == 0
