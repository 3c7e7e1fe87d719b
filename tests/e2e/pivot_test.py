"""Translation through English by two models, behind the real server and the real command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import grpc
import pytest
from random_bundles import random_bundle

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["Der Hund läuft. Ein Vogel singt.\n\nSie liest. ", "Noch ein Satz."]
SHORT = {"beam_size": 2}


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server with two models, German and English, English and French; random weights."""
    folder = tmp_path_factory.mktemp("bundles")
    for seed, (name, languages) in enumerate({"de-en": "de,en", "en-fr": "en,fr"}.items()):
        random_bundle(
            folder / name,
            *("--seed", str(seed + 7), "--languages", languages, "--max-target-tokens", "24"),
        )
    return start(models=folder)


def to_french(server, *texts: str, **fields):
    fields = {"source_language_code": "de", "target_language_code": "fr", **fields}
    return server.translate(*texts, **fields)


def by_hand(server, text: str, **fields):
    """For each segment of the text: the English segment and the French translation of it."""
    english = to_french(server, text, target_language_code="en", **fields).translations[0]
    for segment in english.segments:
        part = english.text.encode()[segment.target_begin : segment.target_end].decode()
        said = to_french(server, part, source_language_code="en", **fields)
        yield segment, said.translations[0]


def test_answer_is_that_of_two_calls_made_by_hand(server):
    fields = {"options": SHORT, "word_scores": True, "alignments": True}
    answer = to_french(server, *TEXTS, **fields)
    assert (answer.model, answer.model_version) == ("en-fr", "seed-8")
    assert (answer.pivot.model, answer.pivot.model_version) == ("de-en", "seed-7")
    assert answer.pivot.language_code == "en"
    for text, translation in zip(TEXTS, answer.translations, strict=True):
        source, target = text.encode(), translation.text.encode()
        usage, read, end, words = 0, 0, 0, 0
        hand = list(by_hand(server, text, **fields))
        for segment, (english, french) in zip(translation.segments, hand, strict=True):
            assert target[segment.target_begin : segment.target_end].decode() == french.text
            assert (segment.source_begin, segment.source_end) == (
                english.source_begin,
                english.source_end,
            )
            assert target[end : segment.target_begin] == source[read : segment.source_begin]
            read, end = segment.source_end, segment.target_end
            scores = english.score + sum(part.score for part in french.segments)
            assert segment.score == pytest.approx(scores, abs=1e-5)
            usage += french.usage.source_tokens + french.usage.target_tokens
            words += len(segment.words)
            for link in segment.word_alignments:
                assert segment.source_begin <= link.source_begin < link.source_end
                assert link.source_end <= segment.source_end
                assert segment.target_begin <= link.target_begin < link.target_end
                assert link.target_end <= segment.target_end
                assert 0 <= link.weight <= 1
            aligned = {link.target_begin for link in segment.word_alignments}
            assert aligned == {word.target_begin for word in segment.words}
        english = to_french(server, text, target_language_code="en", **fields).translations[0]
        usage += english.usage.source_tokens + english.usage.target_tokens
        assert translation.usage.source_tokens + translation.usage.target_tokens == usage
        assert target[end:] == source[read:]
        assert words > 0


def test_answer_does_not_depend_on_other_calls(server):
    alone = to_french(server, TEXTS[0], options=SHORT)
    others = [server.translate_slowly(source_language_code="de", target_language_code="en")]
    among = to_french(server, *TEXTS, TEXTS[0], options=SHORT)
    for call in others:
        call.cancel()
    assert among.translations[0] == alone.translations[0] == among.translations[2]


def test_stream_and_document_have_the_same_answer(server):
    unary = to_french(server, *TEXTS, options=SHORT)
    fields = {"source_language_code": "de", "target_language_code": "fr", "options": SHORT}
    messages = list(server.stream_translate(*TEXTS, **fields))
    assert messages[-1].response.translations == unary.translations
    assert messages[-1].response.pivot == unary.pivot
    for index, translation in enumerate(unary.translations):
        parts = [m.part for m in messages[:-1] if m.part.content_index == index]
        assert "".join(part.text for part in parts) == translation.text
        assert [p.segment for p in parts if p.HasField("segment")] == list(translation.segments)
    lines = [text.strip().replace("\n", " ") for text in TEXTS]
    results = list(server.document(enumerate(lines), keep_order=True, **fields))
    for line, result in zip(lines, results, strict=True):
        assert result.response.pivot == unary.pivot
        assert result.response.translations == to_french(server, line, options=SHORT).translations


def test_direct_only_keeps_the_error(server, linnet_binary):
    with pytest.raises(grpc.RpcError) as raised:
        to_french(server, TEXTS[0], direct_only=True)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == (
        "no model translates de to fr: there is de to en, en to de, en to fr, fr to en"
    )

    def linnet(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(linnet_binary), "translate", "--beam", "2", *arguments, TEXTS[1]],
            env={
                **os.environ,
                "LINNET_SERVER": server.grpc,
                "LINNET_FROM": "de",
                "LINNET_TO": "fr",
            },
            capture_output=True,
            text=True,
            timeout=120,
        )

    answer = to_french(server, TEXTS[1], options=SHORT)
    assert linnet().stdout == answer.translations[0].text + "\n"
    said = json.loads(linnet("--json").stdout)
    assert said["pivot"] == {"language_code": "en", "model": "de-en", "model_version": "seed-7"}
    refused = linnet("--direct-only")
    assert refused.returncode == 64 + grpc.StatusCode.NOT_FOUND.value[0]
    assert "no model translates de to fr" in refused.stderr


def test_n_best_is_refused_with_its_reason(server, api):
    with pytest.raises(grpc.RpcError) as raised:
        to_french(server, TEXTS[0], options={"n_best": 2, "beam_size": 2})
    assert api.check_error(raised.value)["BadRequest"].field_violations[0].field == (
        "options.n_best"
    )
    assert "only through en" in raised.value.details()


def test_python_client_can_refuse_a_pivot(server, linnet):
    answer = to_french(server, TEXTS[1]).translations[0].text
    with linnet.Client(server.grpc) as client:
        assert client.translate(TEXTS[1], to="fr", source="de") == answer
        with pytest.raises(linnet.LinnetError) as raised:
            client.translate(TEXTS[1], to="fr", source="de", direct_only=True)
    assert raised.value.code == grpc.StatusCode.NOT_FOUND
