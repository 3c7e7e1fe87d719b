"""Authentication and encryption."""

from __future__ import annotations

import os
import re
import subprocess
import time

import grpc
import pytest

SEARCH = "search-0123456789abcdef"
OPS = "ops-0123456789abcdef"
GUEST = "guest-0123456789abcdef"
CERTIFICATE_END = "linnet_tls_certificate_end_timestamp_seconds"


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder; it signs NAME.pem with NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        openssl(
            *[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=authority",
            ],
            *("-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem")),
        )

    def sign(self, name: str, days: int = 2) -> None:
        path = {end: str(self.folder / f"{name}.{end}") for end in ("key", "csr", "ext", "new")}
        (self.folder / f"{name}.ext").write_text(f"subjectAltName=DNS:localhost,DNS:{name}")
        openssl(
            *f"req -newkey rsa:2048 -nodes -subj /CN={name}".split(),
            *("-keyout", path["key"], "-out", path["csr"]),
        )
        ca = [str(self.folder / "ca.pem"), str(self.folder / "ca.key")]
        openssl(
            *("x509", "-req", "-in", path["csr"], "-out", path["new"], "-days", str(days)),
            *("-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial", "-extfile", path["ext"]),
        )
        (self.folder / f"{name}.new").replace(self.folder / f"{name}.pem")

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def serial(self, address: str) -> str:
        """The serial number of the certificate that a server shows."""
        shown = subprocess.run(
            ["openssl", "s_client", "-connect", address, "-alpn", "h2"],
            input=b"",
            capture_output=True,
            timeout=20,
        ).stdout
        return subprocess.run(
            ["openssl", "x509", "-noout", "-serial"], input=shown, capture_output=True
        ).stdout.decode()


def channel_to(server, authority, client: str = "") -> grpc.Channel:
    key = (
        (authority.read(f"{client}.key"), authority.read(f"{client}.pem"))
        if client
        else (None,) * 2
    )
    credentials = grpc.ssl_channel_credentials(authority.read("ca.pem"), *key)
    options = [("grpc.ssl_target_name_override", "localhost"), ("grpc.enable_retries", 0)]
    return grpc.secure_channel(server.grpc, credentials, options)


def code(server, channel=None, token: str = "", method: str = "Translate") -> grpc.StatusCode:
    if channel is not None:
        server.channel = channel
    request = server.api.TranslateRequest(
        contents=["A bird sings."], source_language_code="en", target_language_code="de"
    )
    if method != "Translate":
        request = server.api.ListModelsRequest()
    headers = [("authorization", f"Bearer {token}")] if token else []
    try:
        server.method(method)(request, timeout=20, metadata=headers)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{SEARCH} search inference\n{OPS} ops admin\n")
    return path


def test_tokens_authorize_calls_and_are_reread(start, tokens):
    server = start("--tokens", str(tokens), "--log-level", "debug")
    assert code(server, token=SEARCH) == grpc.StatusCode.OK
    assert code(server, token=SEARCH, method="ListModels") == grpc.StatusCode.OK
    assert code(server) == grpc.StatusCode.UNAUTHENTICATED
    assert code(server, token=SEARCH[:-1]) == grpc.StatusCode.UNAUTHENTICATED
    assert code(server, token=OPS) == grpc.StatusCode.PERMISSION_DENIED
    assert server.health("") == 1, "health needs no token"
    tokens.write_text("not a table")
    time.sleep(0.6)
    assert code(server, token=SEARCH) == grpc.StatusCode.OK, "the former tokens stay valid"
    tokens.write_text(f"{GUEST} guest inference\n")
    end = time.monotonic() + 20
    while code(server, token=GUEST) != grpc.StatusCode.OK:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert code(server, token=SEARCH) == grpc.StatusCode.UNAUTHENTICATED
    log = server.log.read_text()
    assert not [secret for secret in (SEARCH, OPS, GUEST, "A bird") if secret in log]
    assert "tokens_not_read" in log
    assert server.stop() == 0


