"""The installed service under a real systemd: started, stopped, killed, and failing at each start.

In a container whose first process is systemd, so slow, and skipped where podman cannot run one;
systemd_test.py reads the unit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import APT, Container, skip, wait_until
from replicas import free_port

pytestmark = pytest.mark.slow

SERVICE = "linnet-server"
PAUSE = 10  # RestartSec of the unit


@pytest.fixture(scope="module")
def machine(engine, packed: Path) -> Iterator[Container]:
    """A Debian that was started by systemd, with the server and the client installed."""
    if engine.command != "podman":
        skip("docker has no --systemd, which prepares a container for systemd")
    packed.chmod(0o755)
    # The network of the machine, from which packages can be fetched.
    flags = ("--network", "host", "--volume", f"{packed}:/packages:ro")
    container = engine.start(engine.base, *flags, arguments=("sleep", "infinity"))
    booted = None
    image = f"{container.name}-systemd"
    try:
        container.exec(*APT, "update")
        names = f"systemd /packages/{SERVICE}_*.deb /packages/linnet-client_*.deb"
        install = f"{' '.join(APT)} install --no-install-recommends {names}"
        container.exec("sh", "-c", install)
        engine("commit", "--quiet", container.name, image)
        booted = engine.start(
            image, "--systemd=always", "--network", "host", arguments=("/lib/systemd/systemd",)
        )
        wait_until(lambda: state(booted) in ("running", "degraded"), "systemd has started")
        yield booted
    finally:
        for one in (booted, container):
            if one is not None:
                one.remove()
        engine("rmi", "--force", image, check=False)


def state(machine: Container) -> str:
    return machine.exec("systemctl", "is-system-running", check=False).stdout.strip()


def properties(machine: Container) -> dict[str, str]:
    names = "ActiveState,SubState,Result,NRestarts,MainPID,ExecMainStatus"
    shown = machine.exec("systemctl", "show", SERVICE, f"--property={names}").stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def configure(machine: Container, flags: str, models: str = "/usr/share/linnet/models") -> None:
    """Writes /etc/default/linnet-server and forgets earlier failures."""
    lines = f"LINNET_MODELS={models}\\nLINNET_FLAGS={flags}\\n"
    machine.exec("sh", "-c", f"printf '{lines}' >/etc/default/{SERVICE}")
    machine.exec("systemctl", "stop", SERVICE, check=False)
    machine.exec("systemctl", "reset-failed", check=False)


@pytest.fixture
def address(machine) -> Iterator[str]:
    """The service, configured with a free port and stopped after the test."""
    grpc, metrics = free_port(), free_port()
    configure(
        machine,
        f"--listen 127.0.0.1:{grpc} --metrics-listen 127.0.0.1:{metrics} --threads 1",
    )
    yield f"127.0.0.1:{grpc}"
    machine.exec("systemctl", "stop", SERVICE, check=False)


def translates(machine: Container, address: str) -> bool:
    ask = ("linnet", "translate", "--server", address, "--to", "de", "The dog sleeps.")
    return "Hund" in machine.exec(*ask, check=False).stdout


def journal(machine: Container) -> str:
    return machine.exec("journalctl", "--no-pager", "-u", SERVICE).stdout


def test_starts_answers_and_drains(machine, address):
    machine.exec("systemctl", "start", SERVICE)
    wait_until(lambda: translates(machine, address), "an answer")
    process = f"/proc/{properties(machine)['MainPID']}"
    user = int(machine.exec("stat", "-c", "%u", process).stdout)
    assert 61184 <= user <= 65519, "a user of DynamicUser, systemd.exec(5)"
    machine.exec("systemctl", "stop", SERVICE)
    after = properties(machine)
    assert (after["ActiveState"], after["Result"], after["ExecMainStatus"]) == (
        "inactive",
        "success",
        "0",
    )
    assert "draining signal=15" in journal(machine)


def test_is_started_again_after_it_was_killed(machine, address):
    machine.exec("systemctl", "start", SERVICE)
    wait_until(lambda: translates(machine, address), "an answer")
    first = properties(machine)["MainPID"]
    killed = time.monotonic()
    machine.exec("systemctl", "kill", "--signal=KILL", SERVICE)
    wait_until(lambda: properties(machine)["NRestarts"] == "1", "a restart")
    assert time.monotonic() - killed >= PAUSE - 1
    wait_until(lambda: translates(machine, address), "an answer of the new process")
    assert properties(machine)["MainPID"] != first


def test_is_not_started_again_with_a_wrong_flag(machine):
    configure(machine, "--no-such-flag")
    machine.exec("systemctl", "start", SERVICE, check=False)
    wait_until(lambda: properties(machine)["ActiveState"] == "failed", "it has failed")
    time.sleep(PAUSE + 2)
    after = properties(machine)
    assert (after["ActiveState"], after["ExecMainStatus"], after["NRestarts"]) == (
        "failed",
        "2",
        "0",
    )


def test_gives_up_after_five_starts(machine):
    """A server that ends right after each start, here because it finds no models."""
    configure(machine, "", models="/nowhere")
    began = time.monotonic()
    machine.exec("systemctl", "start", SERVICE, check=False)
    wait_until(lambda: properties(machine)["SubState"] == "failed", "systemd gives up", seconds=180)
    after = properties(machine)
    assert (after["ActiveState"], after["ExecMainStatus"]) == ("failed", "1")
    assert after["NRestarts"] == "5", "the fifth restart is the one that is refused"
    assert time.monotonic() - began >= 4 * PAUSE - 1
    assert "Start request repeated too quickly" in journal(machine)
    refused = machine.exec("systemctl", "start", SERVICE, check=False)
    assert refused.returncode != 0, "not even by hand, before systemctl reset-failed"
