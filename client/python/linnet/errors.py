"""The exception that calls raise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

if TYPE_CHECKING:
    from .options import Options

# gRPC's "CLIENT: " is this side, for which a reply was too large; a server of any version says
# something else, or nothing, of a request.
_TOO_LARGE = re.compile(r"(CLIENT: )?Received message larger than max \((\d+) vs\. (\d+)\)")
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

    @classmethod
    def of(
        cls, error: grpc.RpcError, options: Options, timeout: float | None = None
    ) -> LinnetError:
        """Converts an exception of grpc or grpc.aio. `timeout` is that of the call, if it had
        one."""
        code, message = grpc.StatusCode.UNKNOWN, str(error)
        trailers: list[tuple[str, str | bytes]] = []
        if isinstance(error, grpc.Call | grpc.aio.AioRpcError):
            code, message = error.code() or code, error.details() or ""
            trailers = [(key, value) for key, value in error.trailing_metadata() or ()]
        for key, value in trailers:
            if key == "grpc-status-details-bin" and isinstance(value, bytes):
                # Code and message remain if a proxy has damaged the details, or cut them.
                with suppress(DecodeError):
                    status = status_pb2.Status.FromString(value)
                    status.code, status.message = code.value[0], message
                    return cls(status)
        too_large = _TOO_LARGE.search(message)
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED and too_large:
            return cls._too_large(int(too_large[2]), int(too_large[3]), is_reply=bool(too_large[1]))
        proxy = options.proxy()
        way = f"{options.server} through {proxy}" if proxy else options.server
        if code == grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
            message = (
                f"no answer from {way} within {timeout:g} s: allow more time or send less text"
            )
        elif code == grpc.StatusCode.UNAVAILABLE and proxy:
            message = (
                f"cannot reach {way}: {message}; does the proxy let it pass? With "
                f"no_proxy={options.host()} the client connects directly"
            )
        return cls(status_pb2.Status(code=code.value[0], message=message))

    @classmethod
    def _too_large(cls, size: int, maximum: int, *, is_reply: bool) -> LinnetError:
        """Replaces gRPC's error, which has no details and a code as if a retry could help."""
        metadata = {"bytes": str(size), "maxBytes": str(maximum)}
        if is_reply:
            return cls.local(
                f"the answer has {size} bytes, this client takes at most {maximum}: "
                "send less text at once, or raise max_reply_bytes",
                grpc.StatusCode.OUT_OF_RANGE,
                reason="REPLY_TOO_LARGE",
                metadata=metadata,
            )
        return cls.local(
            f"the request has {size} bytes, the server takes at most {maximum} in one message: "
            "send the rest in another",
            reason="MESSAGE_TOO_LARGE",
            metadata=metadata,
        )


def no_response() -> LinnetError:
    return LinnetError.local(
        "the server ended the stream without its response", grpc.StatusCode.INTERNAL
    )
