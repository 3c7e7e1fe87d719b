"""Invalid requests, flags and bundles get clear errors, and the server keeps serving."""

from __future__ import annotations

import socket
from pathlib import Path

import grpc
import pytest

INVALID = grpc.StatusCode.INVALID_ARGUMENT
HUGE = 2**31 - 1

# Changes to a valid request; code; field path; part of the message.
BAD_TRANSLATIONS = {
    "no texts": ({"contents": []}, INVALID, "contents", "at least one"),
    "an empty text": ({"contents": ["good", ""]}, INVALID, "contents[1]", "empty"),
    "white space": ({"contents": [" \n\t"]}, INVALID, "contents[0]", "white space"),
    "unicode white space": ({"contents": ["\u3000\u2003"]}, INVALID, "contents[0]", "white space"),
    "too many texts": (
        {"contents": ["a"] * 5000},
        INVALID,
        "contents",
        "gives a call at most 1000000",
    ),
    "too many bytes": ({"contents": ["ab cd " * 200_000]}, INVALID, "contents", "at most 1048576"),
    "no target language": (
        {"target_language_code": ""},
        INVALID,
        "target_language_code",
        "required",
    ),
    "a detected language without a model": (
        {"source_language_code": "", "contents": ["Bonjour, comment allez-vous aujourd'hui ?"]},
        grpc.StatusCode.NOT_FOUND,
        None,
        'seems to be in "fr"',
    ),
    "a label": ({"labels": {"Team": "x"}}, INVALID, "labels", "lower-case"),
    "no language": (
        {"target_language_code": "Deutsch, bitte"},
        INVALID,
        "target_language_code",
        "no language code",
    ),
    "an unknown language": (
        {"target_language_code": "fr"},
        grpc.StatusCode.NOT_FOUND,
        None,
        "there is en to de",
    ),
    "an unknown model": ({"model": "babel"}, grpc.StatusCode.NOT_FOUND, None, 'no model "babel"'),
    "a model of another task": ({"model": "en-summary"}, INVALID, "model", "summarises"),
    "another format": (
        {"mime_type": "text/rtf"},
        grpc.StatusCode.UNIMPLEMENTED,
        "mime_type",
        "send text/plain",
    ),
    "beam 0": ({"options": {"beam_size": 0}}, INVALID, "options.beam_size", "beam_size: is 0,"),
    "beam -1": ({"options": {"beam_size": -1}}, INVALID, "options.beam_size", "beam_size: is -1,"),
    "a huge beam": ({"options": {"beam_size": HUGE}}, INVALID, "options.beam_size", "beam_size"),
    "n_best over beam": (
        {"options": {"beam_size": 2, "n_best": 3}},
        INVALID,
        "options.n_best",
        "n_best: is 3,",
    ),
    "length penalty nan": (
        {"options": {"length_penalty": float("nan")}},
        INVALID,
        "options.length_penalty",
        "length_penalty",
    ),
    "temperature 0": (
        {"options": {"temperature": 0.0}},
        INVALID,
        "options.temperature",
        "temperature",
    ),
    "penalty inf": (
        {"options": {"unknown_penalty": float("inf")}},
        INVALID,
        "options.unknown_penalty",
        "between -1e+06 and 1e+06",
    ),
    "too many tokens": (
        {"options": {"max_target_tokens": HUGE}},
        INVALID,
        "options.max_target_tokens",
        "1024",
    ),
    "min over max": (
        {"options": {"min_target_tokens": 9, "max_target_tokens": 8}},
        INVALID,
        "options.min_target_tokens",
        "is 8",
    ),
    "negative n-gram": (
        {"options": {"no_repeat_ngram_size": -2}},
        INVALID,
        "options.no_repeat_ngram_size",
        "-2",
    ),
}


@pytest.mark.parametrize("case", BAD_TRANSLATIONS)
def test_rejects_invalid_translation_by_field(server, api, case):
    fields, code, field, message = BAD_TRANSLATIONS[case]
    fields = {
        "contents": ["A bird sings."],
        "source_language_code": "en",
        "target_language_code": "de",
        **fields,
    }
    with pytest.raises(grpc.RpcError) as raised:
        server.method("Translate")(api.TranslateRequest(**fields), timeout=30)
    error = raised.value
    assert error.code() == code, error.details()
    assert message in error.details()
    details = api.check_error(error)
    assert details["ErrorInfo"].domain == "linnet"
    if field is not None:
        assert details["BadRequest"].field_violations[0].field == field
    if code == grpc.StatusCode.NOT_FOUND:
        assert details["ResourceInfo"].resource_type == "linnet.v1.Model"
    assert server.translate("A bird sings.").translations[0].text is not None


BAD_SUMMARIES = {
    "too long for the model": (
        {"contents": ["the bird sings in the garden " * 400]},
        "contents[0]",
        "reads at most 1024",
    ),
    "bounds set twice": (
        {"min_summary_tokens": 2, "options": {"min_target_tokens": 2}},
        "min_summary_tokens",
        "set one of them",
    ),
    "min over max": (
        {"min_summary_tokens": 9, "max_summary_tokens": 8},
        "min_summary_tokens",
        "is 8",
    ),
    "no words": ({"length": {"words": 0}}, "length.words", "is 0, it must be from 1 to"),
    "no unit": ({"length": {}}, "length", "has neither words nor sentences"),
    "a style of no model": ({"style": 1}, "style", "has no styles: leave it unset"),
    "an unknown style": ({"style": 9}, "style", "is 9, which this server does not know"),
    "a negative bound": ({"max_summary_tokens": -1}, "max_summary_tokens", "-1"),
}


