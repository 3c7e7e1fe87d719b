"""Channel arguments, credentials and headers, shared by both clients."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from .errors import LinnetError
from .grpc_errors import convert
from .options import Options
from .retries import MAX_RETRIED_BYTES, Attempts, Retries
from .version import __version__

SERVICE = "linnet.v1.TextService"
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
Metadata = tuple[tuple[str, str], ...]
TOKEN = re.compile(rb"[!-~]+")  # a server's file of tokens has blanks between its words
WAIT_INTERVAL = 0.2  # seconds between the health checks of Options.wait


def service_config(options: Options, health: bool = True) -> str:
    """The balancing. Retries are made above gRPC: see retries.py."""
    config: dict[str, Any] = {}
    if options.is_balanced() and health:
        config["loadBalancingConfig"] = [{"round_robin": {}}]
        config["healthCheckConfig"] = {"serviceName": SERVICE}
    return json.dumps(config)


def is_starting(error: LinnetError) -> bool:
    """True if a health check was answered by a proxy whose server is not there yet."""
    return error.code == grpc.StatusCode.UNAVAILABLE


def new_request_id() -> str:
    """A random id for a call without one; all attempts of the call use the same."""
    return secrets.token_hex(16)


def arguments(options: Options, health: bool = True) -> list[tuple[str, Any]]:
    alive = int(options.keepalive * 1000)
    found: list[tuple[str, Any]] = [
        ("grpc.service_config", service_config(options, health)),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.primary_user_agent", f"linnet-python/{__version__}"),
        ("grpc.max_receive_message_length", options.max_reply_bytes),
        # By default gRPC sends no request of more than 256 KiB again that a server has not read.
        ("grpc.per_rpc_retry_buffer_size", MAX_RETRIED_BYTES),
        ("grpc.initial_reconnect_backoff_ms", int(options.retry.initial_backoff * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(options.retry.max_backoff * 1000)),
        ("grpc.keepalive_time_ms", alive),
        ("grpc.keepalive_timeout_ms", alive),
        ("grpc.http2.max_pings_without_data", 0),
        # Otherwise gRPC lets clients with equal options share a connection.
        ("grpc.use_local_subchannel_pool", 1),
    ]
    # Otherwise gRPC would use a proxy for this machine, and for hosts that only we exclude.
    if options.proxy() is None:
        found.append(("grpc.enable_http_proxy", 0))
    if options.tls and options.tls.server_name:
        found.append(("grpc.ssl_target_name_override", options.tls.server_name))
    return found


def credentials(options: Options) -> grpc.ChannelCredentials | None:
    """The TLS credentials, or None for plain text."""
    if options.tls is None:
        return None

    def read(path: Path | str | None, kind: str) -> bytes | None:
        """The content of a PEM file. gRPC ends the process for an empty one; with one of another
        format, calls fail as if no server were there, and its log alone has the reason."""
        if path is None:
            return None
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise LinnetError.local(f"cannot read {path}: {error.strerror}") from error
        if not re.search(rb"-----BEGIN ([A-Z0-9]+ )*%b-----" % kind.encode(), content):
            raise LinnetError.local(f"{path} holds no {kind} in PEM")
        return content

    tls = options.tls
    return grpc.ssl_channel_credentials(
        read(tls.ca_file, "CERTIFICATE"),
        read(tls.key_file, "PRIVATE KEY"),
        read(tls.certificate_file, "CERTIFICATE"),
    )


class Token:
    """A bearer token in a file. The file is checked for changes before each call, because tokens
    expire and are replaced. Thread-safe."""

    def __init__(self, path: Path | str):
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._token = ""
        if not self.value():
            raise LinnetError.local(
                f'the token file "{path}" holds no token: one word of visible ASCII characters'
            )

    def value(self) -> str:
        """The token that the file holds now, or, if it holds none, the last one that it held."""
        with self._lock:
            try:
                at = os.stat(self._path)
                seen = (at.st_ino, at.st_mtime_ns, at.st_size)
                if seen != self._seen:
                    token = Path(self._path).read_bytes().removeprefix(BOM_UTF8).strip()
                    if TOKEN.fullmatch(token):
                        self._token = token.decode()
                    self._seen = seen
            except OSError as error:
                if not self._token:
                    raise LinnetError.local(
                        f"cannot read the token in {self._path}: {error}"
                    ) from error
            return self._token


def check_timeout(timeout: float) -> float:
    if not isinstance(timeout, int | float) or not 0 < timeout <= 24 * 3600:
        raise LinnetError.local(f"timeout is {timeout!r} s, it must be above 0 and at most 24 h")
    return timeout


def check_request_id(request_id: str) -> str:
    if not isinstance(request_id, str):
        raise LinnetError.local(f"request id is a {type(request_id).__name__}, not a str")
    if not re.fullmatch(r"[!-~]{0,128}", request_id):
        raise LinnetError.local(
            f"request id of {len(request_id)} characters is not at most 128 visible ASCII "
            "characters, without blanks"
        )
    return request_id


_added: ContextVar[Metadata] = ContextVar("linnet_call_metadata", default=())


@contextmanager
def call_metadata(*metadata: tuple[str, str]) -> Iterator[None]:
    """Adds metadata to the calls that this thread or task makes within the block, for a program
    that calls a server on behalf of others: `authorization` replaces the token of the options, and
    `x-forwarded-for` names the client to a server that trusts this one (trusted-proxies)."""
    token = _added.set(metadata)
    try:
        yield
    finally:
        _added.reset(token)


class Headers:
    """The metadata of a call: request id, token, and what `call_metadata` adds."""

    def __init__(self, options: Options):
        self._token = Token(options.token_file) if options.token_file else None

    def of(self, request_id: str) -> Metadata:
        found = [*_added.get()]
        if request_id:
            found.append(("x-request-id", request_id))
        if self._token and not any(name == "authorization" for name, _ in found):
            found.append(("authorization", f"Bearer {self._token.value()}"))
        return tuple(found)


class CallStarter:
    """Starts the calls of a connection, blocking ones and those of grpc.aio alike."""

    def __init__(self, options: Options):
        self.options = options
        self._headers = Headers(options)
        self._retries = Retries(options)

    def attempts(self, request: Any, limit: float) -> Attempts:
        """The attempts of a call whose deadline begins now. Health checks are not retried."""
        too_large = request.ByteSize() > MAX_RETRIED_BYTES
        is_retried = not too_large and not isinstance(request, health_pb2.HealthCheckRequest)
        return Attempts(self._retries, limit, max_attempts=None if is_retried else 1)

    def limit(self, timeout: float | None) -> float:
        return check_timeout(self.options.timeout if timeout is None else timeout)

    def starter(
        self, method: Callable[..., Any], request: Any, request_id: str
    ) -> Callable[[float | None], Any]:
        """Returns a function that starts the call with a timeout; a retry calls it again."""
        own_id = check_request_id(request_id) or new_request_id()
        return lambda limit: self._started(method, request, limit, own_id)

    def _started(
        self, method: Callable[..., Any], request: Any, limit: float | None, request_id: str
    ) -> Any:
        metadata = self._headers.of(request_id)
        try:
            return method(request, timeout=limit, metadata=metadata)
        except grpc.RpcError as error:  # a request of more than 2 GiB
            raise convert(error, self.options) from error
        except (grpc.aio.UsageError, ValueError) as error:  # the channel is closed
            raise LinnetError.local(str(error), grpc.StatusCode.FAILED_PRECONDITION) from error
