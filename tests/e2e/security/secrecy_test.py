"""No text of a client and no secret is written to the log, at debug level and with every call
logged as slow, nor to the metrics page or the batch snapshot.

WORD is in every field that a client may send except labels and request ids, which are logged; the
tokens are secrets.
"""

from __future__ import annotations

import itertools
import json
import time
from contextlib import suppress

import grpc
import pytest

WORD = "zanzibarquux"
TOKEN = "open-sesame-0123456789"
ADMIN = "shibboleth-0123456789"
LONG = {"beam_size": 5, "min_target_tokens": 500, "max_target_tokens": 500}


def headers(token: str = TOKEN, **others: str) -> list[tuple[str, str]]:
    known = [("authorization", f"Bearer {token}"), ("x-client-id", WORD)]
    return [*known, *((name.replace("_", "-"), value) for name, value in others.items())]


def bad_requests(api):
    """Calls that fail, each for a reason of its own, as method and request."""
    text = f"The {WORD} sings."
    good = {
        "contents": [text],
        "source_language_code": "en",
        "target_language_code": "de",
    }
    glossary = {"entries": [{"source_text": WORD}, {"source_text": WORD}]}
    for wrong in (
        {"contents": []},
        {"contents": [text, " "]},
        {"contents": [f"{WORD} "] * 9000},
        {"model": WORD},
        {"model": f"en-de@{WORD}"},
        {"mime_type": f"text/{WORD}"},
        {"source_language_code": WORD},
        {"source_language_code": WORD[:8]},
        {"target_language_code": f"{WORD}!"},
        {"labels": {f"{WORD}!": WORD.upper()}},
        {"options": {"beam_size": 0}},
        {"glossary": glossary},
        {"glossary": {"entries": [{"source_text": WORD, "target_text": f"{WORD} " * 50}]}},
    ):
        yield "Translate", api.TranslateRequest(**{**good, **wrong})
    long_text = {"contents": [f"{WORD} " * 2000], "language_code": "en"}
    yield "Summarize", api.SummarizeRequest(**long_text)
    yield "DetectLanguage", api.DetectLanguageRequest(contents=[WORD, ""])
    yield "GetModel", api.GetModelRequest(name=WORD)
    pair = {"source_text": text, "target_text": f"{WORD} " * 2000}
    yield "Score", api.ScoreRequest(pairs=[pair], model="en-de")


def good_calls(server, api) -> list[str]:
    """Every method once, and what it answered."""
    said = []
    text = f"The {WORD} sings. A {WORD} too."
    request = api.TranslateRequest(
        contents=[text],
        source_language_code="en",
        target_language_code="de",
        glossary={"entries": [{"source_text": WORD, "target_text": "Vogel"}]},
        options={"beam_size": 4},
    )
    summary = api.SummarizeRequest(contents=[text], language_code="en")
    known = {"timeout": 60, "metadata": headers()}
    said.append(server.method("Translate")(request, **known).translations[0].text)
    said.append(server.method("Summarize")(summary, **known).summaries[0].text)
    for name, inner in (("StreamTranslate", request), ("StreamSummarize", summary)):
        message = getattr(api, f"{name}Request")(request=inner)
        for part in server.method(name, "unary_stream")(message, **known):
            said.append(part.part.text)
    for name, settings in (
        ("TranslateDocument", {"source_language_code": "en", "target_language_code": "de"}),
        ("SummarizeDocument", {"language_code": "en"}),
    ):
        kind = getattr(api, f"{name}Request")
        lines = [
            kind(settings=settings),
            kind(
                lines=[
                    {"sequence_id": 0, "text": text},
                    {"sequence_id": 1, "text": f"{WORD} " * 900},
                ]
            ),
        ]
        answers = list(server.method(name, "stream_stream")(iter(lines), **known))
        assert len(answers) == 2
    pair = {"source_text": text, "target_text": f"Der {WORD}"}
    server.method("Score")(api.ScoreRequest(pairs=[pair], model="en-de"), **known)
    server.method("DetectLanguage")(api.DetectLanguageRequest(contents=[text]), **known)
    server.method("ListModels")(api.ListModelsRequest(), **known)
    return said


