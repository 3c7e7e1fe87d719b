"""A model with several language pairs behind the real server and the real command line."""

from __future__ import annotations

import functools
from pathlib import Path

import grpc
import pytest
from random_bundles import random_bundle

ROOT = Path(__file__).resolve().parents[2]
TEXT = "The dog runs across the street. The bird sings in the garden."


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server with one model of six pairs, random weights."""
    folder = tmp_path_factory.mktemp("bundles")
    random_bundle(folder / "many", "--seed", "7", "--languages", "en,de,fr")
    return start(models=folder)


@pytest.fixture
def linnet(run_linnet, server):
    return functools.partial(run_linnet, server)


def test_lists_every_pair(server, linnet):
    model = server.method("GetModel")(server.api.GetModelRequest(name="many"), timeout=10).model
    pairs = [(p.source_language_code, p.target_language_code) for p in model.language_pairs]
    assert pairs == [
        ("en", "de"),
        ("en", "fr"),
        ("de", "en"),
        ("de", "fr"),
        ("fr", "en"),
        ("fr", "de"),
    ]
    done = linnet("models")
    assert done.returncode == 0, done.stderr
    assert "en to de/fr, de to en/fr, fr to en/de" in done.stdout


def test_target_language_chooses_the_answer(server):
    texts = {
        (source, target): server.translate(
            TEXT, source_language_code=source, target_language_code=target
        )
        .translations[0]
        .text
        for source, target in (("en", "de"), ("en", "fr"), ("de", "fr"))
    }
    assert len(set(texts.values())) == 3
    # The answer does not depend on what else is in the batch.
    again = server.translate(TEXT, TEXT, target_language_code="fr", model="many")
    assert {t.text for t in again.translations} == {texts["en", "fr"]}


def test_forced_tokens_are_in_no_part_of_the_answer(server):
    answer = server.translate(
        TEXT,
        target_language_code="fr",
        options={"n_best": 2, "beam_size": 4},
        word_scores=True,
        alignments=True,
    ).translations[0]
    assert len(answer.segments) == 2
    target = answer.text.encode()
    tokens = 0
    for segment in answer.segments:
        best = segment.hypotheses[0]
        assert len(best.token_scores) == best.tokens
        assert best.score == pytest.approx(sum(best.token_scores) / (best.tokens + 1), abs=1e-4)
        assert target[segment.target_begin : segment.target_end].decode() == best.text
        assert segment.word_alignments
        tokens += best.tokens
    assert answer.usage.target_tokens == tokens
    same = server.translate(TEXT, target_language_code="de").translations[0]
    assert same.usage.source_tokens == answer.usage.source_tokens


def test_streamed_text_equals_the_answer(server):
    messages = list(server.stream_translate(TEXT, target_language_code="fr"))
    text = "".join(m.part.text for m in messages if m.HasField("part"))
    assert text == server.translate(TEXT, target_language_code="fr").translations[0].text


def test_source_language_is_detected_among_those_of_the_model(server):
    german = "Der Hund läuft über die lange Straße nach Hause."
    answer = server.translate(german, source_language_code="", target_language_code="fr")
    assert answer.detected_language.language_code == "de"
    named = server.translate(
        german, source_language_code="", target_language_code="fr", model="many"
    )
    assert named.translations[0].text == answer.translations[0].text
    explicit = server.translate(german, source_language_code="de", target_language_code="fr")
    assert explicit.translations[0].text == answer.translations[0].text


def test_unknown_pair_is_an_error_with_those_there_are(server, linnet):
    with pytest.raises(grpc.RpcError) as raised:
        server.translate(TEXT, target_language_code="it")
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == (
        "no model translates en to it: there is en to de/fr, de to en/fr, fr to en/de"
    )
    with pytest.raises(grpc.RpcError) as raised:
        server.translate(TEXT, target_language_code="en", model="many")
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    done = linnet("translate", "--to", "fr", "--from", "de", TEXT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
