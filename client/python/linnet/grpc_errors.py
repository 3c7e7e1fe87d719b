"""Converts the errors of grpc and grpc.aio."""

from __future__ import annotations

import re
from contextlib import suppress

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from .errors import LinnetError
from .options import Options

# gRPC's "CLIENT: " is this side, for which a reply was too large; a server of any version says
# something else, or nothing, of a request.
_TOO_LARGE = re.compile(r"(CLIENT: )?Received message larger than max \((\d+) vs\. (\d+)\)")


def convert(error: grpc.RpcError, options: Options, timeout: float | None = None) -> LinnetError:
    """The error of a call of grpc or grpc.aio. `timeout` is that of the call, if it had one."""
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
                return LinnetError(status)
    too_large = _TOO_LARGE.search(message)
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED and too_large:
        return _too_large(int(too_large[2]), int(too_large[3]), is_reply=bool(too_large[1]))
    proxy = options.proxy()
    way = f"{options.server} through {proxy}" if proxy else options.server
    if code == grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
        message = f"no answer from {way} within {timeout:g} s: allow more time or send less text"
    elif code == grpc.StatusCode.UNAVAILABLE and proxy:
        message = (
            f"cannot reach {way}: {message}; does the proxy let it pass? With "
            f"no_proxy={options.host()} the client connects directly"
        )
    return LinnetError(status_pb2.Status(code=code.value[0], message=message))


def _too_large(size: int, maximum: int, *, is_reply: bool) -> LinnetError:
    """Replaces gRPC's error, which has no details and a code as if a retry could help."""
    metadata = {"bytes": str(size), "maxBytes": str(maximum)}
    if is_reply:
        return LinnetError.local(
            f"the answer has {size} bytes, this client takes at most {maximum}: "
            "send less text at once, or raise max_reply_bytes",
            grpc.StatusCode.OUT_OF_RANGE,
            reason="REPLY_TOO_LARGE",
            metadata=metadata,
        )
    return LinnetError.local(
        f"the request has {size} bytes, the server takes at most {maximum} in one message: "
        "send the rest in another",
        reason="MESSAGE_TOO_LARGE",
        metadata=metadata,
    )