def new_connection(server):
    """A channel that shares no connection with others."""
    return grpc.insecure_channel(server.grpc, [("grpc.use_local_subchannel_pool", 1)])


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_text_and_no_secret_is_written(start, api, tmp_path, log_format):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN} search inference\n{ADMIN} ops admin\n")
    server = start(
        *("--tokens", str(tokens), "--admin-listen", "127.0.0.1:0", "--slow-call", "0.000001"),
        *("--log-level", "debug", "--log-format", log_format),
    )
    said = good_calls(server, api)
    for method, request in bad_requests(api):
        with pytest.raises(grpc.RpcError):
            server.method(method)(request, timeout=60, metadata=headers())
    raw = server.channel.unary_unary("/linnet.v1.TextService/Translate")
    for wrong in (WORD.encode() + b"\xff", b"\x0a\x0f" + WORD.encode() + b"\xff\xfe\xfd"):
        with pytest.raises(grpc.RpcError):
            raw(wrong, timeout=60, metadata=headers())
    ask = api.TranslateRequest(
        contents=[f"The {WORD} sings."] * 40, target_language_code="de", model="en-de", options=LONG
    )
    translate = server.method("Translate")
    with pytest.raises(grpc.RpcError):  # a deadline in the middle
        translate(ask, timeout=0.2, metadata=headers())
    for start_of, end_of in (("Basic ", ""), ("Token ", ""), ("Bearer  ", ""), ("Bearer ", "x")):
        credentials = ("authorization", f"{start_of}{TOKEN}{end_of}")
        with pytest.raises(grpc.RpcError):
            translate(ask, timeout=20, metadata=[credentials])
    with pytest.raises(grpc.RpcError):
        translate(ask, timeout=20, metadata=headers(ADMIN))
    with pytest.raises(grpc.RpcError):
        translate(ask, timeout=20, metadata=headers(x_much=f"{TOKEN}{WORD}" * 1000))
    server.channel = new_connection(server)  # that one may be gone
    with pytest.raises(grpc.RpcError):
        server.translate(f"{WORD} " * 600_000, timeout=60)
    server.channel = new_connection(server)
    translate = server.method("Translate")

    for bad in ({"x_request_id": f"{WORD} {TOKEN}"}, {"x_priority": WORD}):
        with pytest.raises(grpc.RpcError) as refused:
            translate(ask, timeout=60, metadata=headers(**bad))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT

    # Read the batch snapshot while a call runs.
    call = server.method("Translate").future(ask, timeout=60, metadata=headers())
    server.wait_for('linnet_sequences{model="en-de",state="running"}', lambda running: running > 0)
    admin = grpc.insecure_channel(server.admin)
    batch = admin.unary_unary("/linnet.v1.AdminService/GetBatch")(
        b"", timeout=20, metadata=headers(ADMIN)
    )
    assert b"subject:search" in batch, "the client is that of the token, not that of the header"
    call.cancel()
    with suppress(grpc.RpcError):
        reload = api.ReloadRequest(model=WORD).SerializeToString()
        admin.unary_unary("/linnet.v1.AdminService/Reload")(
            reload, timeout=20, metadata=headers(ADMIN)
        )
    tokens.write_text(f"{TOKEN} search everything\n")  # is refused and logged
    end = time.monotonic() + 20
    while "tokens_not_read" not in server.log.read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
    page = server.scrape()
    assert server.stop() == 0
    log = server.log.read_text()

    for written in (log, page, batch.decode(errors="replace"), server.process.stdout.read()):
        for secret in (WORD, TOKEN, ADMIN):
            assert secret not in written.lower()
    for answer in said:
        assert len(answer) < 8 or answer not in log
    # The search above finds nothing in empty output, so check that there is output.
    for event in itertools.chain(
        ("slow_call", "INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED", "subject:search"),
        ("SummarizeDocument", "StreamTranslate", "DetectLanguage", "Score", "Reload", "GetBatch"),
    ):
        assert event in log, event
    if log_format == "json":
        assert all(json.loads(line)["event"] for line in log.splitlines())


def test_startup_errors_contain_no_secret(run_server, bundles, tmp_path):
    (tmp_path / "tokens").write_text(f"{TOKEN} search everything\n")
    (tmp_path / "key").write_text(f"-----BEGIN PRIVATE KEY-----\n{TOKEN}\n")
    addresses = ("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
    for wrong in (
        ("--tokens", str(tmp_path / "tokens")),
        ("--bundle-key", str(tmp_path / "key")),
    ):
        status, stdout, stderr = run_server(
            *("--models", str(bundles / "en-de"), "--log-level", "debug"), *addresses, *wrong
        )
        assert status == 1, wrong
        assert stderr
        assert TOKEN not in stdout + stderr
