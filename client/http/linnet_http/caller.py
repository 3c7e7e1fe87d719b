"""Who calls: the token and the address that are passed on to the server."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from aiohttp import web

from .options import Options
from .problem import Problem

_SCHEMES = re.compile(r"(?:bearer|deepl-auth-key)\s+", re.IGNORECASE)
_OTHER_SCHEMES = re.compile(r"(basic|digest|negotiate|ntlm)\s", re.IGNORECASE)
_TOKEN = re.compile(r"[!-~]{1,4096}")


def token_of(request: web.Request, fields: Mapping[str, object], options: Options) -> str:
    """The caller's token, "" without one: from the header Authorization (Bearer, DeepL-Auth-Key or
    the bare token), the field api_key, or, if the options allow it, key or token in the URL."""
    said = _SCHEMES.sub("", request.headers.get("Authorization", "").strip(), count=1)
    if not said:
        key = fields.get("api_key")
        said = key.strip() if isinstance(key, str) else ""
    if not said and options.url_tokens:
        said = request.query.get("key", "") or request.query.get("token", "")
    if found := _OTHER_SCHEMES.match(said):
        raise Problem(
            401,
            f"Authorization has the scheme {found[1]}, not Bearer: send a token, or have the proxy "
            "that reads this header leave it out",
            "UNAUTHENTICATED",
        )
    if said and not _TOKEN.fullmatch(said):
        raise Problem(
            401, "the token has characters other than visible ASCII, or too many", "UNAUTHENTICATED"
        )
    return said


def _is_proxy(request: web.Request, options: Options) -> bool:
    """True if the peer is a trusted proxy."""
    if not options.trusted_proxies:
        return False
    try:
        address = ipaddress.ip_address(request.remote or "")
    except ValueError:
        return True  # a Unix socket: only a local proxy connects
    return any(address in network for network in options.trusted_proxies)


def origin_of(request: web.Request, options: Options) -> str:
    """The scheme and the host of the URL that the client used; "" if it named no host. A trusted
    proxy that ends TLS says so in x-forwarded-proto."""
    if not request.host:
        return ""
    scheme = request.headers.get("X-Forwarded-Proto", "").strip().lower()
    if scheme not in ("http", "https") or not _is_proxy(request, options):
        scheme = request.scheme
    return f"{scheme}://{request.host}"


def address_of(request: web.Request, options: Options) -> str:
    """The address of the client: that of the peer, or, if the peer is a trusted proxy, the last
    entry of x-forwarded-for. "" if it is not known, as over a Unix socket without a proxy."""
    peer = request.remote or ""
    if _is_proxy(request, options) and (said := request.headers.getall("X-Forwarded-For", [])):
        last = said[-1].rsplit(",", 1)[-1].strip()
        try:
            return str(ipaddress.ip_address(last))
        except ValueError:
            return peer
    return peer


def metadata_of(token: str, address: str) -> tuple[tuple[str, str], ...]:
    """What the server needs to know of the caller, as metadata of a call."""
    found = []
    if token:
        found.append(("authorization", f"Bearer {token}"))
    if address:
        found.append(("x-forwarded-for", address))
    return tuple(found)
