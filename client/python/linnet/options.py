"""What a client may be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .errors import LinnetError


@dataclass(frozen=True)
class Tls:
    """PEM files, read when the client is made."""

    ca_file: Path | str | None = None  # who may vouch for the server; None: gRPC's own list
    certificate_file: Path | str | None = None  # shown to a server that asks (mTLS), with its key
    key_file: Path | str | None = None
    server_name: str = ""  # in the server's certificate, where that is not the host of `server`


@dataclass(frozen=True)
class Retry:
    """Calls that a server was too busy for (RESOURCE_EXHAUSTED), that it would not begin because it
    shuts down, or that lost it on the way (UNAVAILABLE) are made again, after waits that double, or
    that the server asks for, as long as the timeout allows it."""

    max_attempts: int = 5  # the first one counted; 1 never retries; at most 5
    initial_backoff: float = 0.1  # seconds
    max_backoff: float = 2.0


@dataclass(frozen=True)
class Options:
    # HOST:PORT or "unix:PATH": one server, or the balancer before several. "dns:///HOST:PORT" or
    # "IP:PORT,IP:PORT": calls take turns over all addresses, but for those that cannot be reached
    # and those whose health says that they take no calls now.
    server: str = "127.0.0.1:50051"
    tls: Tls | None = None
    # A file with a bearer token that goes with each call; read again when it changes. Needs TLS,
    # unless the server is on this machine.
    token_file: Path | str | None = None
    timeout: float = 60.0  # seconds, of each call, its retries included
    wait: float = 0.0  # how long the first call waits for a server that is just starting
    retry: Retry = field(default_factory=Retry)
    keepalive: float = 30.0  # seconds of silence during a call, before the server is asked for life
    max_reply_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if not 1 <= self.retry.max_attempts <= 5:
            raise LinnetError.local(f"max_attempts {self.retry.max_attempts} is not 1 to 5")
        if not 0.001 <= self.retry.initial_backoff <= self.retry.max_backoff:
            raise LinnetError.local(
                f"back-off from {self.retry.initial_backoff} s to {self.retry.max_backoff} s does "
                "not go upwards from 0.001 s or more"
            )
        if not 0 < self.timeout <= 24 * 3600:
            raise LinnetError.local(
                f"timeout is {self.timeout} s, it must be above 0 and at most 24 h"
            )
        if self.token_file and not self.tls and not self.is_this_machine():
            raise LinnetError.local(
                f"a token would go to {self.server} in plain text: encrypt the connection with tls"
            )

    def is_this_machine(self) -> bool:
        here = ("localhost:", "127.", "[::1]:", "unix:", "unix-abstract:")
        return all(address.startswith(here) for address in self.server.split(","))

    def is_balanced(self) -> bool:
        return "," in self.server or self.server.startswith(("dns:", "ipv4:", "ipv6:", "xds:"))
