"""`linnet` with a server that authenticates: TLS, certificates, tokens, and `linnet reload`."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from security_test import Authority

HIDDEN = ("XDG_", "LINNET_CONFIG")  # what leads away from the settings file below HOME
TRANSLATE = ("translate", "--from", "en", "--to", "de", "A bird sings.")


@pytest.fixture
def linnet(linnet_binary, tmp_path):
    """linnet(server, "health", …, variables={}) → the finished process."""

    def run(server: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        home = {"HOME": str(tmp_path), "LINNET_SERVER": server}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        return subprocess.run(
            [str(linnet_binary), *arguments],
            env={**kept, **home, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def host_of(server) -> str:
    """The server's address under the host name of its certificate."""
    return f"localhost:{server.grpc.rsplit(':', 1)[1]}"


def test_trusts_only_the_right_authority_and_name(start, linnet, tmp_path):
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    authority.sign("server")
    server = start(
        *("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key"))
    )
    ours = ("--tls-ca", str(authority.folder / "ca.pem"))
    assert linnet(host_of(server), *TRANSLATE, *ours).returncode == 0
    plain = linnet(host_of(server), *TRANSLATE)
    assert plain.returncode == 64 + 14
    assert "without TLS?" in plain.stderr
    for flags in (["--tls"], ["--tls-ca", str(other.folder / "ca.pem")]):
        refused = linnet(host_of(server), *TRANSLATE, *flags)
        assert refused.returncode == 64 + 14
        assert "certificate" in refused.stderr.lower(), refused.stderr
    named = linnet(server.grpc, *TRANSLATE, *ours)
    assert named.returncode == 64 + 14, "the certificate is for localhost, not for 127.0.0.1"
    assert linnet(server.grpc, *TRANSLATE, *ours, "--tls-server-name", "localhost").returncode == 0
    assert server.stop() == 0


def test_changed_certificates_apply_to_the_next_connection(start, program, tmp_path):
    """While a client runs: both the authorities that it trusts and its own certificate."""
    (tmp_path / "next").mkdir()
    authority, later = Authority(tmp_path), Authority(tmp_path / "next")
    for name in ("server", "client"):
        authority.sign(name)
        later.sign(name)

    def serve(folder, *listen: str):
        return start(
            *("--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key")),
            *("--tls-client-ca", str(folder / "ca.pem"), *listen),
        )

    server = serve(tmp_path)
    address = host_of(server)
    client = subprocess.Popen(
        [
            *(program("conformance_client"), "each", address, "2", "1", ".1", ".1"),
            *(tmp_path / name for name in ("ca.pem", "client.pem", "client.key")),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )

    def answer() -> str:
        """A translation or an error."""
        client.stdin.write("A bird sings.\n")
        return client.stdout.readline()

    translation = answer()
    assert "UNAVAILABLE" not in translation
    assert server.stop() == 0
    server = serve(tmp_path / "next", "--listen", server.grpc)
    assert "UNAVAILABLE" in answer(), "its authority is not yet trusted"
    for name in ("ca.pem", "client.pem", "client.key"):
        (tmp_path / "next" / name).replace(tmp_path / name)
    end = time.monotonic() + 60
    while (said := answer()) != translation:
        assert "UNAVAILABLE" in said
        assert time.monotonic() < end
        time.sleep(0.2)
    client.stdin.close()
    assert client.wait(20) == 0
    assert server.stop() == 0


def test_reads_credentials_from_flags_environment_and_file(start, linnet, tmp_path):
    authority = Authority(tmp_path)
    for name in ("server", "client"):
        authority.sign(name)
    tokens = tmp_path / "tokens"
    tokens.write_text("search-0123456789abcdef search inference\nops-0123456789abcdef ops admin\n")
    for name in ("search", "ops"):
        (tmp_path / name).write_text(f"{name}-0123456789abcdef\n")
    server = start(
        *("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key")),
        *("--tls-client-ca", str(tmp_path / "ca.pem"), "--tokens", str(tokens)),
    )
    ca = ["--tls-ca", str(tmp_path / "ca.pem")]
    certificate = [
        *("--tls-cert", str(tmp_path / "client.pem")),
        *("--tls-key", str(tmp_path / "client.key")),
    ]
    search = ["--token-file", str(tmp_path / "search")]
    assert linnet(host_of(server), *TRANSLATE, *ca, *search).returncode == 64 + 14
    unknown = linnet(host_of(server), *TRANSLATE, *ca, *certificate)
    assert unknown.returncode == 64 + 16
    assert "LINNET_TOKEN_FILE" in unknown.stderr
    known = linnet(host_of(server), *TRANSLATE, *ca, *certificate, *search)
    assert known.returncode == 0, known.stderr

    variables = {
        "LINNET_TLS_CA": str(tmp_path / "ca.pem"),
        "LINNET_TLS_CERT": str(tmp_path / "client.pem"),
        "LINNET_TLS_KEY": str(tmp_path / "client.key"),
        "LINNET_TOKEN_FILE": str(tmp_path / "search"),
    }
    assert linnet(host_of(server), *TRANSLATE, **variables).stdout == known.stdout
    config = tmp_path / ".config/linnet/config"
    config.parent.mkdir(parents=True)
    config.write_text(
        "".join(
            f"{name.removeprefix('LINNET_').lower().replace('_', '-')} = {value}\n"
            for name, value in variables.items()
        )
    )
    assert linnet(host_of(server), *TRANSLATE).stdout == known.stdout

    # The same address accepts administration with the administrator's token.
    refused = linnet(host_of(server), "reload")
    assert refused.returncode == 64 + 7, refused.stderr
    done = linnet(host_of(server), "reload", "--token-file", str(tmp_path / "ops"))
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["unchanged"] * 2
    assert server.stop() == 0


def test_reload_command_reports_each_model(start, linnet, copied_bundle):
    server = start("--admin-listen", "127.0.0.1:0", models=copied_bundle.parent)
    admin = server.admin
    done = linnet(admin, "reload")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unchanged  en-de ")
    (copied_bundle / "manifest.json").write_text("{")
    failed = linnet(admin, "reload", "en-de")
    assert failed.returncode == 1
    assert failed.stdout.startswith("failed     en-de")
    assert "manifest" in failed.stdout
    assert linnet(server.grpc, *TRANSLATE).returncode == 0, "the former model keeps serving"
    unknown = linnet(admin, "reload", "babel")
    assert unknown.returncode == 64 + 5
    assert server.stop() == 0
