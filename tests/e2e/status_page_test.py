"""The page for people at the root of the metrics port, and the counts by model and client."""

from __future__ import annotations

import html
import json
import re
import urllib.request

import grpc
import pytest

TOKENS = {"search": "a" * 40, "mail": "b" * 40}
EVIL = """1<b>&"'</td><script>"""


@pytest.fixture
def named(start, copied_bundle):
    """A server with one model whose version is text for a browser."""
    path = copied_bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["version"] = EVIL
    path.write_text(json.dumps(manifest))
    return start(models=copied_bundle.parent), manifest["name"]


def page_of(server) -> tuple[str, dict[str, str]]:
    with urllib.request.urlopen(f"http://{server.metrics}/", timeout=10) as answer:
        return answer.read().decode(), dict(answer.headers)


def rows_of(page: str) -> list[list[str]]:
    """The cells of the table, of the heads as well."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [
        [html.unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)] for row in rows
    ]


def test_page_shows_models_and_what_they_do(named):
    server, model = named
    server.translate("one two", source_language_code="en", target_language_code="de")
    server.wait_for(f'linnet_model_requests_total{{code="OK",model="{model}"}}', lambda n: n == 1)
    page, _ = page_of(server)
    heads, row = rows_of(page)
    shown = dict(zip(heads, row, strict=True))
    listed = server.method("ListModels")(server.api.ListModelsRequest(), timeout=30).models[0]
    assert shown == {
        "model": model,
        "version": EVIL,
        "task": "translate",
        "runs on": f"cpu {listed.compute_type}",
        "state": "serving",
        "calls": "1",
        "waiting": "0",
        "running": "0",
    }
    assert re.search(r"<p>Ready. Up for (\d+m)?\d+s. \d+ calls in flight, \d+ connections", page)


def test_page_is_small_escapes_names_and_loads_nothing(named):
    server, _ = named
    page, headers = page_of(server)
    assert len(page) < 4096
    assert "<script" not in page
    assert EVIL not in page
    assert html.escape(EVIL).replace("&#x27;", "&#39;") in page
    # The only address is that of the metrics.
    assert re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?([^"')>]+)""", page) == ["/metrics"]
    assert "http" not in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_failed_call_counts_for_its_model(server):
    sample = 'linnet_model_requests_total{code="INVALID_ARGUMENT",model="en-summary"}'
    before = server.metric(sample)
    with pytest.raises(grpc.RpcError) as caught:  # the model has to read it to see that
        server.summarize("word " * 5000, language_code="en")
    assert server.api.details(caught.value)["ErrorInfo"].reason == "TEXT_TOO_LONG"
    server.wait_for(sample, lambda count: count == before + 1)


def test_tokens_count_for_the_name_of_the_token(start, tmp_path, linnet):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKENS['search']} search inference\n{TOKENS['mail']} mail inference\n")
    server = start("--tokens", str(tokens))
    used = {}
    for name in ("search", "mail"):
        file = tmp_path / name
        file.write_text(TOKENS[name])
        with linnet.Client(linnet.Options(server.grpc, token_file=file)) as client:
            request = linnet.TranslateRequest(
                contents=["one two"] * (1 if name == "search" else 3),
                source_language_code="en",
                target_language_code="de",
            )
            answers = client.translate(request).translations
            used[name] = [
                sum(getattr(answer.usage, f"{kind}_tokens") for answer in answers)
                for kind in ("source", "target")
            ]
    for name, counts in used.items():
        for kind, count in zip(("source", "target"), counts, strict=True):
            sample = f'linnet_client_tokens_total{{client="{name}",kind="{kind}"}}'
            assert server.metric(sample) == count > 0