@pytest.mark.parametrize("case", BAD_SUMMARIES)
def test_rejects_invalid_summary_by_field(server, api, case):
    fields, field, message = BAD_SUMMARIES[case]
    request = api.SummarizeRequest(
        **{"contents": ["A bird sings."], "language_code": "en", **fields}
    )
    with pytest.raises(grpc.RpcError) as raised:
        server.method("Summarize")(request, timeout=30)
    assert raised.value.code() == INVALID
    assert message in raised.value.details()
    assert api.check_error(raised.value)["BadRequest"].field_violations[0].field == field


@pytest.mark.parametrize(
    ("request_bytes", "field", "message"),
    [
        (b"\x0a\x04good\x0a\x04caf\xe9\x12\x02en\x1a\x02de", "contents[1]", "byte 3"),
        (b"\x0a\x04good\x12\x02\xff\xfe\x1a\x02de", "source_language_code", "byte 0"),
        (b"\x0a\x04good\x3a\x05\x0a\x03\xffab", "labels[0].key", "byte 0"),
        (b"\x0a\xff", "request", "not a linnet.v1.TranslateRequest"),
        (bytes(range(256)) * 9, "request", "not a linnet.v1.TranslateRequest"),
    ],
)
def test_explains_bytes_that_are_not_a_request(server, api, request_bytes, field, message):
    with pytest.raises(grpc.RpcError) as raised:
        server.channel.unary_unary("/linnet.v1.TextService/Translate")(request_bytes, timeout=30)
    assert raised.value.code() == INVALID
    assert message in raised.value.details()
    assert api.details(raised.value)["BadRequest"].field_violations[0].field == field


@pytest.mark.parametrize("method", ["Translate", "StreamTranslate"])
def test_call_without_a_request_is_cancelled_and_not_invalid(server, method):
    rejected = 'linnet_rejected_total{reason="invalid"}'
    before = server.metric(rejected)
    call = server.channel.stream_stream(f"/linnet.v1.TextService/{method}")(iter([]), timeout=30)
    with pytest.raises(grpc.RpcError) as raised:
        list(call)
    assert raised.value.code() == grpc.StatusCode.CANCELLED
    assert server.metric(rejected) == before


def test_grpc_rejects_messages_beyond_its_limit(server):
    with pytest.raises(grpc.RpcError) as raised:
        server.translate("a " * 3_000_000)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert server.health("linnet.v1.TextService") == 1


def test_unknown_method_is_unimplemented(server):
    with pytest.raises(grpc.RpcError) as raised:
        server.channel.unary_unary("/linnet.v1.TextService/Sing")(b"", timeout=10)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_wrong_flags_exit_with_status_2(run_server, bundles):
    for flags, message in {
        ("--models", str(bundles), "--colour", "red"): "--colour",
        ("--models", str(bundles), "--device", "tpu"): "cuda",
        ("--models", str(bundles), "--compute", "float8"): "float32",
        ("--models", str(bundles), "--listen", "nowhere"): "HOST:PORT",
        (): "--models",
    }.items():
        status, out, err = run_server(*flags)
        assert (status, out) == (2, ""), err
        assert message in err


def free_flags() -> list[str]:
    return ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]


def test_names_a_missing_bundle(run_server, tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        status, out, err = run_server("--models", str(folder), *free_flags())
        assert (status, out) == (1, "")
        assert str(folder) in err


@pytest.mark.parametrize("name", ["model.pt", "manifest.json", "source.spm"])
def test_rejects_damaged_bundle_and_names_the_file(run_server, copied_bundle, name):
    file = copied_bundle / name
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    file.write_bytes(damaged)
    status, out, err = run_server("--models", str(copied_bundle.parent), *free_flags())
    assert (status, out) == (1, "")
    assert name in err


def test_names_a_missing_file_of_a_bundle(run_server, copied_bundle):
    (copied_bundle / "model.pt").unlink()
    status, _, err = run_server("--models", str(copied_bundle.parent), *free_flags())
    assert status == 1
    assert "model.pt" in err


@pytest.mark.parametrize("flag", ["--listen", "--metrics-listen"])
def test_rejects_a_port_in_use_with_a_hint(run_server, bundles, flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        other = {"--listen": "--metrics-listen", "--metrics-listen": "--listen"}[flag]
        status, out, err = run_server("--models", str(bundles), flag, address, other, "127.0.0.1:0")
    assert (status, out) == (1, "")
    assert address in err
    assert flag in err


def test_metrics_on_ipv6_are_refused_with_the_reason(run_server, tmp_path):
    """Debian's civetweb has no IPv6. The address is tried before the models."""
    status, out, err = run_server("--models", str(tmp_path), "--metrics-listen", "[::1]:0")
    assert (status, out) == (1, "")
    assert "built without IPv6; set --metrics-listen to an IPv4 address" in err


def test_second_server_does_not_share_the_port(run_server, server, bundles):
    status, _, err = run_server(
        "--models", str(bundles), "--listen", server.grpc, "--metrics-listen", "127.0.0.1:0"
    )
    assert status == 1
    assert server.grpc in err


def test_rejects_a_missing_gpu(run_server, bundles):
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    status, out, err = run_server("--models", str(bundles), "--device", "cuda", *free_flags())
    assert (status, out) == (1, "")
    assert "cuda" in err.lower()