def test_refuses_tokens_in_plain_text_over_a_network(run_server, bundles, tokens):
    status, _, stderr = run_server(
        *("--models", str(bundles / "en-de"), "--tokens", str(tokens)),
        *("--listen", "0.0.0.0:0", "--metrics-listen", "127.0.0.1:0"),
    )
    assert status == 1
    assert "--tls-cert" in stderr


def test_accepts_plain_text_tokens_behind_a_tls_proxy(start, run_server, tokens):
    server = start(
        *("--tokens", str(tokens), "--listen", "0.0.0.0:0", "--tls-terminated-upstream", "true")
    )
    port = server.grpc.rsplit(":", 1)[1]
    server.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    assert code(server, token=SEARCH) == grpc.StatusCode.OK
    assert code(server) == grpc.StatusCode.UNAUTHENTICATED
    assert code(server, token=SEARCH[:-1]) == grpc.StatusCode.UNAUTHENTICATED
    assert code(server, token=OPS) == grpc.StatusCode.PERMISSION_DENIED
    reload = server.channel.unary_unary("/linnet.v1.AdminService/GetBatch")
    for token, wanted in ((OPS, None), (SEARCH, grpc.StatusCode.PERMISSION_DENIED)):
        error = reload.future(
            b"", timeout=20, metadata=[("authorization", f"Bearer {token}")]
        ).exception()
        assert (error and error.code()) == wanted
    assert server.health("") == 1
    assert server.metric('linnet_denied_total{code="UNAUTHENTICATED"}') == 2
    assert server.metric('linnet_denied_total{code="PERMISSION_DENIED"}') == 2
    # Nor is it among the calls, or, without a valid token, in the log, which anybody could fill.
    page = server.scrape()
    assert not re.findall(r'^linnet_requests_total\{.*code="(UNAUTH|PERM).*$', page, re.MULTILINE)
    assert server.stop() == 0
    log = server.log.read_text()
    assert "UNAUTHENTICATED" not in log
    assert log.count("code=PERMISSION_DENIED") == 2


def test_certificate_that_becomes_a_fifo_does_not_stop_the_end(start, tmp_path):
    authority = Authority(tmp_path)
    authority.sign("server")
    flags = ["--tls-cert", tmp_path / "server.pem", "--tls-key", tmp_path / "server.key"]
    server = start(*map(str, flags), "--drain-timeout", "1")
    (tmp_path / "server.pem").unlink()
    os.mkfifo(tmp_path / "server.pem")
    time.sleep(6)  # gRPC reads it again every 5 s, and then waits for a writer
    server.process.terminate()
    assert server.process.wait(20) == 0


def test_token_may_limit_priority(start, tokens):
    tokens.write_text(f"{SEARCH} search inference max-priority=normal\n")
    server = start("--tokens", str(tokens))

    def outcome(*headers: tuple[str, str], **fields) -> str:
        request = server.api.TranslateRequest(
            contents=["A bird."], source_language_code="en", target_language_code="de", **fields
        )
        known = [("authorization", f"Bearer {SEARCH}"), *headers]
        error = server.method("Translate").future(request, timeout=20, metadata=known).exception()
        return error.code().name if error else "OK"

    batch, normal, interactive = 1, 2, 3
    assert outcome() == outcome(priority=normal) == outcome(priority=batch) == "OK"
    assert outcome(priority=interactive) == "PERMISSION_DENIED"
    assert outcome(("x-priority", "interactive")) == "PERMISSION_DENIED"
    assert outcome(("x-priority", "batch")) == "OK"
    assert outcome(("x-priority", "interactive"), priority=batch) == "OK", "the field decides"
    document = server.api.TranslateDocumentRequest(
        settings={"target_language_code": "de", "priority": interactive}
    )
    with pytest.raises(grpc.RpcError) as refused:
        list(
            server.method("TranslateDocument", "stream_stream")(
                iter([document]), timeout=20, metadata=[("authorization", f"Bearer {SEARCH}")]
            )
        )
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert server.api.check_error(refused.value)["ErrorInfo"].reason == "PERMISSION_DENIED"
    assert server.metric('linnet_denied_total{code="PERMISSION_DENIED"}') == 3
    assert server.stop() == 0
    assert "code=PERMISSION_DENIED" in server.log.read_text()


