"""The way to a server: directly, or through the HTTP proxy that the environment names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from . import addresses


@dataclass(frozen=True)
class Proxy:
    """A proxy, and the variable of the environment that names it."""

    address: str  # HOST:PORT, without the user and the password of the variable
    variable: str

    def __str__(self) -> str:
        return f"the proxy {self.address} ({self.variable})"


def proxy_of(server: str) -> Proxy | None:
    """The proxy through which a channel connects to `server`; None if it connects directly.

    Reads grpc_proxy, https_proxy and http_proxy as gRPC does: the first one that is set. A server
    on this machine and a list of addresses have no proxy, and neither have the hosts of
    no_grpc_proxy, or else of no_proxy: names by their ends, as gRPC and curl match them, networks
    (192.0.2.0/24), and * for all. The C++ library has the same rules."""
    if addresses.is_this_machine(server) or addresses.target(server).startswith("ipv"):
        return None
    variable = _first_set("grpc_proxy", "https_proxy", "http_proxy")
    url = os.environ.get(variable, "")
    # gRPC takes no other scheme, and connects directly.
    if not url.startswith("http://"):
        return None
    excluded = os.environ.get(_first_set("no_grpc_proxy", "no_proxy"), "")
    if any(_matches(addresses.host(server), entry.strip()) for entry in excluded.split(",")):
        return None
    return Proxy(url.removeprefix("http://").partition("/")[0].rpartition("@")[2], variable)


def _first_set(*names: str) -> str:
    """The first of these variables that is set, also to nothing."""
    return next((name for name in names if name in os.environ), "")


def _matches(host: str, entry: str) -> bool:
    if not entry:
        return False
    name, end = host.lower(), entry.lower()
    if entry == "*" or name.endswith(end) or f".{name}" == end:
        return True
    try:
        return "/" in entry and ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False
