"""The stream of the client for asyncio. The build makes stream.py, that of the blocking client, of
this file: see setup.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from .async_connection import AsyncConnection
from .errors import LinnetError, no_response
from .v1 import text_service_pb2 as api

Response = TypeVar("Response", covariant=True)


class AsyncStream(Generic[Response]):
    """Iterates over the parts of a text as they become stable: the concatenated parts of a content
    are its text. `response()` returns the whole response. After an error, discard the parts."""

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
        if connection.may_begin():
            self._start()

    def _start(self) -> None:
        self._attempts = self._connection.attempts(self._request, self._timeout)
        self._call = self._begin(self._timeout)
        self._connection.add(self._call)  # also where its parts are read later, or never

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
        async with self._connection.in_flight(self._call, self._timeout):
            while (message := await self._connection.read(self._call)) is not None:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part
            await self._connection.check_end(self._call)

    async def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            async for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response
