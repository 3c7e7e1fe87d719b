"""The options of linnet-http, and its command line."""

from __future__ import annotations

import argparse
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from .version import __version__

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Options:
    server: str = "127.0.0.1:50051"  # as linnet.Options.server
    ca_file: Path | None = None  # TLS to the server, with these authorities
    tls_server_name: str = ""  # in the server's certificate; empty: that of the address
    server_metrics: str = "127.0.0.1:9464"  # metrics page of the server, for the page /status
    timeout: float = 30.0  # seconds of a call to the server
    listen: str = "127.0.0.1:8080"  # HOST:PORT, or unix:PATH
    workers: int = 1  # processes
    tls_certificate: Path | None = None  # PEM chain; with tls_key
    tls_key: Path | None = None
    cors_origins: tuple[str, ...] = ("*",)  # origins whose scripts may call; empty: none
    url_tokens: bool = False  # take tokens from the query string
    trusted_proxies: tuple[Network, ...] = ()  # whose x-forwarded-for names the client
    max_body_bytes: int = 4 << 20  # as linnet-server's limit on a message
    max_texts: int = 1024  # texts of a request, as linnet-server's default
    key_required: bool = False  # tell clients that the server asks for tokens
    shared_cache: bool = False  # caches may keep what callers with tokens asked for, for all
    glossaries: Path = Path("linnet-glossaries.sqlite")  # made if it is not there
    documents: Path = Path("linnet-documents")  # folder, made if it is not there
    max_file_bytes: int = 16 << 20


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


def _origins(text: str) -> tuple[str, ...]:
    return tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())


def parse(arguments: list[str] | None = None) -> Options:
    """Exits with status 2 and a message if an argument is wrong."""
    default = Options()
    parser = argparse.ArgumentParser(
        prog="linnet-http",
        description="Serves a linnet-server over HTTP: the APIs of LibreTranslate and DeepL, JSON, "
        "and a web page.",
    )
    add = parser.add_argument
    add("--server", default=default.server, help="linnet-server: HOST:PORT (default %(default)s)")
    add("--ca-file", type=Path, help="connect with TLS and trust the authorities in this PEM file")
    add(
        "--tls-server-name",
        default="",
        metavar="NAME",
        help="name in the certificate of linnet-server, if it is not that of its address",
    )
    add(
        "--server-metrics",
        default=default.server_metrics,
        metavar="HOST:PORT",
        help='metrics page of linnet-server, shown on /status (default %(default)s); "" for none',
    )
    add(
        "--timeout",
        type=float,
        default=default.timeout,
        metavar="SECONDS",
        help="of a call to linnet-server (default %(default)s)",
    )
    add("--listen", default=default.listen, help="HOST:PORT or unix:PATH (default %(default)s)")
    add("--workers", type=int, default=default.workers, help="processes (default %(default)s)")
    add("--tls-certificate", type=Path, help="serve HTTPS with this PEM chain")
    add("--tls-key", type=Path, help="private key of --tls-certificate")
    add(
        "--cors-origins",
        type=_origins,
        default=default.cors_origins,
        metavar="ORIGINS",
        help='web pages that may call: origins separated by commas, "*" (default) or "" for none',
    )
    add(
        "--trusted-proxies",
        type=_networks,
        default=(),
        metavar="NETWORKS",
        help="proxies whose x-forwarded-for names the client, separated by commas",
    )
    add("--url-tokens", action="store_true", help="accept tokens in URLs, where proxies log them")
    add("--key-required", action="store_true", help="tell clients that they need a token")
    add(
        "--shared-cache",
        action="store_true",
        help="let caches keep answers to callers with tokens, which others can then read",
    )
    add(
        "--glossaries",
        type=Path,
        default=default.glossaries,
        metavar="FILE",
        help="keeps the glossaries of DeepL's API (default %(default)s)",
    )
    add(
        "--documents",
        type=Path,
        default=default.documents,
        metavar="FOLDER",
        help="keeps files to translate and their results for an hour (default %(default)s)",
    )
    add(
        "--max-file-bytes",
        type=int,
        default=default.max_file_bytes,
        metavar="N",
        help="size of a file to translate (default %(default)s)",
    )
    add(
        "--max-body-bytes",
        type=int,
        default=default.max_body_bytes,
        metavar="N",
        help="size of any other request (default %(default)s)",
    )
    add("--version", action="version", version=f"linnet-http {__version__}")
    given = parser.parse_args(arguments)
    if not 1 <= given.workers <= 64:
        parser.error(f"--workers is {given.workers}, it must be 1 to 64")
    if not 0 < given.timeout <= 24 * 3600:
        parser.error(f"--timeout is {given.timeout:g} s, it must be above 0 and at most 24 h")
    if not 1024 <= given.max_body_bytes <= 1 << 30:
        parser.error(f"--max-body-bytes is {given.max_body_bytes}, it must be 1024 to 1 GiB")
    if not 1024 <= given.max_file_bytes <= 64 << 20:
        parser.error(f"--max-file-bytes is {given.max_file_bytes}, it must be 1024 to 64 MiB")
    if given.tls_server_name and not given.ca_file:
        parser.error("--tls-server-name needs --ca-file, without which there is no TLS")
    if bool(given.tls_certificate) != bool(given.tls_key):
        parser.error("--tls-certificate and --tls-key belong together: give both, or none")
    return Options(**vars(given))
