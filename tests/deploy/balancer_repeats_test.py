"""A call that crashes its replica reaches one other replica at most, never all of them.

HAProxy and nginx run with the files of deploy/balancers, of which only addresses are changed. The
replicas are sockets that speak enough HTTP/2 to answer a call, or to lose it as a crash does.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import grpc
import programs
import pytest
from balancers_test import FOLDER, haproxy, nginx
from programs import ROOT
from replicas import free_port

sys.path.append(str(ROOT / "tests/e2e/security"))
from http2 import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame

CRASH = b"crash"
HEALTHY = frame(SETTINGS, 0, 0, b"") + frame(DATA, 0, 1, b"\0\0\0\0\x02\x08\x01")
STATUS_200 = b"\x88\0\x0ccontent-type\x10application/grpc"
GRPC_STATUS_0 = b"\0\x0bgrpc-status\x010"


class Replica:
    """Answers calls, except those whose message has CRASH: it closes their connection."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.grpc = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.answered, self.crashes = 0, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        closed_by_the_balancer = contextlib.suppress(OSError)
        with closed_by_the_balancer, connection, connection.makefile("rb") as received:
            self.read(connection, received)

    def read(self, connection: socket.socket, received) -> None:
        if received.read(len(PREFACE)) != PREFACE:
            return
        connection.sendall(frame(SETTINGS, 0, 0, b""))
        messages: dict[int, bytes] = {}
        while len(head := received.read(9)) == 9:
            kind, flags = head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            payload = received.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0, b""))
            elif kind == HEADERS and b"grpc.health" in payload:
                connection.sendall(HEALTHY)
            elif kind == DATA and stream in messages:
                messages[stream] += payload
                if flags & END_STREAM and CRASH in messages[stream]:
                    self.crashes += 1
                    return
                if flags & END_STREAM:
                    self.answer(connection, stream)
            elif kind == HEADERS:
                messages[stream] = b""

    def close(self) -> None:
        """Refuses connections from now on."""
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self.listener.close()

    def answer(self, connection: socket.socket, stream: int) -> None:
        self.answered += 1
        answer = frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(DATA, 0, stream, bytes(5))
        trailers = frame(HEADERS, END_HEADERS | END_STREAM, stream, GRPC_STATUS_0)
        connection.sendall(answer + trailers)


@pytest.fixture
def replicas() -> Iterator[list[Replica]]:
    made = [Replica() for _ in range(3)]
    yield made
    for replica in made:
        replica.listener.close()


@pytest.fixture(params=["haproxy", "nginx"])
def balancer(request) -> str:
    return request.param


@pytest.fixture
def translate(balancer, replicas, tmp_path) -> Iterator[grpc.UnaryUnaryMultiCallable]:
    """Translate with bytes, through the balancer and without a retry of the client."""
    tmp_path.chmod(0o755)
    command, config = {"haproxy": haproxy, "nginx": nginx}[balancer](replicas, tmp_path)
    address = f"127.0.0.1:{free_port()}"
    config = config.replace("bind :50050", f"bind {address}")
    config = config.replace("listen 50050", f"listen {address}")
    (file := tmp_path / "config").write_text(config)
    process = subprocess.Popen([*command, str(file)], env=programs.environment())
    with grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)]) as channel:
        yield channel.unary_unary("/linnet.v1.TextService/Translate")
    assert process.poll() is None
    process.terminate()
    process.wait(60)


def call_each(replicas: list[Replica], translate) -> None:
    """Calls until each replica has answered, so that the balancer has a connection to each."""
    end = time.monotonic() + 30
    while not all(replica.answered for replica in replicas):
        assert time.monotonic() < end, "not every replica is called"
        translate(b"a dog", timeout=10, wait_for_ready=True)


def test_crashing_call_reaches_at_most_one_other_replica(balancer, translate, replicas):
    """nginx does not repeat a gRPC call that it has sent."""
    call_each(replicas, translate)
    with pytest.raises(grpc.RpcError) as raised:
        translate(CRASH, timeout=10)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    crashes = sorted(replica.crashes for replica in replicas)
    assert crashes == {"haproxy": [0, 1, 1], "nginx": [0, 0, 1]}[balancer]


def test_call_that_a_replica_does_not_accept_goes_to_another(translate, replicas):
    call_each(replicas[1:], translate)
    replicas[0].close()
    for _ in range(20):
        translate(b"a dog", timeout=10)


@pytest.mark.parametrize("file", ["nginx.conf", "nginx-tls.conf"])
def test_nginx_repeats_only_calls_that_it_has_not_sent(file):
    config = (FOLDER / file).read_text()
    assert re.findall(r"grpc_next_upstream (.*);", config) == ["error timeout"]
    assert re.findall(r"grpc_next_upstream_tries (.*);", config) == ["2"]
