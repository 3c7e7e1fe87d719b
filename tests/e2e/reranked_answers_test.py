"""Reranking by a model of the other direction, behind the real server and its clients."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from statistics import fmean

import grpc
import pytest
from random_bundles import random_bundle

TEXTS = ["The dog runs. A bird sings.\n\nShe reads. ", "One more sentence."]
HYPOTHESES, WEIGHT = 4, 2.0
RERANKING = {"hypotheses": HYPOTHESES, "channel_weight": WEIGHT}


@pytest.fixture(scope="module")
def bundles_of_both_directions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    limits = ("--max-target-tokens", "24")
    random_bundle(folder / "en-de", "--seed", "3", *limits)
    random_bundle(folder / "other", "--seed", "4", "--languages", "de,en", *limits)
    return folder


@pytest.fixture(scope="module")
def server(start, bundles_of_both_directions):
    return start(models=bundles_of_both_directions)


def to_german(server, *texts: str, **fields):
    return server.translate(*texts, source_language_code="en", target_language_code="de", **fields)


def chosen_by_hand(server, segment, source: str) -> str:
    """The hypothesis with the greatest sum of both models' mean log-probabilities."""
    pairs = [
        {"source_text": hypothesis.text, "target_text": source} for hypothesis in segment.hypotheses
    ]
    request = server.api.ScoreRequest(
        pairs=pairs, source_language_code="de", target_language_code="en"
    )
    scores = server.method("Score")(request, timeout=60).scores
    sums = [
        fmean(hypothesis.token_scores) + WEIGHT * fmean(score.token_scores)
        for hypothesis, score in zip(segment.hypotheses, scores, strict=True)
    ]
    return segment.hypotheses[sums.index(max(sums))].text


def test_answer_is_the_choice_made_by_hand(server):
    narrow = {"beam_size": HYPOTHESES}
    answer = to_german(server, *TEXTS, reranking=RERANKING, options=narrow)
    assert (answer.model, answer.channel_model.model) == ("en-de", "other")
    assert answer.channel_model.model_version == "seed-4"
    searched = to_german(server, *TEXTS, options={**narrow, "n_best": HYPOTHESES})
    changed = 0
    for text, translation, before in zip(
        TEXTS, answer.translations, searched.translations, strict=True
    ):
        target = translation.text.encode()
        for segment, search in zip(translation.segments, before.segments, strict=True):
            said = target[segment.target_begin : segment.target_end].decode()
            source = text[segment.source_begin : segment.source_end]
            assert said == chosen_by_hand(server, search, source)
            assert segment.channel_score < 0
            changed += said != search.hypotheses[0].text
    assert changed > 0


def test_stream_and_document_have_the_same_answer(server):
    unary = to_german(server, *TEXTS, reranking=RERANKING)
    fields = {
        "source_language_code": "en",
        "target_language_code": "de",
        "reranking": RERANKING,
    }
    messages = list(server.stream_translate(*TEXTS, **fields))
    assert messages[-1].response.translations == unary.translations
    for index, translation in enumerate(unary.translations):
        parts = [m.part for m in messages[:-1] if m.part.content_index == index]
        assert "".join(part.text for part in parts) == translation.text
    lines = [text.strip().replace("\n", " ") for text in TEXTS]
    results = list(server.document(enumerate(lines), keep_order=True, **fields))
    for line, result in zip(lines, results, strict=True):
        alone = to_german(server, line, reranking=RERANKING)
        assert result.response.translations == alone.translations


def test_command_line_reranks(server, linnet_binary):
    def linnet(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(linnet_binary), "translate", "--from", "en", "--to", "de", *arguments, TEXTS[1]],
            env={**os.environ, "LINNET_SERVER": server.grpc},
            capture_output=True,
            text=True,
            timeout=120,
        )

    flags = ("--rerank", "--hypotheses", str(HYPOTHESES), "--channel-weight", str(WEIGHT))
    answer = to_german(server, TEXTS[1], reranking=RERANKING).translations[0]
    assert linnet(*flags).stdout == answer.text + "\n"
    said = json.loads(linnet(*flags, "--json").stdout)
    assert said["channel_model"] == {"model": "other", "model_version": "seed-4"}
    assert said["translations"][0]["segments"][0]["channel_score"] == pytest.approx(
        answer.segments[0].channel_score
    )
    refused = linnet("--rerank", "--hypotheses", "1")
    assert refused.returncode == 64 + grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "--hypotheses: is 1, it must be between 2 and" in refused.stderr


def test_python_clients_rerank(server, linnet, monkeypatch):
    answer = to_german(server, TEXTS[1], reranking=RERANKING).translations[0].text
    reranking = linnet.Reranking(**RERANKING)
    fields = {"to": "de", "source": "en", "reranking": reranking}
    with linnet.Client(server.grpc) as client:
        assert client.translate(TEXTS[1], **fields) == answer
        request = linnet.TranslateRequest(contents=TEXTS)
        with pytest.raises(linnet.LinnetError, match="set reranking in the request"):
            client.translate(request, reranking=reranking)
        with pytest.raises(linnet.LinnetError, match="Reranking"):
            client.translate(TEXTS[1], to="de", reranking={"hypotheses": 4})

    async def translated() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(TEXTS[1], **fields)

    assert asyncio.run(translated()) == answer
    monkeypatch.setenv("LINNET_SERVER", server.grpc)
    assert linnet.translate(TEXTS[1], **fields) == answer


def test_model_of_the_other_direction_is_needed(start, bundles_of_both_directions, api):
    alone = start(models=bundles_of_both_directions / "en-de")
    with pytest.raises(grpc.RpcError) as raised:
        to_german(alone, TEXTS[1], reranking={})
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert "no model translates de to en" in raised.value.details()
    assert "leave reranking out" in raised.value.details()
    assert api.check_error(raised.value)["ErrorInfo"].reason == "MODEL_NOT_FOUND"
