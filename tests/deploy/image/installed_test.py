"""The Debian packages, installed on a bare Debian, used, and purged.

In a container, so slow, and skipped where there is no engine: see container_test.py.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import APT, Container, wait_until
from replicas import free_port

pytestmark = pytest.mark.slow

NAMES = ("linnet-server", "linnet-model", "linnet-http", "linnet-client", "linnet-dev")


@pytest.fixture(scope="module")
def machine(engine, packed: Path) -> Iterator[Container]:
    """A Debian with the packages and their dependencies."""
    packed.chmod(0o755)
    # The network of the machine, from which packages can be fetched.
    flags = ("--network", "host", "--volume", f"{packed}:/packages:ro")
    container = engine.start(engine.base, *flags, arguments=("sleep", "infinity"))
    try:
        container.exec(*APT, "update")
        install = f"{' '.join(APT)} install --no-install-recommends /packages/*.deb"
        container.exec("sh", "-c", install)
        yield container
    finally:
        container.remove()


def test_every_package_is_configured(machine):
    for name in NAMES:
        status = machine.exec("dpkg-query", "-W", "-f", "${db:Status-Status}", name).stdout
        assert status == "installed"


def test_installed_client_and_linnet_http_call_installed_server(machine):
    grpc, metrics, http = free_port(), free_port(), free_port()
    flags = f"--listen 127.0.0.1:{grpc} --metrics-listen 127.0.0.1:{metrics} --threads 1"
    serve = f"linnet-server --models /usr/share/linnet/models {flags}"
    machine.exec("sh", "-c", f"{serve} >/tmp/log 2>&1 & echo $! >/tmp/pid")
    ask = ("linnet", "translate", "--server", f"127.0.0.1:{grpc}", "--to", "de")

    def answer() -> str:
        return machine.exec(*ask, "Where is the train station?", check=False).stdout

    assert wait_until(answer, "an answer") == "Wo ist der Bahnhof?\n"
    flags = f"--server 127.0.0.1:{grpc} --listen 127.0.0.1:{http} --glossaries /tmp/glossaries"
    machine.exec("sh", "-c", f"linnet-http {flags} >/tmp/http 2>&1 & echo $! >>/tmp/pid")
    wait_until(lambda: "ready http=" in machine.exec("cat", "/tmp/http").stdout, "linnet-http")
    body = b"q=Where is the train station?&source=en&target=de"
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/translate", body, timeout=60) as reply:
        assert json.load(reply)["translatedText"] == "Wo ist der Bahnhof?"
    machine.exec("sh", "-c", "kill -TERM $(cat /tmp/pid)")
    wait_until(lambda: "draining signal=15" in machine.exec("cat", "/tmp/log").stdout, "it ends")


def test_installed_linnet_model_checks_a_bundle(machine):
    checked = machine.exec("linnet-model", "check", "/usr/share/linnet/models/en-de")
    assert " golden examples in float32" in checked.stdout
    missing = machine.exec("linnet-model", "info", "/nowhere", check=False)
    assert (missing.returncode, missing.stderr) == (1, "linnet-model info: nothing at /nowhere\n")


@pytest.mark.parametrize("name", ["linnet-server", "linnet-http"])
def test_installed_unit_starts_an_existing_program(machine, name):
    unit = machine.exec("cat", f"/usr/lib/systemd/system/{name}.service").stdout
    (start,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    program = start.removeprefix("ExecStart=").split()[0]
    assert machine.exec(program, "--version").stdout.startswith(f"{name} ")
    assert machine.exec("cat", f"/etc/default/{name}").stdout.startswith("#")


def test_purge_leaves_nothing(machine):
    """Runs last: it removes the packages."""
    files = machine.exec("dpkg", "-L", *NAMES).stdout.split("\n")
    ours = {path for path in files if "linnet" in path}
    assert len(ours) > 50
    machine.exec(*APT, "purge", *NAMES)
    # A folder stands for its thousands of files, which no command line has room for.
    tops = sorted(path for path in ours if str(Path(path).parent) not in ours)
    left = machine.exec("sh", "-c", f"ls -d {' '.join(tops)} 2>/dev/null", check=False).stdout
    assert left == ""
