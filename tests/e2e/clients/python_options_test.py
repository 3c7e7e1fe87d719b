"""The options of the package `linnet`: addresses, tokens and ranges."""

from __future__ import annotations

import subprocess

import pytest
from python_package import english


def test_token_file_is_reread_after_a_change(linnet, fake, tmp_path):
    server = fake()
    token = tmp_path / "token"
    with pytest.raises(linnet.LinnetError, match="cannot read the token"):
        linnet.Client(linnet.Options(server.address, token_file=token))
    for content in (b" \n", b"secret name inference\n", b"secret\xff\n"):
        token.write_bytes(content)
        with pytest.raises(linnet.LinnetError, match="holds no token") as raised:
            linnet.Client(linnet.Options(server.address, token_file=token))
        assert "secret" not in str(raised.value)
        assert "xff" not in str(raised.value)
    token.write_bytes(b"\xef\xbb\xbffirst\n")
    with linnet.Client(linnet.Options(server.address, token_file=token)) as client:
        client.translate(english(linnet, "a"))
        token.write_text("second\n")
        client.translate(english(linnet, "a"))
        for cannot_be_sent in ("", "two\nlines", "two words", "a\tb"):
            token.write_text(cannot_be_sent)
            client.translate(english(linnet, "a"))
        token.unlink()
        client.translate(english(linnet, "a"))
    assert server.tokens == ["Bearer first", *["Bearer second"] * 6]


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("localhost:1", True),
        ("127.0.0.2:1", True),
        ("[::1]:1", True),
        ("unix:linnet.sock", True),
        ("127.0.0.1:1,127.0.0.1:2", True),
        ("127.0.0.1:1,10.0.0.1:2", False),
        ("127.0.0.1.attacker.example:50051", False),
        ("localhost.attacker.example:1", False),
        ("unix.attacker.example:1", False),
    ],
)
def test_token_is_sent_in_plain_text_to_this_machine_alone(linnet, tmp_path, server, here):
    if here:
        linnet.Options(server, token_file=tmp_path / "token")
        return
    with pytest.raises(linnet.LinnetError, match="in plain text"):
        linnet.Options(server, token_file=tmp_path / "token")


def test_tls_to_a_list_needs_the_name_in_the_certificates(linnet):
    several = "127.0.0.1:1,127.0.0.2:1"
    with pytest.raises(linnet.LinnetError, match="set server_name of Tls"):
        linnet.Options(several, tls=linnet.Tls())
    linnet.Options(several, tls=linnet.Tls(server_name="translate.example"))


ONE = "is not HOST:PORT with a port of 1 to 65535, as in 127.0.0.1:50051 or [::1]:50051"
LIST = "are not all IPv4:PORT, nor all [IPv6]:PORT; names are resolved by dns:///HOST:PORT"
PORTS = "… with ports of 1 to 65535, as in "


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("127.0.0.1:111587", ONE),
        ("127.0.0.1:0", ONE),
        ("nonsense", ONE),
        ("", ONE),
        (":50051", ONE),
        ("::1:50051", ONE),
        ("h:5005\u0661", ONE),
        ("a,b", LIST),
        ("127.0.0.1:1,[::1]:1", LIST),
        ("127.0.0.1:1,example.org:1", LIST),
        ("[::1]:1,[fe80::x]:1", LIST),
        ("dns:///translate.example:65536", f"is not dns:{PORTS}"),
        ("dns:///:50051", f"is not dns:{PORTS}"),
        ("dns:///", f"is not dns:{PORTS}"),
        ("dns:", f"is not dns:{PORTS}"),
        ("ipv4:127.0.0.1:1,127.0.0.1:111587", f"is not ipv4:{PORTS}"),
        ("ipv4:127.0.0.1", f"is not ipv4:{PORTS}"),
        ("ipv6:[::1]", f"is not ipv6:{PORTS}"),
        ("dns:///one.example:1,other.example:2", "has a comma"),
        ("unix:/run/a,b", "has a comma"),
    ],
)
def test_address_without_a_valid_port_is_rejected(linnet, linnet_binary, server, message):
    with pytest.raises(linnet.LinnetError) as raised:
        linnet.Options(server=server)
    assert message in raised.value.message
    command = [linnet_binary, "health", "--server", server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"linnet health: {raised.value.message}\n"), "C++ says the same"


@pytest.mark.parametrize(
    "server",
    [
        *("[::1]:50051", "localhost:65535", "127.0.0.1:1,127.0.0.2:2", "[::1]:1,[::2]:2"),
        *("dns:///translate.example:1", "dns:translate.example", "dns://[::1]:53/a.example:50051"),
        *("dns:///[::1]", "dns:///2001:db8::1", "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:50051"),
        *("unix:/run/linnet", "unix-abstract:linnet", "xds:///linnet"),
    ],
)
def test_address_of_every_form_is_accepted(linnet, server):
    assert linnet.Options(server=server).server == server


@pytest.mark.parametrize("server", ["\udcff:50051", "a\0b:50051"])
def test_address_that_grpc_cannot_take_is_rejected(linnet, server):
    """The first is what Python makes of an environment that is not UTF-8; gRPC ends the second at
    the zero."""
    with pytest.raises(linnet.LinnetError, match="cannot be an address") as raised:
        linnet.Options(server=server)
    assert raised.value.field == "server"
    str(raised.value).encode()


def test_rejects_invalid_options(linnet):
    for options in (
        {"retry": linnet.Retry(max_attempts=6)},
        {"retry": linnet.Retry(initial_backoff=3.0)},
        {"timeout": 0},
    ):
        with pytest.raises(linnet.LinnetError, match=r"max_attempts|back-off|timeout"):
            linnet.Options(**options)


@pytest.mark.parametrize("content", [b"", b"0\x82\x03", b"-----BEGIN EC PRIVATE KEY-----\n"])
def test_file_without_a_certificate_is_rejected(linnet, tmp_path, content):
    """Nothing, DER, or the key in its place."""
    file, key = tmp_path / "certificate", tmp_path / "key"
    file.write_bytes(content)
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    for tls in (linnet.Tls(ca_file=file), linnet.Tls(certificate_file=file, key_file=key)):
        with pytest.raises(linnet.LinnetError, match=r"certificate holds no CERTIFICATE in PEM"):
            linnet.Client(linnet.Options(tls=tls))
