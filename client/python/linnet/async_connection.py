"""The connection of the client for asyncio: its channels, and the life of the calls over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import Any, Self, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2

from . import addresses
from . import channel as shared
from .async_document import AsyncDocument
from .errors import LinnetError
from .grpc_errors import convert
from .options import Options
from .retries import Attempts
from .v1.text_service_pb2_grpc import TextServiceStub

Answer = TypeVar("Answer")


async def _error_of(call: Any) -> grpc.aio.AioRpcError | None:
    """The error with which a call of grpc.aio ended, if it did not end well."""
    code = await call.code()
    if code == grpc.StatusCode.OK:
        return None
    return grpc.aio.AioRpcError(
        code, await call.initial_metadata(), await call.trailing_metadata(), await call.details()
    )


class _EndOfCall:
    """Keeps the error with which a server ended a call of grpc.aio. A message that is written after
    that fails, and grpc.aio puts INTERNAL, "Internal error from Core", in the place of the server's
    error (grpc/grpc#36066)."""

    def __init__(self, call: Any) -> None:
        self.error: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._keep)

    def _keep(self, call: Any) -> None:
        # A task would read it later, perhaps too late. The call is done, so nothing is waited for.
        try:
            _error_of(call).send(None)
        except StopIteration as read:
            self.error = self.error or read.value


@asynccontextmanager
async def _in_flight(
    call: Any,
    options: Options,
    timeout: float | None = None,
    document: AsyncDocument | None = None,
) -> AsyncIterator[None]:
    """Cancels a call that is abandoned before its end, and converts grpc's errors to ours."""
    task = asyncio.current_task()
    # In Python 3.11, the end of a TaskGroup that fails leaves the task's cancellation counted.
    before = task.cancelling() if task else 0
    try:
        yield
    except (grpc.RpcError, asyncio.CancelledError) as error:
        if document is not None and document.error is not None:
            raise document.error from None
        if not isinstance(error, asyncio.CancelledError):
            raise convert(error, options, timeout) from error
        task = asyncio.current_task()
        if task is None or task.cancelling() > before:
            raise
        # Only the call was cancelled, by `close` or with a stream that is left early. To the task,
        # CancelledError would say that the task itself is to end.
        raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error
    finally:
        call.cancel()  # no effect after its end


