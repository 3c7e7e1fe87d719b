"""The options of a client."""

from __future__ import annotations

import re
import reprlib
import socket
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from types import UnionType

from .errors import LinnetError


@dataclass(frozen=True)
class Tls:
    """PEM files, read when the client is created."""

    ca_file: Path | str | None = None  # trusted authorities; None: gRPC's own list
    certificate_file: Path | str | None = None  # client certificate for mTLS, with key_file
    key_file: Path | str | None = None
    server_name: str = ""  # expected in the server's certificate; empty: the host of `server`


@dataclass(frozen=True)
class Retry:
    """A call is retried if the server was too busy (RESOURCE_EXHAUSTED), shuts down or was lost
    (UNAVAILABLE). The delay doubles, or is the one that the server asks for; retries end with the
    timeout."""

    max_attempts: int = 5  # 1 to 5, the first attempt included; 1 never retries
    initial_backoff: float = 0.1  # seconds
    max_backoff: float = 2.0


def _is_this_machine(address: str) -> bool:
    """A name that only begins like an address, 127.0.0.1.example.org, is another machine."""
    host = address.rpartition(":")[0]
    try:
        here = IPv4Address(host).is_loopback
    except ValueError:
        here = host in ("localhost", "[::1]")
    return here or address.startswith(("unix:", "unix-abstract:"))


def _host(address: str) -> str:
    """The host of HOST:PORT or [IPv6]:PORT; empty if the address has neither form."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        return ""
    return host if ":" not in host or host[0] == "[" else ""


def _has_no_port(address: str) -> bool:
    """True if gRPC takes the whole address for a name or an IPv6 and adds a port of its own."""
    colons = address.count(":")
    return not colons or address[-1] == "]" or (colons > 1 and address[0] != "[")


def _is_ip(family: socket.AddressFamily, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True


def _check_server(server: str) -> None:
    """Raises LinnetError for an address that gRPC would refuse at the first call, or whose port it
    would take modulo 65536. The C++ library has the same rules."""
    # gRPC splits the path of a socket at its commas as well.
    if "," in server and server.startswith(("unix:", "unix-abstract:", "dns:", "xds:")):
        raise LinnetError.local(
            f'server "{server}" has a comma, but only lists IP:PORT,IP:PORT may have one',
            field="server",
        )
    scheme = next((name for name in ("dns:", "ipv4:", "ipv6:") if server.startswith(name)), "")
    if scheme:
        addresses = server.removeprefix(scheme).rpartition("/")[2].split(",")
        if all(_host(each) or (scheme == "dns:" and _has_no_port(each)) for each in addresses):
            return
        raise LinnetError.local(
            f'server "{server}" is not {scheme}… with ports of 1 to 65535, as in '
            "dns:///translate.example:50051 or ipv4:192.0.2.1:50051,192.0.2.2:50051",
            field="server",
        )
    if server.startswith(("unix:", "unix-abstract:", "xds:")):
        return
    hosts = [_host(address) for address in server.split(",")]
    if len(hosts) == 1 and not hosts[0]:
        raise LinnetError.local(
            f'server "{server}" is not HOST:PORT with a port of 1 to 65535, as in '
            "127.0.0.1:50051 or [::1]:50051",
            field="server",
        )
    four = all(_is_ip(socket.AF_INET, host) for host in hosts)
    six = all(
        host[:1] + host[-1:] == "[]" and _is_ip(socket.AF_INET6, host[1:-1]) for host in hosts
    )
    if len(hosts) > 1 and not four and not six:
        raise LinnetError.local(
            f'servers "{server}" are not all IPv4:PORT, nor all [IPv6]:PORT; names are resolved '
            "by dns:///HOST:PORT",
            field="server",
        )


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
        _check_server(self.server)
        if not 1 <= self.retry.max_attempts <= 5:
            raise LinnetError.local(f"max_attempts {self.retry.max_attempts} is not 1 to 5")
        if not 0.001 <= self.retry.initial_backoff <= self.retry.max_backoff <= _DAY:
            raise LinnetError.local(
                f"back-off from {self.retry.initial_backoff} s to {self.retry.max_backoff} s is "
                "not an increasing range from at least 0.001 s to at most 24 h"
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
        return all(_is_this_machine(address) for address in self.server.split(","))

    def is_balanced(self) -> bool:
        return "," in self.server or self.server.startswith(("dns:", "ipv4:", "ipv6:", "xds:"))
