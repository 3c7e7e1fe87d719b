"""docker-compose.tls.yml over docker-compose.yml, run with the files that docs/TLS.md creates.

In containers, so slow, and skipped where there is no engine: see container_test.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from containers import Container, Project, skip, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = certificates.make(tmp_path_factory.mktemp("compose"))
    for file in folder.rglob("*"):  # instead of chown, which needs root
        file.chmod(0o755 if file.is_dir() else 0o644)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def server(engine, image, secrets) -> Iterator[Container]:
    if not Project.command(engine):
        skip(f"{engine.command} has nothing that runs compose files")
    project = Project(engine, image, "docker-compose.tls.yml")
    project.environment["LINNET_SECRETS"] = str(secrets)
    try:
        project("up", "--detach", "--no-build", "server")
        yield project.service("server")
    finally:
        project.down(check=False)


def test_server_is_healthy(server):
    wait_until(server.healthy, "healthy")


def test_only_a_caller_with_the_token_is_answered(server, secrets):
    wait_until(server.healthy, "healthy")
    ask = "linnet translate --to de 'A dog runs across the street.'"
    assert server.exec("sh", "-c", ask, check=False).returncode == 64 + 16  # UNAUTHENTICATED
    token = (secrets / "client/token").read_text().strip()
    given = f"printf {token} >/tmp/token && {ask} --token-file /tmp/token"
    assert server.exec("sh", "-c", given).stdout == "Ein Hund läuft über die Straße.\n"


def test_plain_text_is_refused(server):
    wait_until(server.healthy, "healthy")
    plain = server.exec("linnet", "health", "--tls=false", "--timeout", "2s", check=False)
    assert plain.returncode == 78
