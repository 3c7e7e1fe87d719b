"""Requests of any kind: each is refused in the form of its face, and nothing fails inside."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import ClientSession, web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MANY = settings(FEW, max_examples=20_000)
# "/server-metrics" and the pages read no input.
POSTS = (
    *("/translate", "/detect", "/imme", "/kiss", "/deeplx", "/v2/translate", "/v2/languages"),
    *("/v2/glossaries", "/v3/glossaries", "/language/translate/v2", "/v1/translate"),
    *("/language/translate/v2/detect", "/v1/translate/stream", "/v1/translate/document"),
    *("/v1/summarize", "/v1/score", "/v1/detect-language"),
)
KINDS = st.sampled_from(
    [
        "application/json",
        "application/json; charset=latin-1",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "multipart/form-data",
        "text/plain",
        "",
    ]
)
FIELDS = """
q text texts text_list source source_lang src_lang target target_lang tgt_lang from to format
alternatives tag_handling formality glossary_id entries entries_format name dictionaries contents
source_language_code target_language_code options glossary settings lines
"""
NAMES = st.sampled_from(FIELDS.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["de", "en", "auto", "html", "eng_Latn", "\ud800", "a\tb", "\x00"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
FORMS = st.lists(st.tuples(NAMES, st.text(max_size=10)), max_size=6).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")
)
PARTS = st.lists(st.tuples(NAMES, st.binary(max_size=10)), max_size=4).map(
    lambda parts: (
        b"".join(
            b'--a\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
            % (name.encode(), value)
            for name, value in parts
        )
        + b"--a--\r\n"
    )
)
BODIES = (
    st.binary(max_size=60)
    | FORMS
    | PARTS
    | st.dictionaries(NAMES, VALUES, max_size=6).map(lambda it: json.dumps(it).encode())
)
QUERIES = st.text(st.characters(codec="ascii", exclude_characters="#"), max_size=20)


@pytest.fixture(scope="module")
def send(linnet, tmp_path_factory):
    """send(path, kind, body, query, token) → status and JSON of the application, in this process,
    before a server that does not exist."""
    from linnet_http import app
    from linnet_http.glossaries import Glossaries
    from linnet_http.options import Options

    loop = asyncio.new_event_loop()
    file = tmp_path_factory.mktemp("fuzz") / "glossaries"
    # A path of a socket that is not there: refused at once, where a port might be somebody's.
    options = Options(server="unix:/none", url_tokens=True, server_metrics="")

    async def begin():
        runner = web.AppRunner(app.make(options, Glossaries(file)), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, ClientSession(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}")

    runner, client = loop.run_until_complete(begin())

    async def ask(path: str, kind: str, body: bytes, query: str, token: str):
        headers = {"Content-Type": kind} if kind else {}
        if token:
            headers["Authorization"] = token
        async with client.post(path, params=query, data=body, headers=headers) as reply:
            return reply.status, await reply.read()

    def run(*request) -> tuple[int, bytes]:
        return loop.run_until_complete(asyncio.wait_for(ask(*request), 60))

    yield run
    loop.run_until_complete(client.close())
    loop.run_until_complete(runner.cleanup())
    loop.close()


def check(send, path: str, kind: str, body: bytes, query: str, token: str) -> None:
    status, said = send(path, kind, body, query, token)
    # 503: the request is right, and the server is not there. 200: nothing but white space.
    assert status in (200, 400, 401, 403, 404, 413, 415, 503), said
    found = json.loads(said)
    if status != 200:
        text = found.get("error") or found.get("message")
        text = text["message"] if isinstance(text, dict) else text
        assert text
        assert "Traceback" not in text


TOKENS = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=10)
REQUESTS = given(st.sampled_from(POSTS), KINDS, BODIES, QUERIES, TOKENS)


@FEW
@REQUESTS
def test_any_request_is_refused_or_passed_on(send, path, kind, body, query, token):
    check(send, path, kind, body, query, token)


@pytest.mark.long
@MANY
@REQUESTS
def test_very_many_requests_are_refused_or_passed_on(send, path, kind, body, query, token):
    check(send, path, kind, body, query, token)


@settings(FEW, max_examples=300)
@given(VALUES)
def test_json_is_read_as_python_reads_it_without_its_extensions(linnet, value):
    from linnet_http.body import parse_json
    from linnet_http.problem import Problem

    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        with pytest.raises(Problem):
            parse_json(json.dumps(value).encode())
    else:
        assert parse_json(text.encode()) == json.loads(text)


TERMS = st.dictionaries(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=10),
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=10),
    min_size=1,
    max_size=20,
)


@settings(FEW, max_examples=100)
@given(TERMS, st.sampled_from(["\n", "\r\n"]))
def test_glossaries_are_read_as_they_are_written(linnet, terms, end):
    from linnet_http.glossaries import format_tsv, parse

    text = format_tsv(list(terms.items()))
    assert dict(parse(text.replace("\n", end), "tsv")) == terms
