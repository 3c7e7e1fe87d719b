"""The options of a client."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType

from . import addresses
from .errors import LinnetError
from .proxy import Proxy, proxy_of


@dataclass(frozen=True)
class Tls:
    """PEM files, read when the client is created."""

    ca_file: Path | str | None = None  # trusted authorities; None: gRPC's own list
    certificate_file: Path | str | None = None  # client certificate for mTLS, with key_file
    key_file: Path | str | None = None
    # Expected in the server's certificate; empty: the host of `server`. A list of servers needs it.
    server_name: str = ""


@dataclass(frozen=True)
class Retry:
    """A call is made again if the server was too busy (RESOURCE_EXHAUSTED), shuts down or was lost
    (UNAVAILABLE), and a document continues from its first line without a result. The delay doubles,
    or is the one that the server asks for. A server that was there and now refuses connections is
    tried until the timeout."""

    max_attempts: int = 5  # 1 to 5, the first included, without a result between; 1: no retry
    initial_backoff: float = 0.1  # seconds, at least 0.002
    max_backoff: float = 2.0


_DAY = 24 * 3600.0
_NUMBER = int | float
_PATH = str | Path


def _check(options: object, name: str, kind: type | UnionType, called: str) -> None:
    value = getattr(options, name)
    if not isinstance(value, kind):
        raise LinnetError.local(f"{name} is {reprlib.repr(value)}, not {called}", field=name)


@dataclass(frozen=True)
class Options:
    # HOST:PORT or "unix:PATH": one server, or the load balancer before several. "dns:///HOST:PORT"
    # or "IP:PORT,IP:PORT": calls go round-robin over all addresses that can be reached and whose
    # health service reports SERVING.
    server: str = "127.0.0.1:50051"
    tls: Tls | None = None
    # A file with a bearer token that is sent with each call; read again when it changes. Needs TLS,
    # unless the server is on this machine.
    token_file: Path | str | None = None
    timeout: float = 60.0  # seconds, of each call, its retries included
    wait: float = 0.0  # seconds that the first calls wait for a server that is starting
    retry: Retry = field(default_factory=Retry)
    keepalive: float = 30.0  # seconds; interval and timeout of keepalive pings during a call
    max_reply_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        self._check_types()
        addresses.check(self.server)
        if not 1 <= self.retry.max_attempts <= 5:
            raise LinnetError.local(f"max_attempts {self.retry.max_attempts} is not 1 to 5")
        if not 0.002 <= self.retry.initial_backoff <= self.retry.max_backoff <= _DAY:
            raise LinnetError.local(
                f"back-off from {self.retry.initial_backoff} s to {self.retry.max_backoff} s is "
                "not an increasing range from at least 0.002 s to at most 24 h"
            )
        if not 0 < self.timeout <= _DAY:
            raise LinnetError.local(
                f"timeout is {self.timeout} s, it must be above 0 and at most 24 h"
            )
        if not 0 <= self.wait <= _DAY:
            raise LinnetError.local(f"wait is {self.wait} s, it must be 0 to 24 h")
        if self.tls and bool(self.tls.certificate_file) != bool(self.tls.key_file):
            raise LinnetError.local(
                "certificate_file and key_file belong together: give both, or none"
            )
        if self.tls and not self.tls.server_name and "," in self.server:
            raise LinnetError.local(
                f'TLS to several addresses, "{self.server}", needs the name that is in their '
                "certificates: set server_name of Tls"
            )
        if not 0.001 <= self.keepalive < (1 << 31) / 1000:
            raise LinnetError.local(
                f"keepalive is {self.keepalive} s, it must be at least 0.001 s and below 24 days"
            )
        if not 1 <= self.max_reply_bytes < 1 << 31:
            raise LinnetError.local(
                f"max_reply_bytes is {self.max_reply_bytes}, it must be at least 1 and below 2 GiB"
            )
        if self.token_file and not self.tls and not self.is_this_machine():
            raise LinnetError.local(
                f"a token would go to {self.server} in plain text: encrypt the connection with tls"
            )

    def _check_types(self) -> None:
        """Raises LinnetError for a value whose type would fail at the first call, or in gRPC."""
        _check(self, "server", str, "a str")
        _check(self, "tls", Tls | None, "a Tls")
        _check(self, "token_file", _PATH | None, "a path")
        _check(self, "timeout", _NUMBER, "a number")
        _check(self, "wait", _NUMBER, "a number")
        _check(self, "retry", Retry, "a Retry")
        _check(self, "keepalive", _NUMBER, "a number")
        _check(self, "max_reply_bytes", int, "an int")
        _check(self.retry, "max_attempts", int, "an int")
        _check(self.retry, "initial_backoff", _NUMBER, "a number")
        _check(self.retry, "max_backoff", _NUMBER, "a number")
        if self.tls:
            for name in ("ca_file", "certificate_file", "key_file"):
                _check(self.tls, name, _PATH | None, "a path")
            _check(self.tls, "server_name", str, "a str")

    def is_this_machine(self) -> bool:
        return addresses.is_this_machine(self.server)

    def is_balanced(self) -> bool:
        return addresses.is_balanced(self.server)

    def host(self) -> str:
        return addresses.host(self.server)

    def proxy(self) -> Proxy | None:
        """The proxy between this client and the server, if there is one."""
        return proxy_of(self.server)
