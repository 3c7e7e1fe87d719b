"""deploy/balancers/haproxy-edge.cfg: the server identifies callers behind a proxy."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import edge
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from kubernetes_test import FOLDER, build, container, of_kind
from programs import ROOT, environment, find
from replicas import BUNDLES, Server

sys.path.append(str(ROOT / "tests/e2e/security"))
import http2
from attacks import ATTACKS, attack
from security_test import Authority


@pytest.fixture(scope="module")
def proxied(program, tmp_path_factory) -> Iterator[Server]:
    """A server that trusts only 127.0.0.1, the address of the proxy."""
    flags = ("--trusted-proxies", "127.0.0.1", "--log-level", "debug")
    server = Server(program("linnet-server"), *flags, models=BUNDLES / "en-de")
    server.wait_for_ready()
    yield server
    server.stop()
    server.remove()


@pytest.fixture(scope="module")
def proxy(proxied, tmp_path_factory) -> Iterator[str]:
    process, address = edge.start(tmp_path_factory.mktemp("edge"), proxied.grpc)
    yield address
    process.terminate()
    process.wait(10)


def call(address: str, request_id: str, source: str = "127.0.0.1", **headers: str) -> None:
    """ListModels from an address of this machine."""
    client = http2.RawClient(address, source=source)
    stream = client.call("ListModels", b"", **{"x-request-id": request_id, **headers})
    assert client.wait_for(http2.DATA, stream)
    client.close()


def client_of(server: Server, request_id: str) -> str:
    """The caller of a call, from the log."""
    end = time.monotonic() + 10
    while True:
        for line in server.log.read_text().splitlines():
            if f"request_id={request_id}" in line:
                return re.search(r"client=(\S+)", line)[1]
        assert time.monotonic() < end, f"no call {request_id} in the log"
        time.sleep(0.05)


def test_callers_behind_the_proxy_are_distinguished(proxied, proxy):
    for source in ("127.0.0.2", "127.0.0.3"):
        call(proxy, f"from-{source}", source=source)
        assert client_of(proxied, f"from-{source}") == f"ipv4:{source}"


def test_proxy_replaces_forged_headers(proxied, proxy):
    forged = {"x-forwarded-for": "203.0.113.5", "x-client-certificate-subject": "alice"}
    call(proxy, "forged", source="127.0.0.2", **forged)
    assert client_of(proxied, "forged") == "ipv4:127.0.0.2"


def test_server_ignores_headers_of_untrusted_peers(proxied):
    forged = {"x-forwarded-for": "203.0.113.5", "x-client-certificate-subject": "alice"}
    call(proxied.grpc, "straight", source="127.0.0.2", **forged)
    assert client_of(proxied, "straight") == "ipv4:127.0.0.2"


def test_certificate_verified_by_the_proxy_names_the_caller(proxied, tmp_path):
    authority = Authority(tmp_path)
    for name in ("server", "alice", "bob"):
        authority.sign(name)
    both = authority.read("server.pem") + authority.read("server.key")
    (tmp_path / "both.pem").write_bytes(both)
    bind = f"ssl crt {tmp_path}/both.pem alpn h2 ca-file {tmp_path}/ca.pem verify required"
    process, address = edge.start(tmp_path, proxied.grpc, bind)
    try:
        for name in ("alice", "bob"):
            credentials = grpc.ssl_channel_credentials(
                authority.read("ca.pem"),
                authority.read(f"{name}.key"),
                authority.read(f"{name}.pem"),
            )
            options = [("grpc.ssl_target_name_override", "localhost")]
            with grpc.secure_channel(address, credentials, options) as channel:
                headers = [
                    ("x-request-id", f"of-{name}"),
                    ("x-client-certificate-subject", "carol"),
                ]
                method = channel.unary_unary("/linnet.v1.TextService/ListModels")
                method(b"", timeout=20, metadata=headers, wait_for_ready=True)
            assert client_of(proxied, f"of-{name}") == f"subject:{name}"
    finally:
        process.terminate()
        process.wait(10)


SHORT = 3  # seconds; a loaded machine may run no test for one


@pytest.fixture(scope="module")
def short_timeouts(program, tmp_path_factory) -> Iterator[tuple[Server, str]]:
    """Server and proxy with timeouts of SHORT."""
    flags = ("--trusted-proxies", "127.0.0.1", "--request-timeout", str(SHORT))
    server = Server(program("linnet-server"), *flags, models=BUNDLES / "en-de")
    server.wait_for_ready()
    changes = {"timeout client 60s": f"timeout client {SHORT}s"}
    changes["timeout http-keep-alive 30s"] = f"timeout http-keep-alive {SHORT}s"
    folder = tmp_path_factory.mktemp("short_timeouts")
    process, address = edge.start(folder, server.grpc, changes=changes)
    yield server, address
    process.terminate()
    process.wait(10)
    server.stop()
    server.remove()


# HAProxy 2.6 refuses 100 header fields beside its own; a connection of such calls is mostly closed
# at the 33rd call, but rarely stays open until a timeout.
WITHOUT_REQUEST = (
    "100 streams",
    "100 streams, long headers",
    "unfinished messages",
    "one byte a second",
)


@pytest.mark.parametrize("name", WITHOUT_REQUEST)
def test_connection_without_a_request_is_closed(name, short_timeouts):
    _, address = short_timeouts
    assert attack(address, ATTACKS[name], connections=3, seconds=60).open == 0


def haproxy_version() -> int:
    told = subprocess.check_output([find("haproxy"), "-v"], env=environment(), text=True)
    return int(re.search(r"version (\d+)", told)[1])


def test_connection_of_many_calls_without_an_accepted_one_is_closed(proxy):
    outcome = attack(proxy, ATTACKS["unknown methods"], connections=3, seconds=20)
    assert outcome.open == 0
    assert outcome.last_closed < 10  # before any timeout
    assert outcome.sent / 3 < 1 << 20


def test_connection_that_resets_its_calls_is_closed(proxy):
    if haproxy_version() < 3:
        pytest.skip("HAProxy limits the calls of a connection (max-total-streams) from 3.0 on")
    outcome = attack(proxy, ATTACKS["rapid reset"], connections=3, seconds=20)
    assert outcome.open == 0
    assert outcome.last_closed < 10


def refused_calls(client: http2.RawClient) -> int:
    """Begins 100 calls in turn, which the server refuses; returns how many it has refused."""
    for refused in range(100):
        try:
            client.wait_for(http2.HEADERS, client.call("NoSuchMethod", b""))
        except (http2.ConnectionEnded, OSError):
            return refused
    return 100


def test_refused_calls_of_a_connection_are_limited_until_one_is_accepted(proxy):
    client = http2.RawClient(proxy)
    assert refused_calls(client) == 32
    client.close()
    client = http2.RawClient(proxy)
    assert client.wait_for(http2.DATA, client.call("ListModels", b""))
    assert refused_calls(client) == 100
    client.close()


def test_health_checks_of_a_connection_are_not_limited(proxy):
    health = health_pb2_grpc.HealthStub(grpc.insecure_channel(proxy))
    for _ in range(100):
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_connection_waiting_for_an_answer_stays_open(short_timeouts):
    server, address = short_timeouts
    client = http2.RawClient(address)
    stream = client.call("ListModels", b"")
    assert client.wait_for(http2.DATA, stream)  # the server has a connection now
    server.process.send_signal(signal.SIGSTOP)
    try:
        stream = client.call("ListModels", b"")
        time.sleep(2.2 * SHORT)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert client.wait_for(http2.DATA, stream)
    client.close()


def test_long_request_passes_through_small_windows(proxy):
    text = b"a" * 1_000_000
    request = b"\x0a" + bytes([0xC0, 0x84, 0x3D]) + text  # contents, without a language
    with grpc.insecure_channel(proxy) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/linnet.v1.TextService/Translate")(request, timeout=60)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "target_language_code" in raised.value.details()


def test_kubernetes_component_has_the_same_configuration():
    copy = ROOT / "deploy/kubernetes/components/edge/haproxy.cfg"
    assert copy.read_text() == edge.CONFIG.read_text()


def test_kubernetes_overlay_runs_the_configuration_in_the_pod():
    manifests = build(FOLDER / "overlays/edge")
    server, proxy = container(manifests), container(manifests, "edge")
    assert "--trusted-proxies=127.0.0.1" in server["args"]
    volumes = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]
    mounted = {it["name"]: it["configMap"]["name"] for it in volumes if "configMap" in it}
    config = of_kind(manifests, "ConfigMap")
    (mount,) = proxy["volumeMounts"]
    assert mounted == {mount["name"]: config["metadata"]["name"]}
    assert proxy["command"][-1] == f"{mount['mountPath']}/haproxy.cfg"
    (port,) = proxy["ports"]
    assert f":{port['containerPort']}}}" in config["data"]["haproxy.cfg"]
