"""The stream of the blocking client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from .connection import Connection
from .errors import LinnetError, no_response
from .v1 import text_service_pb2 as api

Response = TypeVar("Response", covariant=True)


class Stream(Generic[Response]):
    """Iterates over the parts of a text as they become stable: the concatenated parts of a content
    are its text. `response()` returns the whole response. After an error, discard the parts."""

    def __init__(
        self,
        connection: Connection,
        method: Callable[..., Any],
        request: Any,
        timeout: float | None,
        request_id: str,
    ):
        self._connection = connection
        self._begin = connection.starter(method, request, request_id)
        self._timeout = connection.limit(timeout)
        connection.wait()
        self._attempts = connection.attempts(request, self._timeout)
        self._call = self._begin(self._timeout)
        connection.add(self._call)  # also where its parts are read later, or never
        self._response: Response | None = None

    def __iter__(self) -> Iterator[api.TextPart]:
        has_begun = False
        while True:
            try:
                for part in self._parts():
                    has_begun = True
                    yield part
                return
            except LinnetError as error:
                if has_begun:
                    raise
                self._connection.pause(self._attempts, error)
            self._call = self._begin(self._attempts.left())

    def _parts(self) -> Iterator[api.TextPart]:
        with self._connection.in_flight(self._call, self._timeout):
            for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part

    def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response
