"""A summariser with several styles behind the real server and the real command line."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path

import grpc
import pytest
from random_bundles import random_bundle

ROOT = Path(__file__).resolve().parents[2]
TEXT = "The dog runs."  # for which the random weights have an answer in each style
SHORT = {"max_target_tokens": 8}
STYLES = ("SUMMARY_STYLE_SENTENCE", "SUMMARY_STYLE_TITLE", "SUMMARY_STYLE_PARAGRAPH")
FIRST_ID = 590  # pieces of the vocabulary, one for each style


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """A summariser with three styles, random weights."""
    folder = tmp_path_factory.mktemp("bundles") / "many"
    random_bundle(folder, "--seed", "7", "--task", "summarize")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    english = {"source_language_code": "en", "target_language_code": "en"}
    ids = range(FIRST_ID, FIRST_ID + len(STYLES))
    manifest["languages"] = [
        english | {"before_source_ids": [id], "style": style}
        for id, style in zip(ids, STYLES, strict=True)
    ]
    manifest["control_ids"] = list(ids)
    path.write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def server(start, bundle):
    """A server with an answer cache; "plain" has no styles."""
    random_bundle(bundle.parent / "plain", "--seed", "8", "--task", "summarize")
    return start("--answer-cache-bytes", "1000000", models=bundle.parent)


@pytest.fixture
def linnet(run_linnet, server):
    return functools.partial(run_linnet, server)


def summary(server, style: str | None = None, **fields) -> str:
    chosen = {} if style is None else {"style": style}
    fields = {"model": "many", "options": SHORT, **chosen, **fields}
    return server.summarize(TEXT, **fields).summaries[0].text


def test_models_list_their_styles(server, linnet):
    get = server.method("GetModel")
    model = get(server.api.GetModelRequest(name="many"), timeout=10).model
    assert list(model.summary_styles) == [2, 1, 3]
    assert len(model.language_pairs) == 1
    plain = get(server.api.GetModelRequest(name="plain"), timeout=10).model
    assert not plain.summary_styles
    done = linnet("models")
    assert done.returncode == 0, done.stderr
    assert "many   summarize  en (sentence/title/paragraph)  " in done.stdout
    # "many" answers calls that name no model.
    assert "plain  summarize  by name only  " in done.stdout
    assert "styles          sentence/title/paragraph\n" in linnet("models", "many").stdout


def test_styles_have_different_answers_and_the_first_is_the_default(server):
    texts = [summary(server, style) for style in STYLES]
    assert len(set(texts)) == 3
    for _ in range(2):  # from the cache
        assert [summary(server, style) for style in STYLES] == texts
        assert summary(server) == texts[0]
    alone = [summary(server, style, use_cache=False) for style in STYLES]
    assert alone == texts


def test_streams_and_documents_have_the_style(server):
    title = summary(server, STYLES[1])
    api = server.api
    request = api.SummarizeRequest(
        contents=[TEXT], language_code="en", model="many", options=SHORT, style=STYLES[1]
    )
    stream = server.method("StreamSummarize", "unary_stream")
    messages = list(stream(api.StreamSummarizeRequest(request=request), timeout=30))
    assert "".join(m.part.text for m in messages if m.HasField("part")) == title
    request.ClearField("contents")
    line = api.DocumentLine(sequence_id=1, text=TEXT)
    lines = [api.SummarizeDocumentRequest(settings=request, lines=[line])]
    (result,) = server.method("SummarizeDocument", "stream_stream")(iter(lines), timeout=30)
    assert result.response.summaries[0].text == title


@pytest.mark.parametrize(
    ("model", "style", "message"),
    [
        ("plain", 1, 'style: is title, model "plain" has no styles: leave it unset'),
        ("many", 9, "style: is 9, which this server does not know"),
    ],
)
def test_style_that_a_model_lacks_is_refused(server, model, style, message):
    with pytest.raises(grpc.RpcError) as raised:
        summary(server, style, model=model)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details() == message
    details = server.api.check_error(raised.value)
    assert details["ErrorInfo"].reason == "BAD_SETTING"
    assert details["BadRequest"].field_violations[0].field == "style"


def test_command_line_chooses_a_style(server, linnet):
    flags = ("--model", "many", "--max-target-tokens", "8")
    for name, style in {"sentence": STYLES[0], "title": STYLES[1], "paragraph": STYLES[2]}.items():
        done = linnet("summarize", *flags, "--style", name, TEXT)
        assert done.returncode == 0, done.stderr
        assert done.stdout == summary(server, style) + "\n"
    assert linnet("summarize", *flags, TEXT).stdout == summary(server) + "\n"
    unknown = linnet("summarize", *flags, "--style", "poem", TEXT)
    assert unknown.returncode == 2
    assert '--style: "poem" is none of title, sentence, paragraph' in unknown.stderr
    refused = linnet("summarize", "--model", "plain", "--style", "title", TEXT)
    assert refused.returncode == 64 + 3
    assert '--style: is title, model "plain" has no styles' in refused.stderr


def test_score_is_that_of_the_style(server, linnet):
    def scores(style: str) -> float:
        pair = server.api.ScorePair(source_text=TEXT, target_text="The dog.")
        request = server.api.ScoreRequest(
            model="many", source_language_code="en", pairs=[pair], style=style, use_cache=False
        )
        return server.method("Score")(request, timeout=30).scores[0].score

    found = {style: scores(style) for style in STYLES}
    assert len(set(found.values())) == 3
    assert scores("SUMMARY_STYLE_UNSPECIFIED") == found[STYLES[0]]
    done = linnet("score", "--model", "many", "--style", "title", TEXT, "The dog.")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("\t")[0]) == pytest.approx(found[STYLES[1]], abs=1e-3)


def test_linnet_decode_has_the_answers_of_the_server(server, bundle, program):
    names = ("sentence", "title", "paragraph", None, "poem")
    lines = [
        {"text": TEXT, "options": SHORT} | ({} if name is None else {"style": name})
        for name in names
    ]
    done = subprocess.run(
        [str(program("linnet-decode")), "--bundle", str(bundle)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    *answers, refused = [json.loads(line) for line in done.stdout.splitlines()]
    texts = [answer["hypotheses"][0]["text"] for answer in answers]
    assert texts == [summary(server, style) for style in (*STYLES, None)]
    assert refused["error"]["message"] == (
        'the bundle has no style "poem", its styles: sentence, title, paragraph'
    )
