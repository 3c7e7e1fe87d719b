"""The connection of the blocking client: its channels, and the life of the calls over them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from grpc_health.v1 import health_pb2

from . import addresses
from . import channel as shared
from .document import Document, LinesOfCall
from .errors import LinnetError
from .grpc_errors import convert
from .options import Options
from .retries import Attempts
from .v1.text_service_pb2_grpc import TextServiceStub

Answer = TypeVar("Answer")


class _CallInFlight:
    """Cancels a call that is abandoned before its end, and converts grpc's errors to ours."""

    def __init__(
        self,
        connection: Connection,
        call: Any,
        timeout: float | None = None,
        document: Document | None = None,
    ):
        self._connection, self._call = connection, call
        self._timeout, self._document = timeout, document

    def __enter__(self) -> None:
        self._connection.add(self._call)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.remove(self._call)
        if kind is not None:
            self._call.cancel()
        if isinstance(error, grpc.RpcError) and self._document and self._document.error:
            raise self._document.error from None
        if isinstance(error, grpc.RpcError):
            raise convert(error, self._connection.options, self._timeout) from error
        if isinstance(error, grpc.FutureCancelledError):
            raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error


class _Ready:
    """The future of a connection; gRPC's own fails if it is cancelled twice."""

    def __init__(self, channel: grpc.Channel):
        self._future = grpc.channel_ready_future(channel)
        self._lock = threading.Lock()

    def cancel(self) -> None:
        with self._lock:
            if not self._future.done():
                self._future.cancel()

    def result(self, timeout: float) -> None:
        self._future.result(timeout)


class Connection(shared.CallStarter):
    """The channels of a Client and the calls over them. Thread-safe."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._channel = self._connect(health=True)
        self.text = TextServiceStub(self._channel)
        # A balanced channel skips servers that are not serving, so health checks need another one.
        balanced = options.is_balanced()
        self._health_channel = self._connect(health=False) if balanced else self._channel
        self.check = self._health_channel.unary_unary(
            shared.HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        self._lock = threading.Lock()
        # gRPC cancels a call that nobody holds any more, as that of a stream that was never read.
        self._calls: weakref.WeakSet[Any] = weakref.WeakSet()
        self._cancelled = threading.Event()
        self._waiting = threading.Lock()
        self._waited = options.wait == 0

    def _connect(self, health: bool) -> grpc.Channel:
        name = addresses.target(self.options.server)
        arguments = shared.arguments(self.options, health)
        secret = shared.credentials(self.options)
        if secret is None:
            return grpc.insecure_channel(name, options=arguments)
        return grpc.secure_channel(name, secret, options=arguments)

    def close(self) -> None:
        self.cancel()
        self._channel.close()
        self._health_channel.close()

    def cancel(self) -> None:
        """Cancels every call, in flight or future. Thread-safe."""
        with self._lock:
            self._cancelled.set()
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    @staticmethod
    def read(call: Any) -> Any:
        """The next message of a call, None after the last one."""
        return next(call, None)

    def add(self, call: Any) -> None:
        """From now on, `cancel` cancels the call."""
        with self._lock:
            self._calls.add(call)
            if self._cancelled.is_set():
                call.cancel()

    def remove(self, call: Any) -> None:
        with self._lock:
            self._calls.discard(call)

    def in_flight(
        self, call: Any, timeout: float | None = None, document: Document | None = None
    ) -> _CallInFlight:
        return _CallInFlight(self, call, timeout, document)

    def wait(self) -> None:
        """Waits once, all first calls together, for a server that is starting; the call itself
        then reports any error. The timeout of a call begins after that."""
        if self._waited:
            return
        with self._waiting:
            if self._waited or self._cancelled.is_set():
                return
            end = time.monotonic() + self.options.wait
            ready = _Ready(self._channel)
            # LinnetError: it was cancelled. ValueError: the channel is closed.
            with suppress(grpc.FutureTimeoutError, LinnetError, ValueError):
                with self.in_flight(ready):
                    ready.result(timeout=self.options.wait)
                self._retries.reached = True
                self._wait_behind_proxy(end)
            self._waited = True

    def may_begin(self) -> bool:
        """True, after the wait for a server that is starting."""
        self.wait()
        return True

    def check_end(self, call: Any) -> None:
        """Nothing: a loop over the messages of a call raises its error, also a second one."""

    def _wait_behind_proxy(self, end: float) -> None:
        """Checks the health until it is not a proxy that answers, for a server that is starting."""
        request = health_pb2.HealthCheckRequest()
        while not self._cancelled.is_set():
            left = end - time.monotonic()
            call = self.check.future(request, timeout=left, metadata=self._headers.of(""))
            try:
                self._answer(call, left)
                return
            except LinnetError as error:
                if not shared.is_starting(error) or left < shared.WAIT_INTERVAL:
                    return
            self._cancelled.wait(shared.WAIT_INTERVAL)

    def unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        begin, limit = self.starter(method.future, request, request_id), self.limit(timeout)
        self.wait()
        attempts = self.attempts(request, limit)
        while True:
            try:
                answer: Answer = self._answer(begin(attempts.left()), limit)
            except LinnetError as error:
                self.pause(attempts, error)
            else:
                attempts.succeeded()
                return answer

    def _answer(self, call: Any, timeout: float) -> Any:
        with self.in_flight(call, timeout):
            return call.result()

    def pause(self, attempts: Attempts, error: LinnetError) -> None:
        """Waits for the next attempt of a call. Raises `error` if there is none."""
        if self._cancelled.wait(attempts.delay(error)):
            raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error

    def results(
        self, method: Callable[..., Any], document: Document, request_id: str
    ) -> Iterator[tuple[int, Any]]:
        """The results of a document's lines. If the connection ends, the next call continues from
        the first line without a result."""
        own_id = shared.check_request_id(request_id) or shared.new_request_id()
        self.wait()
        attempts = Attempts.of_document(self._retries)
        while True:
            lines = LinesOfCall()
            call = self._started(method, document.messages(lines), None, own_id)
            try:
                with self.in_flight(call, document=document):
                    for result in call:
                        attempts.progressed()
                        document.answer(result.sequence_id)
                        failed = result.HasField("error")
                        answer = LinnetError(result.error) if failed else result.response
                        yield result.sequence_id, answer
                return
            except LinnetError as error:
                if document.is_answered():
                    return
                self.pause(attempts, error)
            finally:
                document.end(lines)


class ClientLife:
    """The options and the connection of a Client."""

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._connection = Connection(self.options)
        self._text = self._connection.text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the calls in flight and closes the connection."""
        self._connection.close()

    def cancel(self) -> None:
        """Cancels every call, in flight or future. Thread-safe."""
        self._connection.cancel()
