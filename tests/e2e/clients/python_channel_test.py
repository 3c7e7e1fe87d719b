"""The calls of the package `linnet`: retries, balancing and tokens.

A fake server does what a real one does rarely, such as asking for a retry delay.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from concurrent import futures

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from python_package import ROOT, english, wait_until


class FakeServer:
    """Answers call number n, from 1, with the error that `behave(n)` returns, or with success."""

    def __init__(
        self, linnet, behave=lambda number: None, address: str = "127.0.0.1:0", options=()
    ):
        from linnet.v1 import text_service_pb2_grpc

        fake = self
        self.calls: list[float] = []
        self.tokens: list[str] = []
        self.request_ids: list[str] = []
        self.parts = 0  # of a stream, each of which waits for `released`
        self.released = threading.Event()
        self.behave = behave

        class Service(text_service_pb2_grpc.TextServiceServicer):
            def Translate(self, request, context):
                fake.take(context)
                return linnet.TranslateResponse()

            def TranslateDocument(self, requests, context):
                fake.take(context)
                yield linnet.v1.text_service_pb2.TranslateDocumentResponse()

            def StreamTranslate(self, request, context):
                fake.take(context)
                answer = linnet.v1.text_service_pb2.StreamTranslateResponse
                for _ in range(fake.parts):
                    yield answer(part=linnet.TextPart(text="a"))
                    fake.released.wait(30)
                yield answer(response=linnet.TranslateResponse())

        self.health = health.HealthServicer()
        self.server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
        text_service_pb2_grpc.add_TextServiceServicer_to_server(Service(), self.server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        self.set_serving(True)
        self.address = f"127.0.0.1:{self.server.add_insecure_port(address)}"
        self.server.start()

    def take(self, context) -> None:
        self.calls.append(time.monotonic())
        headers = dict(context.invocation_metadata())
        self.tokens.append(headers.get("authorization", ""))
        self.request_ids.append(headers.get("x-request-id", ""))
        error = self.behave(len(self.calls))
        if error:
            code, trailers = error
            context.set_trailing_metadata(trailers)
            context.abort(code, "as told")

    def set_serving(self, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING
        if not serving:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        self.health.set("linnet.v1.TextService", status)


@pytest.fixture
def fake(linnet):
    fakes = []

    def make(*arguments, **named) -> FakeServer:
        fakes.append(FakeServer(linnet, *arguments, **named))
        return fakes[-1]

    yield make
    for each in fakes:
        each.released.set()
        each.server.stop(None)


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


def test_does_not_retry_a_document(linnet, fake):
    server = fake(lambda number: (grpc.StatusCode.UNAVAILABLE, ()))
    with linnet.Client(server.address) as client, pytest.raises(linnet.LinnetError):
        list(client.translate_document(english(linnet), ["a", "b"]))
    assert len(server.calls) == 1


def test_does_not_retry_against_the_servers_wish(linnet, fake):
    server = fake(lambda number: busy(-1))
    with linnet.Client(server.address) as client, pytest.raises(linnet.LinnetError):
        client.translate(english(linnet, "a"))
    assert len(server.calls) == 1
    willing = fake(lambda number: busy(1))
    once = linnet.Options(willing.address, retry=linnet.Retry(1))
    with linnet.Client(once) as client, pytest.raises(linnet.LinnetError):
        client.translate(english(linnet, "a"))
    assert len(willing.calls) == 1


@pytest.mark.parametrize("code", ["INTERNAL", "CANCELLED", "DEADLINE_EXCEEDED"])
def test_does_not_retry_calls_that_failed_a_server(linnet, fake, code):
    code = getattr(grpc.StatusCode, code)
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


def test_one_attempt_asks_no_other_server(linnet, fake):
    servers = [fake(too_close), fake(too_close)]
    addresses = ",".join(server.address for server in servers)
    too_busy = pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE")
    options = linnet.Options(addresses, retry=linnet.Retry(max_attempts=1))
    with linnet.Client(options) as client, too_busy:
        client.translate(english(linnet, "a"))
    assert sum(len(server.calls) for server in servers) == 1


def test_does_not_retry_at_the_only_server(linnet, fake):
    server = fake(too_close)
    too_busy = pytest.raises(linnet.LinnetError, match="DEADLINE_TOO_CLOSE")
    with linnet.Client(server.address) as client, too_busy:
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


def test_all_first_calls_wait_for_a_starting_server(linnet, fake):
    probe = fake()
    address = probe.address
    probe.server.stop(None).wait()
    options = linnet.Options(address, wait=30, retry=linnet.Retry(max_attempts=1))

    async def ask() -> None:
        async with linnet.AsyncClient(options) as client:
            calls = [client.translate(english(linnet, "a")) for _ in range(2)]
            calls.append(client.stream_translate(english(linnet, "a")).response())
            given_up = asyncio.ensure_future(client.translate(english(linnet, "a")))
            asyncio.get_running_loop().call_later(0.05, given_up.cancel)
            await asyncio.gather(*calls)
            with pytest.raises(asyncio.CancelledError):
                await given_up

    def ask_from_threads() -> None:
        with linnet.Client(options) as client, futures.ThreadPoolExecutor(3) as threads:
            list(threads.map(client.translate, [english(linnet, "a")] * 3))

    for call in (ask_from_threads, lambda: asyncio.run(ask())):
        started: list[FakeServer] = []

        def start(started=started) -> None:
            started.append(fake(address=address))

        starting = threading.Timer(0.3, start)
        starting.start()
        call()
        starting.join()
        assert len(started[0].calls) == 3
        started[0].server.stop(None).wait()


class Starting(health_pb2_grpc.HealthServicer):
    """A proxy whose server is starting: the first `times` health checks find none."""

    def __init__(self, times: int):
        self.times = times
        self.checks = 0
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        health_pb2_grpc.add_HealthServicer_to_server(self, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def Check(self, request, context):
        self.checks += 1
        if self.checks <= self.times:
            context.abort(grpc.StatusCode.UNAVAILABLE, "no server is available")
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.parametrize(("times", "wait"), [(2, 30), (1000, 2)])
def test_waits_for_a_starting_server_behind_a_proxy(times, wait, linnet):
    async def ask(options) -> None:
        async with linnet.AsyncClient(options) as client:
            await client.translate(english(linnet, "a"))

    def ask_blocking(options) -> None:
        with linnet.Client(options) as client:
            client.translate(english(linnet, "a"))

    for call in (ask_blocking, lambda options: asyncio.run(ask(options))):
        proxy = Starting(times)
        options = linnet.Options(proxy.address, wait=wait, retry=linnet.Retry(max_attempts=1))
        # The proxy has no translator: this shows that the call was made.
        with pytest.raises(linnet.LinnetError, match="UNIMPLEMENTED"):
            call(options)
        assert proxy.checks == times + 1 if times == 2 else proxy.checks >= 2
        proxy.server.stop(None)


@pytest.mark.parametrize("end", ["cancel", "close"])
@pytest.mark.parametrize("behind_a_proxy", [False, True])
def test_ended_client_does_not_wait_for_a_starting_server(linnet, end, behind_a_proxy):
    proxy = Starting(1_000_000)
    if not behind_a_proxy:
        proxy.server.stop(None).wait()
    options = linnet.Options(proxy.address, wait=600, timeout=600)
    client = linnet.Client(options)
    with futures.ThreadPoolExecutor(1) as threads:
        call = threads.submit(client.translate, english(linnet, "a"))
        if behind_a_proxy:
            wait_until(lambda: proxy.checks > 1)
        else:
            wait_until(lambda: client._calls)
        getattr(client, end)()
        assert isinstance(call.exception(60), linnet.LinnetError)
    with pytest.raises(linnet.LinnetError):
        client.translate(english(linnet, "a"))

    async def closed() -> BaseException:
        client = linnet.AsyncClient(options)
        call = asyncio.ensure_future(client.translate(english(linnet, "a")))
        checks = proxy.checks
        if behind_a_proxy:
            await asyncio.to_thread(wait_until, lambda: proxy.checks > checks)
        else:
            await asyncio.sleep(0.1)
        await client.close()
        (error,) = await asyncio.gather(call, return_exceptions=True)
        return error

    assert isinstance(asyncio.run(closed()), linnet.LinnetError)
    proxy.server.stop(None)


def is_cancelled(linnet, error: BaseException) -> bool:
    return isinstance(error, linnet.LinnetError) and error.code == grpc.StatusCode.CANCELLED


def test_closing_an_asyncio_client_fails_its_calls(linnet, fake):
    """They raise LinnetError: CancelledError would end the task that catches LinnetError."""
    server = fake(lambda number: server.released.wait(30) and None)

    async def run() -> list[BaseException]:
        client = linnet.AsyncClient(server.address)
        calls = [client.translate(english(linnet, "a")), client.translate(["a"], to="de")]
        calls.append(client.stream_translate(english(linnet, "a")).response())
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.to_thread(wait_until, lambda: len(server.calls) == 3)
        await client.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    errors = asyncio.run(run())
    assert all(is_cancelled(linnet, error) for error in errors), errors


def test_error_of_a_deadline_names_the_server_and_the_timeout(linnet, fake):
    server = fake(lambda number: server.released.wait(30) and None)
    message = f"no answer from {server.address} within 0.25 s: allow more time or send less text"

    async def asynchronous() -> list[BaseException]:
        async with linnet.AsyncClient(linnet.Options(server.address, timeout=0.25)) as client:
            calls = [client.translate(english(linnet, "a"))]
            calls.append(client.stream_translate(english(linnet, "a")).response())
            return await asyncio.gather(*calls, return_exceptions=True)

    errors = asyncio.run(asynchronous())
    with linnet.Client(server.address) as client:
        for call in (
            lambda: client.translate(english(linnet, "a"), timeout=0.25),
            lambda: client.stream_translate(english(linnet, "a"), timeout=0.25).response(),
        ):
            with pytest.raises(linnet.LinnetError) as raised:
                call()
            errors.append(raised.value)
    assert [error.message for error in errors] == [message] * 4
    assert {error.code for error in errors} == {grpc.StatusCode.DEADLINE_EXCEEDED}


@pytest.mark.parametrize("ended", ["call", "task"])
def test_call_after_a_failed_task_group_ends_like_any_other(linnet, fake, ended):
    """A TaskGroup cancels the task that it fails in, and Python 3.11 keeps counting that."""
    server = fake(lambda number: server.released.wait(30) and None)

    async def fail() -> None:
        await asyncio.sleep(0.01)  # the group waits for it
        raise ValueError

    async def use(client) -> None:
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        await client.translate(english(linnet, "a"))

    async def run() -> BaseException:
        async with linnet.AsyncClient(server.address) as client:
            task = asyncio.ensure_future(use(client))
            await asyncio.to_thread(wait_until, lambda: len(server.calls) == 1)
            if ended == "task":
                task.cancel()
            else:
                await client.close()
            (error,) = await asyncio.gather(task, return_exceptions=True)
            return error

    error = asyncio.run(run())
    if ended == "task":
        assert isinstance(error, asyncio.CancelledError)
    else:
        assert is_cancelled(linnet, error)


def test_response_of_a_stream_left_early_is_an_error(linnet, fake):
    server = fake()
    server.parts = 1

    async def run() -> None:
        async with linnet.AsyncClient(server.address) as client:
            stream = client.stream_translate(english(linnet, "a"))
            async for _ in stream:
                break
            await stream.response()

    with pytest.raises(linnet.LinnetError) as raised:
        asyncio.run(run())
    assert is_cancelled(linnet, raised.value)
    with linnet.Client(server.address) as client:
        stream = client.stream_translate(english(linnet, "a"))
        for _ in stream:
            break
        with pytest.raises(linnet.LinnetError) as raised:
            stream.response()
    assert is_cancelled(linnet, raised.value)


def test_token_file_is_reread_after_a_change(linnet, fake, tmp_path):
    server = fake()
    token = tmp_path / "token"
    with pytest.raises(linnet.LinnetError, match="cannot read the token"):
        linnet.Client(linnet.Options(server.address, token_file=token))
    token.write_text(" \n")
    with pytest.raises(linnet.LinnetError, match="holds no token"):
        linnet.Client(linnet.Options(server.address, token_file=token))
    token.write_text("first\n")
    with linnet.Client(linnet.Options(server.address, token_file=token)) as client:
        client.translate(english(linnet, "a"))
        token.write_text("the second\n")
        client.translate(english(linnet, "a"))
        for cannot_be_sent in ("", "two\nlines", "a\tb"):
            token.write_text(cannot_be_sent)
            client.translate(english(linnet, "a"))
        token.unlink()
        client.translate(english(linnet, "a"))
    assert server.tokens == ["Bearer first", *["Bearer the second"] * 5]


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("localhost:1", True),
        ("127.0.0.2:1", True),
        ("[::1]:1", True),
        ("unix:linnet.sock", True),
        ("127.0.0.1:1,127.0.0.1:2", True),
        ("127.0.0.1:1,10.0.0.1:2", False),
        ("127.0.0.1.attacker.example:50051", False),
        ("localhost.attacker.example:1", False),
        ("unix.attacker.example:1", False),
    ],
)
def test_token_is_sent_in_plain_text_to_this_machine_alone(linnet, tmp_path, server, here):
    if here:
        linnet.Options(server, token_file=tmp_path / "token")
        return
    with pytest.raises(linnet.LinnetError, match="in plain text"):
        linnet.Options(server, token_file=tmp_path / "token")


ONE = "is not HOST:PORT with a port of 1 to 65535, as in 127.0.0.1:50051 or [::1]:50051"
LIST = "are not all IPv4:PORT, nor all [IPv6]:PORT; names are resolved by dns:///HOST:PORT"
PORTS = "… with ports of 1 to 65535, as in "


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("127.0.0.1:111587", ONE),
        ("127.0.0.1:0", ONE),
        ("nonsense", ONE),
        ("", ONE),
        (":50051", ONE),
        ("::1:50051", ONE),
        ("h:5005\u0661", ONE),
        ("a,b", LIST),
        ("127.0.0.1:1,[::1]:1", LIST),
        ("127.0.0.1:1,example.org:1", LIST),
        ("[::1]:1,[fe80::x]:1", LIST),
        ("dns:///translate.example:65536", f"is not dns:{PORTS}"),
        ("dns:///:50051", f"is not dns:{PORTS}"),
        ("ipv4:127.0.0.1:1,127.0.0.1:111587", f"is not ipv4:{PORTS}"),
        ("ipv4:127.0.0.1", f"is not ipv4:{PORTS}"),
        ("ipv6:[::1]", f"is not ipv6:{PORTS}"),
        ("dns:///one.example:1,other.example:2", "has a comma"),
        ("unix:/run/a,b", "has a comma"),
    ],
)
def test_address_without_a_valid_port_is_rejected(linnet, linnet_binary, server, message):
    with pytest.raises(linnet.LinnetError) as raised:
        linnet.Options(server=server)
    assert message in raised.value.message
    command = [linnet_binary, "health", "--server", server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"linnet health: {raised.value.message}\n"), "C++ says the same"


@pytest.mark.parametrize(
    "server",
    [
        *("[::1]:50051", "localhost:65535", "127.0.0.1:1,127.0.0.2:2", "[::1]:1,[::2]:2"),
        *("dns:///translate.example:1", "dns:translate.example", "dns://[::1]:53/a.example:50051"),
        *("dns:///[::1]", "dns:///2001:db8::1", "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:50051"),
        *("unix:/run/linnet", "unix-abstract:linnet", "xds:///linnet"),
    ],
)
def test_address_of_every_form_is_accepted(linnet, server):
    assert linnet.Options(server=server).server == server


def test_rejects_invalid_options(linnet):
    for options in (
        {"retry": linnet.Retry(max_attempts=6)},
        {"retry": linnet.Retry(initial_backoff=3.0)},
        {"timeout": 0},
    ):
        with pytest.raises(linnet.LinnetError, match=r"max_attempts|back-off|timeout"):
            linnet.Options(**options)
