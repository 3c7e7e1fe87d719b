"""Errors of the front end, and those of the server as HTTP statuses."""

from __future__ import annotations

import math
import re

import grpc
import linnet

NO_MODEL = "MODEL_NOT_FOUND"
# Reasons of the server (docs/ERRORS.md) that mean "send less", whatever their gRPC code is.
_TOO_LARGE = {
    "CALL_TOO_LARGE",
    "MESSAGE_TOO_LARGE",
    "REPLY_TOO_LARGE",
    "TEXT_TOO_LARGE",
    "TEXT_TOO_LONG",
    "TOO_MANY_SEGMENTS",
    "TOO_MANY_TEXTS",
}
_TEXT = re.compile(r"\bcontents\[(\d+)\]")
# UNIMPLEMENTED is 400: clients send every status from 500 up again.
_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class Problem(Exception):
    """A request that fails. Each face writes it in the form of its API.

    status       HTTP status
    message      for people: the value, the limit and the way out
    reason       for programs: a reason of docs/ERRORS.md, or one of this front end
    field        name of the invalid field, if one is to blame
    retry_after  seconds after which a retry may help; None: the server names none
    language     of a text for which the server has no model, if it was detected
    """

    def __init__(
        self,
        status: int,
        message: str,
        reason: str = "",
        *,
        field: str = "",
        retry_after: float | None = None,
        language: str = "",
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.field = field
        self.retry_after = retry_after
        self.language = language

    @classmethod
    def of(cls, error: linnet.LinnetError, timeout: float | None = None) -> Problem:
        """The problem of a call that had `timeout` seconds, or no deadline."""
        status = 413 if error.reason in _TOO_LARGE else _STATUS.get(error.code, 500)
        message = error.message
        if status == 429 and not error.reason:
            # gRPC's own: it calls a message over its limit exhausted, which clients would repeat.
            status, message = 413, "the request or its answer is too large: send less text at once"
        if status == 504 and timeout is not None:
            # The caller cannot set a deadline.
            is_busy = error.reason == "DEADLINE_TOO_CLOSE"
            message = (
                f"{'the server is busy and' if is_busy else 'the server'} cannot answer within the "
                f"{timeout:g} s of this front end: {'try again later, ' if is_busy else ''}send "
                "less text at once, or have its operator raise --timeout"
            )
        retry_after = error.retry_delay
        if status == 503 and not error.reason:
            # gRPC's own text names addresses of the network behind this front end.
            message = "the translation server cannot be reached: try again later"
            retry_after = 1.0
        language = error.metadata.get("name", "") if error.reason == NO_MODEL else ""
        return cls(
            status,
            message,
            error.reason,
            field=error.field,
            retry_after=retry_after,
            language=language,
        )

    def renumber(self, numbers: list[int]) -> None:
        """Gives the texts that it names their numbers in a list of which only some were sent."""

        def number(found: re.Match[str]) -> str:
            return f"contents[{numbers[int(found[1])]}]"

        self.message = _TEXT.sub(number, self.message)
        self.field = _TEXT.sub(number, self.field)

    def headers(self) -> dict[str, str]:
        """Retry-After has whole seconds."""
        if self.retry_after is None:
            return {}
        return {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


def missing(field: str) -> Problem:
    return Problem(400, f"{field} is missing", "MISSING", field=field)


def invalid(field: str, message: str) -> Problem:
    return Problem(400, f"{field} {message}", "BAD_FIELD", field=field)
