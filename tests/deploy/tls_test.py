"""docs/TLS.md: its commands create the files of the server, the compose overlay and balancers.

The balancers and the servers are real processes, no containers: those are in container_test.py
and pod_test.py.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import certificates
import edge
import programs
import pytest
import yaml
from programs import ROOT
from replicas import BUNDLES, Server, free_port

OVERLAY = yaml.safe_load((ROOT / "docker-compose.tls.yml").read_text())["services"]
BASE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
BALANCERS = ROOT / "deploy/balancers"
IMAGE = re.fullmatch(r"\$\{LINNET_IMAGE:-(.*)\}", BASE["server"]["image"])[1]
GERMAN = "Wo ist der Bahnhof?\n"
UNAUTHENTICATED, UNAVAILABLE = 64 + 16, 64 + 14


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)  # nginx' workers run as nobody
    return certificates.make(folder)


def environment_of(name: str, folder: Path) -> dict[str, str]:
    """The environment of a container, with the folder that it has as /secrets."""
    variables = OVERLAY[name]["environment"]
    return {key: value.replace("/secrets", str(folder)) for key, value in variables.items()}


def server_with(program, folder: Path) -> Server:
    """A server with the settings of the overlay."""
    variables = environment_of("server", folder)
    return Server(program("linnet-server"), models=BUNDLES / "en-de", environment=variables)


@pytest.fixture(scope="module")
def secure(program, secrets) -> Iterator[Server]:
    server = server_with(program, secrets / "server")
    server.wait_for_ready()
    yield server
    server.stop()
    server.remove()


@pytest.fixture
def linnet(program, tmp_path):
    """linnet("health", …, NAME="value") → the finished process."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: it for name, it in os.environ.items() if not name.startswith("LINNET_")}
        return subprocess.run(
            [program("linnet"), *arguments],
            env={**kept, "HOME": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def translate(linnet, secrets):
    """The command of the page for compose, with another address and another token."""
    words = certificates.client_command(certificates.blocks()[1])
    (volume,) = (word for word in words if word.endswith(":/secrets:ro"))
    folder = volume.replace("$PWD", str(secrets.parent)).removesuffix(":/secrets:ro")

    def call(address: str, token: Path = secrets / "client/token", *flags: str):
        told = [word.replace("/secrets/", f"{folder}/") for word in words[words.index(IMAGE) + 1 :]]
        told[told.index("--server") + 1] = f"localhost:{address.rpartition(':')[2]}"
        assert Path(told[told.index("--token-file") + 1]).is_file()
        told[told.index("--token-file") + 1] = str(token)
        return linnet(*told, *flags)

    return call


# --- The server ---------------------------------------------------------------------------------


def test_only_a_caller_with_the_token_is_answered(secure, translate, tmp_path):
    assert translate(secure.grpc).stdout == GERMAN
    (tmp_path / "other").write_text("0" * 32)
    assert translate(secure.grpc, tmp_path / "other").returncode == UNAUTHENTICATED


def test_short_token_is_refused_with_the_documented_length(program, secrets):
    (shortest,) = re.findall(
        r"A token has at least (\d+) characters", certificates.PAGE.read_text()
    )
    tokens = secrets.parent / "short"
    tokens.write_text(f"{'0' * (int(shortest) - 1)} alice inference\n")
    variables = environment_of("server", secrets / "server") | {"LINNET_SERVER_TOKENS": str(tokens)}
    command = [program("linnet-server"), "--models", BUNDLES / "en-de"]
    command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"at least {shortest}" in done.stderr


def test_new_token_in_the_mounted_folder_is_accepted(secure, secrets, translate, tmp_path):
    (tmp_path / "token").write_text("1" * 40)
    tokens = secrets / "server/tokens"
    new = tokens.with_name("tokens.new")
    new.write_text(tokens.read_text() + f"{'1' * 40} bob inference\n")
    new.rename(tokens)
    end = time.monotonic() + 20
    while (done := translate(secure.grpc, tmp_path / "token")).returncode == UNAUTHENTICATED:
        assert time.monotonic() < end, done.stderr
    assert done.stdout == GERMAN


# --- Compose ------------------------------------------------------------------------------------


def test_health_check_works_with_the_overlay(secure, secrets, linnet):
    check = BASE["server"]["healthcheck"]["test"]
    assert check[:2] == ["CMD", "linnet"]
    assert "healthcheck" not in OVERLAY["server"]
    variables = environment_of("server", secrets / "server")
    assert linnet(*check[2:], LINNET_SERVER=secure.grpc, **variables).returncode == 0
    assert linnet(*check[2:], LINNET_SERVER=secure.grpc).returncode != 0, "it spoke plain text"


@pytest.mark.parametrize("name", ["server", "replica"])
def test_overlay_changes_no_flags(name):
    """A list in one compose file replaces that of another, for example --device for a GPU."""
    assert "command" not in OVERLAY[name]
    for part in ("environment", "volumes"):
        assert OVERLAY[name][part] == OVERLAY["server"][part]


@pytest.mark.parametrize("name", OVERLAY)
def test_files_of_a_service_are_in_its_folder(name, secrets):
    (volume,) = OVERLAY[name]["volumes"]
    folder = re.fullmatch(r"\$\{LINNET_SECRETS:-\./secrets\}/(\w+):/secrets:ro", volume)[1]
    told = [*OVERLAY[name].get("command", []), *OVERLAY[name].get("environment", {}).values()]
    files = [word.removeprefix("/secrets/") for word in told if word.startswith("/secrets/")]
    assert files or name == "balancer"
    for file in files:
        assert (secrets / folder / file).is_file()


def test_load_uses_a_token(secure, secrets, program):
    flags = [
        it.replace("/secrets", str(secrets / "client")) for it in OVERLAY["load"]["command"][1:]
    ]
    command = [program("linnet-load"), "--server", secure.grpc, "--from", "en", "--to", "de"]
    command += ["--rate", "5", "--duration", "1s", "--words", "2", "3", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "UNAUTHENTICATED" not in done.stdout


def test_client_of_the_image_can_read_the_files_of_its_user():
    """secrets/client belongs to the user of the image, so no command of this machine reads it."""
    words = certificates.client_command(certificates.blocks()[1])
    assert words == certificates.client_command((ROOT / "docker-compose.tls.yml").read_text())
    assert words[words.index(IMAGE) - 2 : words.index(IMAGE)] == ["--entrypoint", "linnet"]
    assert "$PWD/secrets/client:/secrets:ro" in words
    assert words[words.index("--network") + 1] == "host"


def test_owner_of_the_folders_is_the_container_user():
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    assert f"USER {certificates.OWNER}:{certificates.OWNER}\n" in dockerfile
    assert OVERLAY["balancer"]["user"] == f"{certificates.OWNER}:{certificates.OWNER}"
    assert f"chown -R {certificates.OWNER}:{certificates.OWNER} " in certificates.blocks()[1]


# --- Kubernetes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("secret", "files"), [("tls", 3), ("tokens", 1)])
def test_kubernetes_commands_create_the_secrets(secret, files, secrets):
    (command,) = re.findall(
        rf"^kubectl (create .* linnet-{secret} .*)$", certificates.blocks()[2], re.M
    )
    words = [programs.checker("kubectl"), *shlex.split(command), "--dry-run=client", "-o", "yaml"]
    done = subprocess.run(words, cwd=secrets.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load(done.stdout)["data"]
    assert len(made) == files
    for name, data in made.items():
        assert base64.b64decode(data) == (secrets / "server" / name).read_bytes()


# --- Balancers ----------------------------------------------------------------------------------


def haproxy(secrets: Path, replica: str, address: str) -> tuple[list[str], str, dict[str, str]]:
    config = (BALANCERS / "haproxy.cfg").read_text()
    server = f"    server replica {replica}"
    config, found = re.subn(r"^ *server-template .*$", server, config, flags=re.M)
    assert found == 1
    config = config.replace("bind :50050", f"bind {address}")
    command = [programs.find("haproxy"), "-db", "-f"]
    (variable,) = OVERLAY["balancer"]["environment"]
    return command, config, {**programs.environment(), variable: str(secrets / "server")}


def nginx(secrets: Path, replica: str, address: str) -> tuple[list[str], str, dict[str, str]]:
    config = (BALANCERS / "nginx-tls.conf").read_text()
    config = config.replace("/tmp/", f"{secrets.parent}/")
    config = config.replace("/secrets/", f"{secrets}/server/")
    config = config.replace("listen 50050", f"listen {address}")
    config = re.sub(r"replica-1:50051", replica, config)
    config = re.sub(r"^ *server replica-.*\n", "", config, flags=re.M)
    command = [programs.find("nginx"), "-g", "daemon off;", "-e", "stderr", "-c"]
    return command, config, programs.environment()


@pytest.fixture(params=[haproxy, nginx], ids=["haproxy", "nginx"])
def balancer(request, secrets, tmp_path):
    """balancer(replica) → the address of a balancer in front of it."""
    running: list[subprocess.Popen] = []

    def start(replica: str) -> str:
        address = f"127.0.0.1:{free_port()}"
        command, config, environment = request.param(secrets, replica, address)
        file = tmp_path / "config"
        file.write_text(config)
        running.append(subprocess.Popen([*command, str(file)], env=environment))
        end = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))):
            assert running[0].poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        return address

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_token_passes_a_balancer_with_tls_on_both_sides(
    secure, balancer, translate, linnet, tmp_path
):
    address = balancer(secure.grpc)
    end = time.monotonic() + 20  # the first health check of HAProxy
    while (done := translate(address)).returncode == UNAVAILABLE:
        assert time.monotonic() < end, done.stderr
    assert done.stdout == GERMAN
    (tmp_path / "other").write_text("0" * 32)
    assert translate(address, tmp_path / "other").returncode == UNAUTHENTICATED
    plain = linnet("translate", "--server", address, "--to", "de", "--timeout", "2s", "Hello.")
    assert plain.returncode != 0, "it answered in plain text"


def certificate_of(address: str) -> bytes | None:
    """In DER; None while nobody listens."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True)
    except ConnectionError:
        return None


def test_haproxy_has_a_renewed_certificate_after_the_command_of_the_page(tmp_path):
    """The container has the master process of HAProxy, `haproxy -W -db`, as its first."""
    secrets = certificates.make(tmp_path)
    _, request, sign = re.findall(
        r"^openssl (?:req|x509) (?:.*\\\n)*.*$", certificates.blocks()[0], re.M
    )
    address = f"127.0.0.1:{free_port()}"
    (program, *_), config, environment = haproxy(secrets, "127.0.0.1:9", address)
    (tmp_path / "config").write_text(config)
    command = [program, "-W", "-db", "-f", tmp_path / "config"]
    with subprocess.Popen(command, env=environment) as process:
        try:
            wait_until(lambda: certificate_of(address) is not None)
            former = certificate_of(address)
            renew = f"{request}\n{sign}\n".replace("server/tls.key", "server/tls.key.new")
            renew = renew.replace("server/tls.crt", "server/tls.crt.new")
            subprocess.run(["sh", "-e"], input=renew, cwd=tmp_path, text=True, check=True)
            for name in ("tls.key", "tls.crt"):
                (secrets / f"server/{name}.new").rename(secrets / f"server/{name}")
            assert certificate_of(address) == former
            (told,) = re.findall(
                r"exec balancer sh -c 'kill -(\w+) 1'", certificates.PAGE.read_text()
            )
            process.send_signal(getattr(signal, f"SIG{told}"))
            wait_until(lambda: certificate_of(address) not in (None, former))
        finally:
            process.terminate()


def wait_until(done: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_balancer_rejects_a_server_with_a_foreign_certificate(
    program, balancer, translate, tmp_path
):
    stranger = certificates.make(tmp_path)
    server = server_with(program, stranger / "server")
    try:
        server.wait_for_ready()
        done = translate(balancer(server.grpc), stranger / "client/token", "--wait", "3s")
        assert done.returncode != 0
        counts = re.findall(r"^linnet_requests_total\{.*\} (\S+)$", server.scrape(), re.MULTILINE)
        assert set(counts) == {"0"}
    finally:
        server.stop()
        server.remove()


def test_token_passes_the_edge_to_a_local_server(program, secrets, translate, tmp_path):
    """TLS ends before the server, as the comment in haproxy-edge.cfg describes."""
    both = tmp_path / "both.pem"
    both.write_bytes(
        b"".join((secrets / "server" / it).read_bytes() for it in ("tls.crt", "tls.key"))
    )
    flags = ("--tokens", str(secrets / "server/tokens"))
    server = Server(program("linnet-server"), *flags, models=BUNDLES / "en-de")
    try:
        server.wait_for_ready()
        process, address = edge.start(tmp_path, server.grpc, f"ssl crt {both} alpn h2")
        try:
            assert translate(address).stdout == GERMAN
            (tmp_path / "other").write_text("0" * 32)
            assert translate(address, tmp_path / "other").returncode == UNAUTHENTICATED
        finally:
            process.terminate()
            process.wait(60)
    finally:
        server.stop()
        server.remove()


def test_nginx_configurations_differ_only_in_tls():
    def lines(name: str) -> list[str]:
        text = (
            (BALANCERS / name)
            .read_text()
            .replace("grpcs://", "grpc://")
            .replace(" ssl http2", " http2")
        )
        return [
            line for line in text.splitlines() if "ssl_" not in line and not line.startswith("#")
        ]

    assert lines("nginx-tls.conf") == lines("nginx.conf")