def test_rejects_unusable_tls_files_at_startup(run_server, bundles, tmp_path):
    authority = Authority(tmp_path)
    authority.sign("server")
    authority.sign("other")
    empty, locked = tmp_path / "empty.pem", tmp_path / "locked.key"
    empty.write_text("no certificate\n")
    openssl(
        *("pkey", "-in", str(tmp_path / "server.key"), "-out", str(locked)),
        *("-aes256", "-passout", "pass:word"),
    )

    def complaint(certificate: str, key: str, *flags: str) -> str:
        status, _, stderr = run_server(
            *("--models", str(bundles / "en-de"), "--metrics-listen", "127.0.0.1:0"),
            *("--listen", "127.0.0.1:0", *flags),
            *("--tls-cert", str(tmp_path / certificate), "--tls-key", str(tmp_path / key)),
        )
        assert status == 1
        return stderr

    assert f"{empty} holds no certificate in PEM" in complaint("empty.pem", "server.key")
    assert f"{empty} holds no private key" in complaint("server.pem", "empty.pem")
    assert f"{locked} holds no private key without a pass" in complaint("server.pem", "locked.key")
    assert "does not belong to the certificate" in complaint("server.pem", "other.key")
    assert f"cannot read {tmp_path / 'none'}" in complaint("none", "server.key")
    mutual = complaint("server.pem", "server.key", "--tls-client-ca", str(empty))
    assert f"{empty} holds no certificate in PEM" in mutual


def test_new_certificate_is_used_without_a_restart(start, tmp_path):
    authority = Authority(tmp_path)
    authority.sign("server")
    server = start(
        *("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key"))
    )
    assert code(server) == grpc.StatusCode.UNAVAILABLE, "plain text is refused"
    assert code(server, channel_to(server, authority)) == grpc.StatusCode.OK
    first = authority.serial(server.grpc)
    assert first.startswith("serial=")
    end_of_first = server.metric(CERTIFICATE_END)
    assert 0 < end_of_first - time.time() <= 2 * 86400
    authority.sign("server", days=1)  # Ends are whole seconds: two of one length could be equal.
    end = time.monotonic() + 30
    while authority.serial(server.grpc) == first:
        assert time.monotonic() < end
        time.sleep(0.5)
    assert code(server, channel_to(server, authority)) == grpc.StatusCode.OK
    server.wait_for(CERTIFICATE_END, lambda end: end < end_of_first)
    assert server.stop() == 0


def test_requires_both_certificate_and_token(start, tmp_path, tokens):
    authority = Authority(tmp_path)
    for name in ("server", "client"):
        authority.sign(name)
    server = start(
        *("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key")),
        *("--tls-client-ca", str(tmp_path / "ca.pem"), "--tokens", str(tokens)),
    )
    assert code(server, channel_to(server, authority), SEARCH) == grpc.StatusCode.UNAVAILABLE
    known = channel_to(server, authority, "client")
    assert code(server, known) == grpc.StatusCode.UNAUTHENTICATED
    assert code(server, known, SEARCH) == grpc.StatusCode.OK
    assert server.stop() == 0


def test_headers_of_a_call_are_limited(start):
    server = start()
    request = server.api.ListModelsRequest()
    with pytest.raises(grpc.RpcError) as error:
        server.method("ListModels")(request, timeout=20, metadata=[("x-much", "a" * 20_000)])
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    server.channel = grpc.insecure_channel(server.grpc)  # that connection may be gone
    assert code(server) == grpc.StatusCode.OK
    assert server.stop() == 0
