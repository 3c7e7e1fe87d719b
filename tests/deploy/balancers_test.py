"""Three replicas behind each balancer of deploy/balancers: clients notice no failure of a replica.

All are processes: no container is needed. The tests change only addresses in the files that ship.
They take minutes, so they are marked slow.
"""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import http2
import programs
import pytest
from concurrent_calls import ConcurrentCalls, failures, percentile
from programs import ROOT
from replicas import BUNDLES, Server, free_port

pytestmark = pytest.mark.slow

FOLDER = ROOT / "deploy/balancers"
CALLERS = 6
STALL_SECONDS, RUN_SECONDS = 4.5, 0.5  # of a replica with a tenth of a CPU
NOTICE_SECONDS = 3  # two checks of haproxy.cfg that wait a second each, and a margin
GERMAN = "Wo ist der Bahnhof?"


@pytest.fixture(scope="module")
def replicas(program) -> Iterator[list[Server]]:
    # The first as in docker-compose.yml, the second as for shares of the balancer's clients.
    flags = ("--lame-duck", "2", "--trusted-proxies", "127.0.0.1")
    binary = program("linnet-server")
    servers = [Server(binary, *flags, models=BUNDLES / "en-de") for _ in range(3)]
    for server in servers:
        server.wait_for_ready()
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def whole(replicas) -> list[Server]:
    """The same replicas, restarted if the previous test stopped them."""
    for server in replicas:
        if server.process.poll() is not None:
            server.start()
            server.wait_for_ready()
    return replicas


def haproxy(replicas: list[Server], folder: Path) -> tuple[list[str], str]:
    """The command, and the address that it listens on."""
    config = (FOLDER / "haproxy.cfg").read_text()
    servers = [f"    server replica-{i} {it.grpc}" for i, it in enumerate(replicas)]
    config, found = re.subn(r"^ *server-template .*$", "\n".join(servers), config, flags=re.M)
    assert found == 1
    return [programs.find("haproxy"), "-db", "-f"], config


def nginx(replicas: list[Server], folder: Path) -> tuple[list[str], str]:
    config = (FOLDER / "nginx.conf").read_text().replace("/tmp/", f"{folder}/")
    for i, server in enumerate(replicas):
        assert config.count(f"replica-{i + 1}:50051") == 1
        config = config.replace(f"replica-{i + 1}:50051", server.grpc)
    return [programs.find("nginx"), "-g", "daemon off;", "-e", "stderr", "-c"], config


@pytest.fixture(scope="module", params=["haproxy", "nginx", "client"])
def balanced(request, replicas, tmp_path_factory) -> Iterator[str]:
    """The address that a client calls: that of a balancer, or of all replicas."""
    if request.param == "client":
        yield "ipv4:" + ",".join(server.grpc for server in replicas)
        return
    folder = tmp_path_factory.mktemp(request.param)
    folder.chmod(0o755)
    command, config = {"haproxy": haproxy, "nginx": nginx}[request.param](replicas, folder)
    address = f"127.0.0.1:{free_port()}"
    config, found = re.subn(r"(bind|listen) :?50050", rf"\1 {address}", config)
    assert found in (1, 2)  # HAProxy has two lines, with TLS and without, and reads one
    file = folder / "config"
    file.write_text(config)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, str(file)], env=programs.environment(), stdout=log, stderr=log
        )
    yield address
    assert process.poll() is None, (folder / "log").read_text()
    process.terminate()
    process.wait(60)


@pytest.fixture
def callers(balanced, whole) -> Iterator[ConcurrentCalls]:
    """Running callers that have been answered."""
    alone = balanced.startswith("ipv4:")
    config = "client_balances.json" if alone else "client_retries.json"
    running = ConcurrentCalls(balanced, config, CALLERS)
    running.wait_for_calls(20)
    yield running
    running.stop()


def test_headers_that_a_client_forges_reach_no_replica(balanced, whole):
    if balanced.startswith("ipv4:"):
        pytest.skip("these clients call the replicas themselves")
    forged = {"x-forwarded-for": "203.0.113.5", "x-client-certificate-subject": "alice"}
    clients: set[str] = set()
    end = time.monotonic() + 30
    while not clients:  # until the balancer has begun and found a replica
        assert time.monotonic() < end, "no replica was called"
        try:
            client = http2.RawClient(balanced, source="127.0.0.2")
        except ConnectionRefusedError:
            time.sleep(0.05)
            continue
        # Without the name of a model it is refused, which the log shows.
        stream = client.call("GetModel", b"", **{"x-request-id": "forged", **forged})
        client.wait_for(http2.HEADERS, stream)
        client.close()
        for server in whole:
            logged = re.findall(r"client=(\S+) request_id=forged", server.log.read_text())
            clients.update(logged)
    assert clients == {"ipv4:127.0.0.2"}


def answered(server: Server) -> float:
    (count,) = re.findall(
        r'^linnet_requests_total\{code="OK",method="Translate"\} (\S+)$', server.scrape(), re.M
    )
    return float(count)


def wait_until_called(server: Server, seconds: float = 60) -> None:
    """Waits until it has answered a few more calls."""
    wanted, end = answered(server) + 5, time.monotonic() + seconds
    while answered(server) < wanted:
        assert time.monotonic() < end, f"{server.grpc} is not called"
        time.sleep(0.1)


def test_killed_replica_loses_no_call(callers, replicas):
    victim = replicas[0]
    wait_until_called(victim)
    victim.kill()
    callers.wait_for_calls(60)
    victim.start()
    victim.wait_for_ready()
    wait_until_called(victim)  # the balancer uses it again
    calls = callers.stop()
    assert not failures(calls)
    assert {call.said for call in calls} == {GERMAN}


def test_rolling_restart_loses_no_call(callers, replicas):
    for server in replicas:
        assert server.stop() == 0
        server.start()
        server.wait_for_ready()
        wait_until_called(server)
    calls = callers.stop()
    assert not failures(calls)
    assert {call.said for call in calls} == {GERMAN}


class Stalling:
    """Stops a server for nine tenths of the time, so that its health check is slow as well."""

    def __init__(self, server: Server):
        self.server = server
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.over.is_set():
            self.server.process.send_signal(signal.SIGSTOP)
            self.over.wait(STALL_SECONDS)
            self.server.process.send_signal(signal.SIGCONT)
            self.over.wait(RUN_SECONDS)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_) -> None:
        self.over.set()
        self.thread.join()


@pytest.mark.parametrize("balanced", ["haproxy"], indirect=True)
def test_stalled_replica_is_taken_out_until_it_recovers(callers, replicas):
    """The other balancers have no health check with a timeout: docs/DEPLOYMENT.md."""
    victim = replicas[0]
    wait_until_called(victim)
    with Stalling(victim):
        time.sleep(NOTICE_SECONDS)
        settled, by_then = time.monotonic(), answered(victim)
        time.sleep(2 * (STALL_SECONDS + RUN_SECONDS))
        end, by_now = time.monotonic(), answered(victim)
    wait_until_called(victim)
    calls = callers.stop()
    assert not failures(calls)
    during = [call for call in calls if settled <= call.begin < end]
    assert by_now - by_then < 0.02 * len(during)
    assert percentile(during, 0.99) < STALL_SECONDS
