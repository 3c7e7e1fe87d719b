"""Proxies of the environment, which gRPC reads, and the errors that name them."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading

import pytest
from python_package import english

PROXY_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy")


class FakeProxy:
    """Counts the hosts that clients ask for, and lets none of them pass."""

    def __init__(self):
        self.asked: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                request = connection.recv(4096).decode()
                self.asked.append(request.split()[1] if request.startswith("CONNECT ") else request)
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.fixture
def proxy(monkeypatch):
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    proxy = FakeProxy()
    yield proxy
    proxy.close()


def error_of(linnet, server: str, asynchronous: bool) -> str:
    """The error of a call, or nothing."""
    options = linnet.Options(server, timeout=20, retry=linnet.Retry(max_attempts=1))

    async def ask() -> None:
        async with linnet.AsyncClient(options) as client:
            await client.translate(english(linnet, "a"))

    try:
        if asynchronous:
            asyncio.run(ask())
        else:
            with linnet.Client(options) as client:
                client.translate(english(linnet, "a"))
    except linnet.LinnetError as error:
        return error.message
    return ""


@pytest.mark.parametrize("asynchronous", [False, True])
def test_this_machine_in_any_spelling_has_no_proxy(linnet, fake, proxy, monkeypatch, asynchronous):
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    port = fake().address.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "dns:///localhost", "dns:LocalHost"):
        assert error_of(linnet, f"{host}:{port}", asynchronous) == "", host
    for host in ("127.1", "localhost."):  # which not every resolver knows
        assert "proxy" not in error_of(linnet, f"{host}:{port}", asynchronous), host
    assert proxy.asked == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_error_names_the_proxy_that_was_used(linnet, proxy, monkeypatch, asynchronous):
    monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy.address}")
    error = error_of(linnet, "translate.invalid:50051", asynchronous)
    assert proxy.asked == ["translate.invalid:50051"]
    assert f"translate.invalid:50051 through the proxy {proxy.address} (http_proxy)" in error
    assert "no_proxy=translate.invalid" in error
    assert "secret" not in error
    # The first variable that is set counts, and a proxy that is not there is named as well.
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:1")
    error = error_of(linnet, "dns:///translate.invalid:50051", asynchronous)
    assert "through the proxy 127.0.0.1:1 (grpc_proxy)" in error


@pytest.mark.parametrize(
    "excluded",
    ["translate.invalid", "a.example, .INVALID ", "invalid", "*", ".translate.invalid"],
)
def test_server_of_no_proxy_is_blamed_itself(linnet, proxy, monkeypatch, excluded):
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    monkeypatch.setenv("no_proxy", excluded)
    error = error_of(linnet, "translate.invalid:50051", False)
    assert error
    assert "proxy" not in error
    assert proxy.asked == []


def test_network_of_no_proxy_excludes_its_addresses(linnet, monkeypatch):
    from linnet.proxy import proxy_of

    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128/")
    monkeypatch.setenv("no_proxy", "192.0.2.0/24,2001:db8::/32,10.0.0.0/x,300.1.1.1/8")
    direct = ["192.0.2.7:1", "[2001:db8::5]:1", "dns:///192.0.2.9:1"]
    direct += ["ipv4:198.51.100.1:1", "198.51.100.1:1,198.51.100.2:1", "unix:/socket"]
    direct += ["localhost.:1", "[0:0::1]:1", "[::ffff:127.0.0.1]:1", "dns://192.0.3.1/LocalHost"]
    assert [proxy_of(server) for server in direct] == [None] * len(direct)
    for server in ("192.0.3.7:1", "[2001:db9::5]:1", "10.0.0.1:1", "dns://192.0.2.1/a.example:1"):
        assert str(proxy_of(server)) == "the proxy proxy.example:3128 (https_proxy)", server
    monkeypatch.setenv("no_grpc_proxy", "a.example")
    assert proxy_of("192.0.2.7:1")
    assert not proxy_of("a.example:1")
    for value in ("", "https://proxy.example:3128", "socks5://proxy.example", "proxy.example:3128"):
        monkeypatch.setenv("grpc_proxy", value)
        assert proxy_of("192.0.3.7:1") is None, value  # gRPC connects directly


def test_command_line_names_the_proxy_as_well(linnet_binary, proxy, fake, linnet):
    def run(server: str, **variables: str) -> str:
        done = subprocess.run(
            [str(linnet_binary), "health", "--server", server],
            env={"http_proxy": f"http://me:secret@{proxy.address}", **variables},
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout + done.stderr

    error = run("translate.invalid:50051")
    assert f"translate.invalid:50051 through the proxy {proxy.address} (http_proxy)" in error
    assert "secret" not in error
    assert proxy.asked
    proxy.asked.clear()
    port = fake().address.rpartition(":")[2]
    for host in (
        "127.0.0.1",
        "LOCALHOST",
        "dns:///localhost",
        "dns:LOCALHOST",
    ):
        assert "SERVING" in run(f"{host}:{port}"), host
    for excluded in ("translate.invalid", ".invalid", "*", ".translate.invalid", "x, INVALID"):
        error = run("translate.invalid:50051", no_proxy=excluded)
        assert "cannot reach translate.invalid:50051: " in error, excluded
        assert "proxy" not in error
    assert "cannot reach 192.0.2.300:1: " in run("192.0.2.300:1", no_proxy="192.0.2.0/24,.300")
    assert proxy.asked == []
