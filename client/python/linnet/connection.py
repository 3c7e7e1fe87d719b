"""The connection of the blocking client: its channels, and the life of the calls over them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

import grpc
from grpc_health.v1 import health_pb2

from . import addresses
from . import channel as shared
from .errors import LinnetError
from .options import Options
from .texts import check_text
from .v1.text_service_pb2_grpc import TextServiceStub

Answer = TypeVar("Answer")


class IteratorError:
    """Keeps the error that the caller's iterator raised in gRPC's thread, which would drop it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        try:
            for number, text in enumerate(lines):
                check_text(text, f"line {number}")
                yield text
        except GeneratorExit:
            raise
        except Exception as error:
            self.error = error
            raise
        except BaseException as error:  # KeyboardInterrupt, SystemExit
            self.error = error
            # gRPC's thread catches only Exception: another error would end the thread and leave the
            # call without an end.
            raise RuntimeError("iterator ended") from error


class _CallInFlight:
    """Cancels a call that is abandoned before its end, and converts grpc's errors to ours."""

    def __init__(
        self,
        connection: Connection,
        call: Any,
        timeout: float | None = None,
        failure: IteratorError | None = None,
    ):
        self._connection, self._call = connection, call
        self._timeout, self._failure = timeout, failure

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
        if isinstance(error, grpc.RpcError) and self._failure and self._failure.error:
            raise self._failure.error from None
        if isinstance(error, grpc.RpcError):
            raise LinnetError.of(error, self._connection.options, self._timeout) from error
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
        self._cancelled = False
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
            self._cancelled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def add(self, call: Any) -> None:
        """From now on, `cancel` cancels the call."""
        with self._lock:
            self._calls.add(call)
            if self._cancelled:
                call.cancel()

    def remove(self, call: Any) -> None:
        with self._lock:
            self._calls.discard(call)

    def in_flight(
        self, call: Any, timeout: float | None = None, failure: IteratorError | None = None
    ) -> _CallInFlight:
        return _CallInFlight(self, call, timeout, failure)

    def wait(self) -> None:
        """Waits once, all first calls together, for a server that is starting; the call itself
        then reports any error. The timeout of a call begins after that."""
        if self._waited:
            return
        with self._waiting:
            if self._waited or self._cancelled:
                return
            end = time.monotonic() + self.options.wait
            ready = _Ready(self._channel)
            # LinnetError: it was cancelled. ValueError: the channel is closed.
            with suppress(grpc.FutureTimeoutError, LinnetError, ValueError):
                with self.in_flight(ready):
                    ready.result(timeout=self.options.wait)
                self._wait_behind_proxy(end)
            self._waited = True

    def _wait_behind_proxy(self, end: float) -> None:
        """Checks the health until it is not a proxy that answers, for a server that is starting."""
        request = health_pb2.HealthCheckRequest()
        while not self._cancelled:
            left = end - time.monotonic()
            call = self.check.future(request, timeout=left, metadata=self._headers.of(""))
            try:
                self._answer(call, left)
                return
            except LinnetError as error:
                if not shared.is_starting(error) or left < shared.WAIT_INTERVAL:
                    return
            time.sleep(shared.WAIT_INTERVAL)

    def unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        begin, limit = self.starter(method.future, request, request_id), self.limit(timeout)
        self.wait()
        end = time.monotonic() + limit
        try:
            answer: Answer = self._answer(begin(limit), limit)
            return answer
        except LinnetError as error:
            left = shared.time_for_another_server(self.options, error, end)
            if not left:
                raise
        answer = self._answer(begin(left), limit)
        return answer

    def _answer(self, call: Any, timeout: float) -> Any:
        with self.in_flight(call, timeout):
            return call.result()

    def results(
        self,
        method: Callable[..., Any],
        messages: Iterator[Any],
        failure: IteratorError,
        request_id: str,
    ) -> Iterator[tuple[int, Any]]:
        """The results of a document's lines."""
        shared.check_request_id(request_id)
        self.wait()
        call = self._started(method, messages, None, request_id)
        with self.in_flight(call, failure=failure):
            for result in call:
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response
