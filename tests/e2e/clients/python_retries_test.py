"""The calls of the package `linnet` at one or several servers: retries and balancing."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from python_package import ROOT, english, wait_until


def busy(pause_ms: int):
    trailers = (("grpc-retry-pushback-ms", str(pause_ms)),)
    return grpc.StatusCode.RESOURCE_EXHAUSTED, trailers


def test_retries_after_the_servers_delay(linnet, fake):
    server = fake(lambda number: busy(150) if number < 3 else None)
    with linnet.Client(server.address) as client:
        client.translate(english(linnet, "a"))
    assert len(server.calls) == 3
    # Without the server's delay the first retry would come within 120 ms at the latest.
    for before, after in zip(server.calls, server.calls[1:], strict=False):
        assert after - before >= 0.15


def test_retries_a_request_of_a_megabyte(linnet, fake):
    """gRPC keeps 256 KiB of a request by default, and does not retry a longer one."""
    unavailable = (grpc.StatusCode.UNAVAILABLE, ())
    server = fake(lambda number: unavailable if number < 2 else None)
    with linnet.Client(server.address) as client:
        client.translate(english(linnet, "a" * (1 << 20)))
    assert len(server.calls) == 2


def test_does_not_retry_a_request_that_is_too_long_for_a_server(linnet, fake):
    """Its code is RESOURCE_EXHAUSTED, as if a retry could help."""
    server = fake(lambda number: busy(1), options=[("grpc.max_receive_message_length", -1)])
    with linnet.Client(server.address) as client, pytest.raises(linnet.LinnetError):
        client.translate(english(linnet, "a" * (5 << 20)))
    assert len(server.calls) == 1


def test_one_attempt_means_no_retry(linnet, fake):
    server = fake(lambda number: busy(1))
    once = linnet.Options(server.address, retry=linnet.Retry(1))
    with linnet.Client(once) as client:
        with pytest.raises(linnet.LinnetError):
            client.translate(english(linnet, "a"))
        with pytest.raises(linnet.LinnetError):
            list(client.translate_document(english(linnet), ["a", "b"]))
    assert len(server.calls) == 2


def test_does_not_retry_a_deadline_of_the_server(linnet, fake):
    code = grpc.StatusCode.DEADLINE_EXCEEDED
    server = fake(lambda number: (code, ()) if number < 2 else None)
    with linnet.Client(server.address) as client, pytest.raises(linnet.LinnetError):
        client.translate(english(linnet, "a"))
    assert len(server.calls) == 1


@pytest.mark.parametrize("config", ["", "client_retries.json", "client_balances.json"])
def test_retries_stop_while_most_calls_fail(linnet, fake, config):
    """The library and the service configs for other clients have a budget of 50 retries."""
    from linnet.v1 import text_service_pb2_grpc

    server = fake(lambda number: (grpc.StatusCode.UNAVAILABLE, (("grpc-retry-pushback-ms", "1"),)))
    translate = linnet.Client(server.address).translate
    if config:
        text = (ROOT / "deploy/balancers" / config).read_text()
        channel = grpc.insecure_channel(server.address, [("grpc.service_config", text)])
        translate = text_service_pb2_grpc.TextServiceStub(channel).Translate
    for _ in range(30):
        with pytest.raises((linnet.LinnetError, grpc.RpcError)):
            translate(english(linnet, "a"))
    assert 50 <= len(server.calls) < 100  # 150 without the budget


def test_all_attempts_share_one_request_id(linnet, fake):
    server = fake(lambda number: busy(1) if number == 1 else None)
    with linnet.Client(server.address) as client:
        client.translate(english(linnet, "a"))
        client.translate(english(linnet, "a"))
    first, again, other = server.request_ids
    assert len(first) == 32
    assert first == again != other


def too_close(_: int):
    """The error of a server that cannot answer before the deadline."""
    code = grpc.StatusCode.DEADLINE_EXCEEDED
    status = status_pb2.Status(code=code.value[0], message="busy")
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason="DEADLINE_TOO_CLOSE", domain="linnet")
    )
    return code, (("grpc-status-details-bin", status.SerializeToString()),)


def test_retries_once_at_another_server_before_the_deadline(linnet, fake):
    servers = [fake(), fake()]
    with linnet.Client(",".join(server.address for server in servers)) as client:
        wait_until(lambda: client.translate(english(linnet, "a")) and all(s.calls for s in servers))
        servers[0].behave = too_close
        for _ in range(4):
            client.translate(english(linnet, "a"))
            assert list(client.stream_translate(english(linnet, "a"))) == []
        servers[1].behave = too_close
        before = sum(len(server.calls) for server in servers)
        with pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE"):
            client.translate(english(linnet, "a"))
        with pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE"):
            list(client.stream_translate(english(linnet, "a")))
        assert sum(len(server.calls) for server in servers) == before + 4

    async def with_aio():
        async with linnet.AsyncClient(",".join(s.address for s in servers)) as client:
            for _ in range(2):
                with pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE"):
                    await client.translate(english(linnet, "a"))
                with pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE"):
                    async for _part in client.stream_translate(english(linnet, "a")):
                        pass

    before = sum(len(server.calls) for server in servers)
    asyncio.run(with_aio())
    assert sum(len(server.calls) for server in servers) == before + 8


@pytest.mark.parametrize("streamed", [False, True])
def test_wait_for_a_server_leaves_the_time_to_try_another(linnet, fake, monkeypatch, streamed):
    """The timeout begins after the wait: it was used up where the wait took longer."""
    calls = []

    def first_is_refused(number: int):
        calls.append(number)
        return too_close(number) if len(calls) == 1 else None

    servers = [fake(first_is_refused), fake(first_is_refused)]
    addresses = ",".join(server.address for server in servers)
    waited = []
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + sum(waited))
    with linnet.Client(linnet.Options(addresses, wait=600, timeout=60)) as client:
        # This is the last thing of a wait.
        monkeypatch.setattr(
            client._connection, "_wait_behind_proxy", lambda end: waited.append(600)
        )
        if streamed:
            client.stream_translate(english(linnet, "a")).response()
        else:
            client.translate(english(linnet, "a"))
    assert (len(calls), waited) == (2, [600])


def test_one_attempt_asks_no_other_server(linnet, fake):
    servers = [fake(too_close), fake(too_close)]
    addresses = ",".join(server.address for server in servers)
    too_busy = pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE")
    options = linnet.Options(addresses, retry=linnet.Retry(max_attempts=1))
    with linnet.Client(options) as client, too_busy:
        client.translate(english(linnet, "a"))
    assert sum(len(server.calls) for server in servers) == 1


@pytest.mark.parametrize("form", ["{}", "ipv4:{}"])
def test_does_not_retry_at_the_only_server(linnet, fake, form):
    server = fake(too_close)
    too_busy = pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE")
    with linnet.Client(form.format(server.address)) as client, too_busy:
        client.translate(english(linnet, "a"))
    assert len(server.calls) == 1


def test_balances_calls_over_healthy_addresses(linnet, fake):
    servers = [fake() for _ in range(3)]
    servers[2].set_serving(False)
    addresses = ",".join(server.address for server in servers)
    with linnet.Client(addresses) as client:
        client.translate(english(linnet, "a"))
        # One connection may be established before the other.
        wait_until(
            lambda: client.translate(english(linnet, "a")) and all(s.calls for s in servers[:2])
        )
        before = [len(server.calls) for server in servers]
        for _ in range(20):
            client.translate(english(linnet, "a"))
        shares = [len(s.calls) - n for s, n in zip(servers, before, strict=True)]
        assert shares == [10, 10, 0]
        servers[0].set_serving(False)
        servers[2].set_serving(True)
        wait_until(lambda: client.translate(english(linnet, "a")) and servers[2].calls)

    async def run() -> None:
        async with linnet.AsyncClient(addresses) as client:
            for _ in range(20):
                await client.translate(english(linnet, "a"))

    count = len(servers[0].calls)
    asyncio.run(run())
    assert len(servers[0].calls) == count, "it still reports NOT_SERVING"
