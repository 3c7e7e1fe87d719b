"""The address of a server: its forms, and what each of them means."""

from __future__ import annotations

import re
import socket
from enum import Enum, auto
from ipaddress import IPv6Address

from .errors import LinnetError


class _Kind(Enum):
    """The kinds of addresses."""

    HOSTS = auto()  # without a scheme: HOST:PORT, or IP:PORT,IP:PORT
    SOCKET = auto()  # a socket of this machine
    NAME = auto()  # all addresses that DNS has for a name
    LIST = auto()  # a list of IP:PORT
    CONTROL_PLANE = auto()  # the addresses that it gives


_SCHEMES = {
    "unix:": _Kind.SOCKET,
    "unix-abstract:": _Kind.SOCKET,
    "dns:": _Kind.NAME,
    "ipv4:": _Kind.LIST,
    "ipv6:": _Kind.LIST,
    "xds:": _Kind.CONTROL_PLANE,
}


def _scheme(server: str) -> str:
    """The scheme with its colon; empty if the address has none."""
    return next((scheme for scheme in _SCHEMES if server.startswith(scheme)), "")


def _kind(server: str) -> _Kind:
    return _SCHEMES.get(_scheme(server), _Kind.HOSTS)


def is_this_machine(server: str) -> bool:
    """True if every address of `server` is this machine, in any spelling. A name that only begins
    like an address, 127.0.0.1.example.org, is another machine."""
    if _kind(server) in (_Kind.SOCKET, _Kind.CONTROL_PLANE):
        return _kind(server) is _Kind.SOCKET
    return all(_is_loopback(_host_of(address)) for address in _addresses(server).split(","))


def host(server: str) -> str:
    """The host of a server without its scheme and port: what no_proxy is compared with."""
    return _host_of(_addresses(server))


def _addresses(server: str) -> str:
    """The addresses without a scheme and the authority of "dns://AUTHORITY/HOST:PORT"."""
    scheme = _scheme(server)
    return server.removeprefix(scheme).rpartition("/")[2] if scheme else server


def _host_of(address: str) -> str:
    """The host of HOST:PORT, [IPv6]:PORT or HOST, without the brackets of an IPv6."""
    if address.startswith("["):
        inside, bracket, _ = address[1:].partition("]")
        return inside if bracket else ""
    # Several colons without brackets are an IPv6 without a port.
    return address.partition(":")[0] if address.count(":") == 1 else address


def is_balanced(server: str) -> bool:
    """True if calls go round-robin over the addresses for which `server` stands."""
    return "," in server or _kind(server) in (_Kind.NAME, _Kind.CONTROL_PLANE)


def target(server: str) -> str:
    """The target of the channel. gRPC writes a list of addresses as ipv4:IP:PORT,IP:PORT."""
    if "," not in server or _kind(server) is not _Kind.HOSTS:
        return server
    return f"{'ipv6' if server.startswith('[') else 'ipv4'}:{server}"


def check(server: str) -> None:
    """Raises LinnetError for an address that gRPC would refuse at the first call, or whose port it
    would take modulo 65536. The C++ library has the same rules."""
    found = re.search(r"[\0\ud800-\udfff]", server)
    if found:  # a lone surrogate: a byte of the environment that is not UTF-8
        raise _error(f"server {server!r} cannot be an address: it has {found[0]!a}")
    kind = _kind(server)
    if kind is _Kind.HOSTS:
        _check_hosts(server)
    elif kind is _Kind.LIST:
        _check_ports(server)
    elif "," in server:  # gRPC splits the path of a socket at its commas as well
        raise _error(f'server "{server}" has a comma, but only lists IP:PORT,IP:PORT may have one')
    elif kind is _Kind.NAME:
        _check_ports(server)


def _check_ports(server: str) -> None:
    scheme = _scheme(server)
    addresses = server.removeprefix(scheme).rpartition("/")[2].split(",")
    is_name = _SCHEMES[scheme] is _Kind.NAME
    if not all(_host(each) or (is_name and each and _has_no_port(each)) for each in addresses):
        raise _error(
            f'server "{server}" is not {scheme}… with ports of 1 to 65535, as in '
            "dns:///translate.example:50051 or ipv4:192.0.2.1:50051,192.0.2.2:50051"
        )


def _check_hosts(server: str) -> None:
    hosts = [_host(address) for address in server.split(",")]
    if len(hosts) == 1 and not hosts[0]:
        raise _error(
            f'server "{server}" is not HOST:PORT with a port of 1 to 65535, as in '
            "127.0.0.1:50051 or [::1]:50051"
        )
    four = all(_is_ip(socket.AF_INET, host) for host in hosts)
    six = all(
        host[:1] + host[-1:] == "[]" and _is_ip(socket.AF_INET6, host[1:-1]) for host in hosts
    )
    if len(hosts) > 1 and not four and not six:
        raise _error(
            f'servers "{server}" are not all IPv4:PORT, nor all [IPv6]:PORT; names are resolved '
            "by dns:///HOST:PORT"
        )


def _error(message: str) -> LinnetError:
    return LinnetError.local(message, field="server")


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


def _is_loopback(host: str) -> bool:
    """True for localhost in any case, 127.0.0.1 or 127.1, and ::1 in any form, also mapped."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        six = IPv6Address(host)
        return (six.ipv4_mapped or six).is_loopback
    except ValueError:
        pass
    try:  # inet_aton takes the short forms, and ignores what stands behind a blank
        return not re.search(r"\s", host) and socket.inet_aton(host)[0] == 127
    except (OSError, ValueError):
        return False