class _Channels:
    """The channels of one event loop."""

    def __init__(self, options: Options, secret: grpc.ChannelCredentials | None):
        self.main = self._connect(options, secret, health=True)
        self.text: TextServiceStub = TextServiceStub(cast(Any, self.main))
        balanced = options.is_balanced()
        self.health = self._connect(options, secret, health=False) if balanced else self.main
        check: Any = self.health.unary_unary(
            shared.HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        self.check: grpc.UnaryUnaryMultiCallable[Any, health_pb2.HealthCheckResponse] = check
        self.closed = asyncio.Event()

    @staticmethod
    def _connect(
        options: Options, secret: grpc.ChannelCredentials | None, health: bool
    ) -> grpc.aio.Channel:
        name = addresses.target(options.server)
        arguments = shared.arguments(options, health)
        if secret is None:
            return grpc.aio.insecure_channel(name, options=arguments)
        return grpc.aio.secure_channel(name, secret, options=arguments)


class AsyncConnection(shared.CallStarter):
    """The channels of an AsyncClient and the calls over them. Belongs to the event loop of its
    first call: grpc.aio's channels cannot leave the loop in which they were made."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._secret = shared.credentials(options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: _Channels | None = None
        self._ready: asyncio.Future[None] | None = None

    @property
    def _channels(self) -> _Channels:
        """The channels, made at the first use. Raises LinnetError outside of their loop, where
        grpc.aio would raise a RuntimeError about futures and tasks, or hang."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise LinnetError.local(
                "an AsyncClient is used where no event loop runs: call it in a coroutine, as with "
                "asyncio.run(main()), or use Client",
                grpc.StatusCode.FAILED_PRECONDITION,
            ) from None
        if self._made is None:
            self._loop, self._made = loop, _Channels(self.options, self._secret)
        elif self._loop is not loop:
            raise LinnetError.local(
                "this AsyncClient belongs to another event loop, the one of its first call: create "
                "one in each loop; every asyncio.run has a loop of its own",
                grpc.StatusCode.FAILED_PRECONDITION,
            )
        return self._made

    @property
    def text(self) -> TextServiceStub:
        return self._channels.text

    @property
    def check(self) -> grpc.UnaryUnaryMultiCallable[Any, health_pb2.HealthCheckResponse]:
        return self._channels.check

    async def close(self) -> None:
        channels = self._channels
        channels.closed.set()
        await channels.main.close(None)
        await channels.health.close(None)

    def may_begin(self) -> bool:
        """True if no call needs to wait any more."""
        return self.options.wait == 0 or (self._ready is not None and self._ready.done())

    async def wait(self) -> None:
        """Waits once, all first calls together, for a server that is starting; the call itself
        then reports any error."""
        if self.may_begin():
            return
        if self._ready is None:
            self._ready = asyncio.ensure_future(self._wait_until_ready())
        await asyncio.shield(self._ready)  # cancelling one call leaves the others waiting

    async def _wait_until_ready(self) -> None:
        with suppress(TimeoutError, grpc.aio.UsageError):  # UsageError: the channel is closed
            async with asyncio.timeout(self.options.wait):
                await self._channels.main.channel_ready()
                self._retries.reached = True
                await self._wait_behind_proxy()

    async def _wait_behind_proxy(self) -> None:
        """Checks the health until it is not a proxy that answers, for a server that is starting."""
        request = health_pb2.HealthCheckRequest()
        while True:
            try:
                await self._answer(self.check(request, metadata=self._headers.of("")))
                return
            except LinnetError as error:
                if not shared.is_starting(error):
                    return
            await asyncio.sleep(shared.WAIT_INTERVAL)

    async def unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        begin, limit = self.starter(method, request, request_id), self.limit(timeout)
        await self.wait()
        attempts = self.attempts(request, limit)
        while True:
            try:
                answer: Answer = await self._answer(begin(attempts.left()), limit)
            except LinnetError as error:
                await self.pause(attempts, error)
            else:
                attempts.succeeded()
                return answer

    async def _answer(self, call: Any, timeout: float | None = None) -> Any:
        async with self.in_flight(call, timeout):
            try:
                # The task that a call of grpc.aio 1.85 has: for the call itself, shield would make
                # another one, which costs two turns of the loop.
                await asyncio.shield(getattr(call, "_call_response", call))
                return await call
            except asyncio.CancelledError:
                # grpc.aio 1.85 leaks a kilobyte for each call whose own task is cancelled, which
                # call.cancel() does as well. So the call alone is cancelled; its task then ends.
                call._cancel("cancelled by the caller")
                raise

    async def read(self, call: Any) -> Any:
        """The next message of a call, None after the last one. The read is a task, which ends with
        the call: grpc.aio 1.85 leaks what a read holds whose own task is cancelled."""
        reading = asyncio.ensure_future(call.read())
        try:
            message = await asyncio.shield(reading)
        except asyncio.CancelledError:
            call._cancel("cancelled by the caller")
            # It may fail yet, and asyncio reports an error that nobody has asked for.
            reading.add_done_callback(lambda it: it.cancelled() or it.exception())
            raise
        return None if message is grpc.aio.EOF else message

    def add(self, call: Any) -> None:
        """Nothing: closing the channels ends their calls."""

    def in_flight(
        self, call: Any, timeout: float | None = None, document: AsyncDocument | None = None
    ) -> AbstractAsyncContextManager[None]:
        return _in_flight(call, self.options, timeout, document)

    async def check_end(self, call: Any) -> None:
        """Raises the error of a call whose messages have been read: grpc.aio raises it in the first
        loop over a call, and another one just ends."""
        if error := await _error_of(call):
            raise error

    async def pause(self, attempts: Attempts, error: LinnetError) -> None:
        """Waits for the next attempt of a call. Raises `error` if there is none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(attempts.delay(error)):
                await self._channels.closed.wait()
        if self._channels.closed.is_set():
            raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error

    async def results(
        self, method: Callable[..., Any], document: AsyncDocument, request_id: str
    ) -> AsyncGenerator[tuple[int, Any]]:
        """The results of a document's lines. If the connection ends, the next call continues from
        the first line without a result."""
        own_id = shared.check_request_id(request_id) or shared.new_request_id()
        await self.wait()
        attempts = Attempts.of_document(self._retries)
        try:
            while True:
                try:
                    results = self._results_of_call(method, document, own_id)
                    async with aclosing(results):
                        async for number, answer in results:
                            attempts.progressed()
                            yield number, answer
                    return
                except LinnetError as error:
                    if document.is_answered():
                        return
                    await self.pause(attempts, error)
        finally:
            document.end()

    async def _results_of_call(
        self, method: Callable[..., Any], document: AsyncDocument, request_id: str
    ) -> AsyncGenerator[tuple[int, Any]]:
        writer: asyncio.Task[Any] | None = None

        async def written() -> AsyncIterator[Any]:
            nonlocal writer
            writer = asyncio.current_task()
            async for message in document.messages():
                yield message

        def stop_writing(_: object) -> None:
            if writer is not None:
                writer.cancel()

        call = self._started(method, written(), None, request_id)
        end = _EndOfCall(call)
        # Otherwise grpc.aio would wait for one more line of the caller after the server's error.
        call.add_done_callback(stop_writing)
        async with self.in_flight(call, document=document):
            try:
                while (result := await self.read(call)) is not None:
                    document.answer(result.sequence_id)
                    failed = result.HasField("error")
                    answer = LinnetError(result.error) if failed else result.response
                    yield result.sequence_id, answer
            except grpc.aio.AioRpcError as error:
                raise end.error or error from None


class AsyncClientLife:
    """The options and the connection of an AsyncClient."""

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._connection = AsyncConnection(self.options)

    @property
    def _text(self) -> TextServiceStub:
        return self._connection.text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels the calls in flight and closes the connection."""
        await self._connection.close()
