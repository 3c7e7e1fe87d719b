"""One promise for all clients: which calls are made again, how often, and what an error says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest
from client_drivers import Asyncio, CommandLine, Failed, Library, Settings, Threads
from cutting_proxy import CuttingProxy
from echo_server import EchoServer, Refusal
from google.rpc import error_details_pb2, status_pb2
from python_package import wait_until

CLIENTS = ["threads", "asyncio", "library", "command line"]
KINDS = ["translate", "stream", "document"]
LINES = [f"line {number}" for number in range(4)]


def said(lines: list[str]) -> list[str]:
    return [f"[de] {line}" for line in lines]


# The command line sends the lines of a file in calls of Translate, and has no setting for delays.
LIBRARIES = [name for name in CLIENTS if name != "command line"]
CALLS = [
    (name, kind) for name in CLIENTS for kind in KINDS if name in LIBRARIES or kind == KINDS[0]
]
every_client = pytest.mark.parametrize("client", CLIENTS, indirect=True)
every_library = pytest.mark.parametrize("client", LIBRARIES, indirect=True)
every_call = pytest.mark.parametrize(("client", "kind"), CALLS, indirect=["client"])


@pytest.fixture
def client(request, linnet, program):
    if request.param == "threads":
        return Threads(linnet)
    if request.param == "asyncio":
        return Asyncio(linnet)
    if request.param == "library":
        return Library(program("conformance_client"))
    return CommandLine(program("linnet"))


@pytest.fixture
def serve(linnet):
    servers = []

    def start(*arguments, **named) -> EchoServer:
        servers.append(EchoServer(linnet, *arguments, **named))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def behind():
    proxies = []

    def start(*arguments, **named) -> CuttingProxy:
        proxies.append(CuttingProxy(*arguments, **named))
        return proxies[-1]

    yield start
    for proxy in proxies:
        proxy.close()


def refusal(code: str, pushback: str | None = None, delay: int = 0) -> Refusal:
    """The error of a server that is busy, with a reason and a delay in seconds as details."""
    value = getattr(grpc.StatusCode, code)
    trailers: list[tuple[str, str | bytes]] = []
    if pushback is not None:
        trailers.append(("grpc-retry-pushback-ms", pushback))
    if delay:
        status = status_pb2.Status(code=value.value[0], message="as told")
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.seconds = delay
        for detail in (error_details_pb2.ErrorInfo(reason="TOO_MUCH_WORK", domain="linnet"), retry):
            status.details.add().Pack(detail)
        trailers.append(("grpc-status-details-bin", status.SerializeToString()))
    return value, tuple(trailers)


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
@pytest.mark.parametrize("pushback", [None, "0", "1", "30"])
@every_call
def test_refused_call_is_made_again(client, kind, serve, code, pushback):
    server = serve(lambda attempt: refusal(code, pushback) if attempt < 4 else None)
    texts = LINES[:1]
    assert getattr(client, kind)(server.address, texts, Settings()) == said(texts)
    assert len(server.attempts) == 4
    assert len(server.request_ids) == 1, "all attempts share one id"
    assert server.texts == {text: 1 for text in texts}
    if pushback == "30":
        gaps = [b - a for a, b in zip(server.attempts, server.attempts[1:], strict=False)]
        assert min(gaps) >= 0.03


@every_library
def test_shortest_delay_loses_no_retry(client, serve):
    """gRPC loses a retry whose wait rounds to 0 ms, which happened to every other one of 1 ms."""
    settings = Settings(initial_backoff=0.002, max_backoff=0.002)
    for _ in range(4):
        server = serve(lambda attempt: refusal("UNAVAILABLE") if attempt < 4 else None)
        assert client.translate(server.address, LINES[:1], settings) == said(LINES[:1])


@every_library
def test_shorter_delay_is_refused(client):
    settings = Settings(initial_backoff=0.0019)
    with pytest.raises(Failed, match=r"at least (0.002 s|2ms)") as raised:
        client.translate("127.0.0.1:1", LINES[:1], settings)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("pushback", ["-1", "soon"])
@every_call
def test_call_is_not_made_again_against_the_servers_wish(client, kind, serve, pushback):
    server = serve(lambda attempt: refusal("UNAVAILABLE", pushback))
    with pytest.raises(Failed) as raised:
        getattr(client, kind)(server.address, LINES[:1], Settings())
    assert (raised.value.code, len(server.attempts)) == ("UNAVAILABLE", 1)


@every_call
def test_attempts_are_limited(client, kind, serve):
    """Also those of a document without a result between them; gRPC's and the client's do not
    multiply."""
    server = serve(lambda attempt: refusal("UNAVAILABLE"))
    with pytest.raises(Failed, match="as told") as raised:
        getattr(client, kind)(server.address, LINES[:1], Settings())
    assert (raised.value.code, len(server.attempts)) == ("UNAVAILABLE", 5)


@pytest.mark.parametrize("code", ["INTERNAL", "CANCELLED", "NOT_FOUND"])
@every_call
def test_call_that_failed_a_server_is_not_made_again(client, kind, serve, code):
    server = serve(lambda attempt: refusal(code))
    with pytest.raises(Failed) as raised:
        getattr(client, kind)(server.address, LINES[:1], Settings())
    assert (raised.value.code, len(server.attempts)) == (code, 1)


@pytest.mark.parametrize("pushback", ["60000", "-1"])
@every_call
def test_delay_beyond_the_deadline_does_not_hide_the_refusal(client, kind, serve, pushback):
    server = serve(lambda attempt: refusal("RESOURCE_EXHAUSTED", pushback, delay=60))
    with pytest.raises(Failed) as raised:
        getattr(client, kind)(server.address, LINES[:1], Settings(timeout=10))
    assert (raised.value.code, raised.value.retry_delay) == ("RESOURCE_EXHAUSTED", 60)
    assert len(server.attempts) == 1


@every_client
def test_deadline_ends_a_call(client, serve):
    server = serve(hold=True)
    with pytest.raises(Failed, match=f"no answer from {server.address} within") as raised:
        client.translate(server.address, LINES[:1], Settings(timeout=0.3))
    assert (raised.value.code, len(server.attempts)) == ("DEADLINE_EXCEEDED", 1)


def frames_to_cut(client, kind: str, serve, behind, every: bool) -> Iterator[int]:
    """The numbers of frames after which a connection is cut; the first is that of a call of this
    kind which is not cut."""
    server = serve()
    proxy = behind(server.address, lambda connection: None)
    assert getattr(client, kind)(proxy.address, LINES, Settings()) == said(LINES)
    last = proxy.connections[0].forwarded
    return iter(range(last + 1) if every else range(0, last + 1, max(last // 5, 1)))


def check_resets(client, kind: str, serve, behind, every: bool) -> None:
    # gRPC connects again after 100 ms at the earliest.
    settings = Settings(initial_backoff=0.1, max_backoff=2)
    for frames in frames_to_cut(client, kind, serve, behind, every):
        server = serve()
        proxy = behind(
            server.address, lambda connection, frames=frames: None if connection else frames
        )
        answer: list[str] | None = None
        error = ""
        try:
            answer = getattr(client, kind)(proxy.address, LINES, settings)
        except Failed as failed:
            error = failed.code
        # Parts that were handed out cannot be taken back, so such a stream is an error.
        broken = kind == "stream" and server.texts and error == "UNAVAILABLE"
        assert answer == said(LINES) or broken, f"{frames} frames: {error}"
        assert max(server.texts.values()) <= 2, f"{frames} frames: {server.texts}"
        assert len(server.request_ids) == 1
        proxy.close()
        server.stop()


@every_call
def test_survives_resets(client, kind, serve, behind):
    check_resets(client, kind, serve, behind, every=False)


@pytest.mark.slow
@every_call
def test_survives_a_reset_at_every_frame(client, kind, serve, behind):
    check_resets(client, kind, serve, behind, every=True)


@every_library
def test_document_continues_through_many_resets(client, serve, behind):
    """Each connection lives for some results, and more are lost than a call has attempts."""
    server = serve(seconds=0.01)
    proxy = behind(server.address, lambda connection: 12, frames_of_server=True)
    lines = [f"line {number}" for number in range(60)]
    assert client.document(proxy.address, lines, Settings()) == said(lines)
    assert len(proxy.connections) > 5


@every_library
def test_document_survives_the_age_of_connections(client, serve):
    age = (("grpc.max_connection_age_ms", 150), ("grpc.max_connection_age_grace_ms", 50))
    server = serve(seconds=0.02, options=age)
    lines = [f"line {number}" for number in range(40)]
    assert client.document(server.address, lines, Settings()) == said(lines)
    assert len(server.attempts) > 2


@every_call
def test_survives_a_restart_of_the_server(client, kind, serve):
    """For longer than all attempts with their delays take."""
    first = serve(hold=True)
    settings = Settings(timeout=60)
    with futures.ThreadPoolExecutor(1) as thread:
        call = thread.submit(getattr(client, kind), first.address, LINES, settings)
        while not first.attempts:
            time.sleep(0.01)
        first.stop()
        time.sleep(0.8)
        assert not call.done() or call.result() == said(LINES)
        again = serve(address=first.address)
        assert call.result() == said(LINES)
    assert again.texts == {line: 1 for line in LINES}


@every_library
def test_lines_that_come_slowly_survive_a_reset(client, serve, behind):
    """The client waits for a line, and continues with it, when the connection is lost."""
    server = serve()
    proxy = behind(server.address, lambda connection: None)
    taken, reset = threading.Event(), threading.Event()

    def lines() -> Iterator[str]:
        yield LINES[0]
        taken.set()
        yield LINES[1]
        reset.wait(30)
        yield from LINES[2:]

    def cut() -> None:
        taken.wait(30)
        wait_until(lambda: server.texts.total() == 2)
        proxy.connections[0].reset()
        wait_until(lambda: len(server.attempts) == 2)  # it has continued without the line
        reset.set()

    cutter = threading.Thread(target=cut)
    cutter.start()
    assert client.document(proxy.address, lines(), Settings()) == said(LINES)
    cutter.join()
