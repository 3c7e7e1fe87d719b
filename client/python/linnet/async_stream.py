"""The stream of the client for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from . import channel as shared
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
        self._call: Any = None
        self._response: Response | None = None
        if connection.has_waited():
            self._start()

    def _start(self) -> None:
        self._end = time.monotonic() + self._timeout
        self._call = self._begin(self._timeout)

    async def __aiter__(self) -> AsyncIterator[api.TextPart]:
        if self._call is None:
            await self._connection.wait()
            self._start()
        try:
            async for part in self._parts():
                yield part
            return
        except LinnetError as error:  # DEADLINE_TOO_CLOSE arrives before the first part
            left = shared.time_for_another_server(self._connection.options, error, self._end)
            if not left:
                raise
        self._call = self._begin(left)
        async for part in self._parts():
            yield part

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
