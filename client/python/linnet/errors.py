"""The exception that calls raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class LinnetError(Exception):
    """A failed call with the details of its error. All fields but `code` and `message` may be
    empty: an error that did not come from the server has no details."""

    def __init__(self, status: status_pb2.Status):
        self.code: grpc.StatusCode = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
        self.message: str = status.message
        self.reason = ""  # "TEXT_TOO_LONG": docs/ERRORS.md lists them
        self.metadata: Mapping[str, str] = {}  # the dynamic parts of the message
        self.field = ""  # the first invalid field: "contents[1]"
        self.retry_delay: float | None = None  # seconds; retry no earlier than after this delay
        self.request_id = ""  # the id of the call in the server's log
        for detail in status.details:
            info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
            retry, request = error_details_pb2.RetryInfo(), error_details_pb2.RequestInfo()
            if detail.Unpack(info):
                self.reason, self.metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad) and bad.field_violations:
                self.field = bad.field_violations[0].field
            elif detail.Unpack(retry):
                self.retry_delay = retry.retry_delay.ToNanoseconds() / 1e9
            elif detail.Unpack(request):
                self.request_id = request.request_id
        said = f"{self.code.name}: {self.message}"
        super().__init__(f"{said} ({self.reason})" if self.reason else said)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy, which would otherwise call __init__ with the text of the error: an
        executor of processes hands an error on in this way."""
        return type(self).__new__, (type(self), *self.args), vars(self)

    @classmethod
    def local(
        cls,
        message: str,
        code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT,
        *,
        field: str = "",
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> LinnetError:
        """An error that this side detects, before a call or in a reply."""
        status = status_pb2.Status(code=code.value[0], message=message)
        if reason:
            info = error_details_pb2.ErrorInfo(
                reason=reason, domain="linnet", metadata=metadata or {}
            )
            status.details.add().Pack(info)
        if field:
            violation = error_details_pb2.BadRequest.FieldViolation(
                field=field, description=message
            )
            status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
        return cls(status)

    def rename(self, old: str, new: str) -> None:
        """Replaces the name of the field in the error and in its message."""
        self.field = self.field.replace(old, new)
        self.message = self.message.replace(old, new)
        self.args = tuple(str(part).replace(old, new) for part in self.args)


def no_response() -> LinnetError:
    return LinnetError.local(
        "the server ended the stream without its response", grpc.StatusCode.INTERNAL
    )
