"""The stream of the client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from .async_connection import AsyncConnection, error_of, in_flight
from .errors import LinnetError, no_response
from .v1 import text_service_pb2 as api

Response = TypeVar("Response", covariant=True)


class AsyncStream(Generic[Response]):
    """The asynchronous Stream: `async for part in stream`, then `await stream.response()`."""

    def __init__(
        self,
        connection: AsyncConnection,
        method: Callable[..., Any],
        request: Any,
        timeout: float | None,
        request_id: str,
    ):
        self._connection = connection
        self._begin = connection.starter(method, request, request_id)
        self._timeout = connection.limit(timeout)
        self._request = request
        self._call: Any = None
        self._response: Response | None = None
        if connection.has_waited():
            self._start()

    def _start(self) -> None:
        self._attempts = self._connection.attempts(self._request, self._timeout)
        self._call = self._begin(self._timeout)

    async def __aiter__(self) -> AsyncIterator[api.TextPart]:
        if self._call is None:
            await self._connection.wait()
            self._start()
        has_begun = False
        while True:
            try:
                async for part in self._parts():
                    has_begun = True
                    yield part
                return
            except LinnetError as error:
                if has_begun:
                    raise
                await self._connection.pause(self._attempts, error)
            self._call = self._begin(self._attempts.left())

    async def _parts(self) -> AsyncIterator[api.TextPart]:
        async with in_flight(self._call, self._connection.options, self._timeout):
            async for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part
            # grpc.aio raises the error in the first loop over a call; another one just ends.
            if error := await error_of(self._call):
                raise error

    async def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            async for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response
