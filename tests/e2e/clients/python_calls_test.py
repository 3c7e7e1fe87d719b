"""The life of a call of the package `linnet`: waiting for a server, deadlines and cancellation."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from concurrent import futures

import grpc
import pytest
from fake_server import FakeServer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from malloc import used_bytes
from python_package import english, wait_until


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
            wait_until(lambda: client._connection._calls)
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


def test_wrong_argument_does_not_wait_for_a_server(linnet):
    """The wait would last until the test fails."""
    options = linnet.Options("127.0.0.1:1", wait=24 * 3600)
    request = english(linnet, "a")

    async def asynchronous() -> None:
        async with linnet.AsyncClient(options) as client:
            for wrong in ({"request_id": "a b"}, {"timeout": 0}):
                with pytest.raises(linnet.LinnetError, match=r"request id|timeout"):
                    await client.translate(request, **wrong)
            with pytest.raises(linnet.LinnetError, match="request id"):
                await anext(client.translate_document(request, ["a"], request_id="a b"))

    asyncio.run(asynchronous())
    with linnet.Client(options) as client:
        for wrong in ({"request_id": "a b"}, {"timeout": 0}):
            with pytest.raises(linnet.LinnetError, match=r"request id|timeout"):
                client.translate(request, **wrong)
        with pytest.raises(linnet.LinnetError, match="request id"):
            next(client.translate_document(request, ["a"], request_id="a b"))


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


def test_cancel_ends_a_stream_that_nobody_reads(linnet, fake):
    server = fake()
    server.parts = 1
    with linnet.Client(server.address) as client:
        stream = client.stream_translate(english(linnet, "a"), timeout=300)
        wait_until(lambda: server.calls)
        assert not server.ended.is_set()
        client.cancel()
        assert server.ended.wait(30)
        with pytest.raises(linnet.LinnetError) as raised:
            stream.response()
    assert is_cancelled(linnet, raised.value)


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


def test_error_of_a_document_is_the_one_that_the_server_gave(linnet, fake):
    """grpc.aio replaced it by INTERNAL where lines were written after the end of the call."""
    server = fake(lambda number: (grpc.StatusCode.NOT_FOUND, ()))
    lines = ["a"] * 100

    async def errors_of_documents() -> list[str]:
        errors = []
        async with linnet.AsyncClient(server.address) as client:
            for _ in range(20):
                with pytest.raises(linnet.LinnetError) as raised:
                    async for _result in client.translate_document(english(linnet), lines):
                        pass
                errors.append(str(raised.value))
        return errors

    assert asyncio.run(errors_of_documents()) == ["NOT_FOUND: as told"] * 20


def test_response_of_a_stream_that_failed_raises_its_error(linnet, fake):
    server = fake(lambda number: (grpc.StatusCode.INTERNAL, ()))

    async def asynchronous() -> list[BaseException]:
        async with linnet.AsyncClient(server.address) as client:
            stream = client.stream_translate(english(linnet, "a"))
            calls = [stream.response() for _ in range(2)]
            with pytest.raises(linnet.LinnetError, match="INTERNAL: as told"):
                async for _ in stream:
                    pass
            return [(await asyncio.gather(call, return_exceptions=True))[0] for call in calls]

    errors = asyncio.run(asynchronous())
    with linnet.Client(server.address) as client:
        stream = client.stream_translate(english(linnet, "a"))
        with pytest.raises(linnet.LinnetError, match="INTERNAL: as told"):
            list(stream)
        for _ in range(2):
            with pytest.raises(linnet.LinnetError) as raised:
                stream.response()
            errors.append(raised.value)
    assert [str(error) for error in errors] == ["INTERNAL: as told"] * 4


def test_too_large_request_is_no_reply_where_both_limits_are_equal(linnet, fake):
    server = fake(options=[("grpc.max_receive_message_length", 200)])
    options = linnet.Options(server.address, max_reply_bytes=200)
    request = english(linnet, "a" * 300)

    async def asynchronous() -> None:
        async with linnet.AsyncClient(options) as client:
            await client.translate(request)

    with linnet.Client(options) as client:
        for call in (
            lambda: client.translate(request),
            lambda: client.stream_translate(request).response(),
            lambda: asyncio.run(asynchronous()),
        ):
            with pytest.raises(linnet.LinnetError, match="the request has") as raised:
                call()
            assert raised.value.reason == "MESSAGE_TOO_LARGE"
            assert raised.value.metadata["maxBytes"] == "200"


@pytest.mark.parametrize("details", [b"", b"\xff", b"\x12\x02no"])
def test_error_with_damaged_details_has_its_code_and_message(linnet, fake, details):
    """Bytes of which none, or not all, have arrived can still be a message, with the code 0."""
    trailers = (("grpc-status-details-bin", details),)
    server = fake(lambda number: (grpc.StatusCode.NOT_FOUND, trailers))
    with linnet.Client(server.address) as client, pytest.raises(linnet.LinnetError) as raised:
        client.translate(english(linnet, "a"))
    assert raised.value.code == grpc.StatusCode.NOT_FOUND
    assert str(raised.value) == "NOT_FOUND: as told"


def test_failed_document_takes_no_more_lines(linnet, fake):
    """A line that is taken after the error is lost to a second try with the same lines."""
    server = fake(lambda number: (grpc.StatusCode.NOT_FOUND, ()))

    async def run() -> None:
        async def lines():
            await asyncio.Event().wait()
            yield "a"

        async with linnet.AsyncClient(server.address) as client:
            with pytest.raises(linnet.LinnetError, match="NOT_FOUND: as told"):
                async for _ in client.translate_document(english(linnet), lines()):
                    pass
            async with asyncio.timeout(30):
                while len(asyncio.all_tasks()) > 1:  # one of them waits for a line
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_cancelled_calls_leave_no_memory(linnet):
    """grpc.aio leaks a kilobyte for each call whose own task is cancelled."""

    async def cancelled(client, count: int) -> int:
        """The bytes of malloc that are in use after so many cancelled calls."""
        for _ in range(count):
            call = asyncio.create_task(client.translate(english(linnet, "a")))
            await asyncio.sleep(0.001)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        return used_bytes()

    async def run() -> int:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with linnet.AsyncClient(linnet.Options(address, wait=0)) as client:
            before = await cancelled(client, 500)
            return await cancelled(client, 1000) - before

    with socket.create_server(("127.0.0.1", 0)) as silent:
        grown = asyncio.run(run())
    assert grown < 400_000


def test_a_read_that_fails_after_it_was_left_is_not_reported(linnet):
    from linnet.async_connection import AsyncConnection

    class Call:
        def __init__(self) -> None:
            self.cancelled = asyncio.Event()

        async def read(self) -> None:
            await self.cancelled.wait()
            raise RuntimeError("as told")

        def _cancel(self, details: str) -> None:
            self.cancelled.set()

    reported: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        reading = asyncio.create_task(AsyncConnection(linnet.Options("127.0.0.1:1")).read(Call()))
        await asyncio.sleep(0)  # it begins
        await asyncio.sleep(0)  # the read begins
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        gc.collect()

    asyncio.run(run())
    assert not reported
