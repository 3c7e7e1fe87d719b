"""Plain strings and pairs for detect_language and score of the package `linnet`."""

from __future__ import annotations

import asyncio

import grpc
import pytest

GERMAN = "Der Hund läuft über die Straße, und niemand hält ihn auf."
ENGLISH = "The dog runs across the street, and nobody stops it."


def from_both(linnet, server, call):
    """The answers of both clients to call(client), which must be equal."""

    async def ask():
        async with linnet.AsyncClient(server.grpc) as client:
            return await call(client)

    with linnet.Client(server.grpc) as client:
        blocking = call(client)
    assert asyncio.run(ask()) == blocking
    return blocking


def test_language_of_a_string_is_one_detection_and_of_a_list_a_list(linnet, server):
    german = from_both(linnet, server, lambda client: client.detect_language(GERMAN))
    assert (german.languages[0].language_code, german.reliable) == ("de", True)
    texts = [ENGLISH, " ", GERMAN, "\ufeff", GERMAN]
    listed = from_both(linnet, server, lambda client: client.detect_language(texts))
    codes = [[it.language_code for it in each.languages][:1] for each in listed]
    assert codes == [["en"], [], ["de"], [], ["de"]]
    assert listed[2] == german
    many = from_both(linnet, server, lambda client: client.detect_language(iter(texts * 60)))
    assert many == listed * 60  # in several calls
    assert from_both(linnet, server, lambda client: client.detect_language([])) == []
    request = linnet.DetectLanguageRequest(contents=[GERMAN])
    whole = from_both(linnet, server, lambda client: client.detect_language(request))
    assert list(whole.detections) == [german]


def test_score_of_a_pair_is_one_and_of_a_list_a_list(linnet, server):
    pairs = [(f"number {n % 7}", f"nummer {n % 5}") for n in range(150)]
    request = linnet.ScoreRequest(source_language_code="en", target_language_code="de")
    request.pairs.add(source_text=pairs[3][0], target_text=pairs[3][1])
    with linnet.Client(server.grpc) as client:
        whole = client.score(request)  # with timings
    said = {"source": "en", "to": "de"}
    alone = from_both(linnet, server, lambda client: client.score(pairs[3], **said))
    assert alone == whole.scores[0]
    listed = from_both(linnet, server, lambda client: client.score(pairs, **said))
    assert len(listed) == 150
    assert listed[3] == alone == listed[38]
    assert from_both(linnet, server, lambda client: client.score([], **said)) == []
    plain = linnet.ScoringOptions(normalize_scores=False)
    by_model = from_both(
        linnet, server, lambda client: client.score(pairs[3], model="en-de", options=plain)
    )
    assert by_model.score == pytest.approx(sum(alone.token_scores), rel=1e-5)


def test_error_names_the_pair_of_the_whole_list(linnet, server):
    pairs = [("one", "eins")] * 100 + [("two", " ")]

    async def ask() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            await client.score(pairs, source="en", to="de")

    with linnet.Client(server.grpc) as client:
        calls = [lambda: client.score(pairs, source="en", to="de"), lambda: asyncio.run(ask())]
        for call in calls:
            with pytest.raises(linnet.LinnetError) as caught:
                call()
            assert caught.value.field == "pairs[100].target_text"
            assert "pairs[100]" in caught.value.message


def test_call_that_is_too_large_is_halved(linnet):
    from linnet.batches import scores

    batches = scores([("a", str(number)) for number in range(10)])
    error = linnet.LinnetError.local("too large", reason="TOO_MANY_TEXTS")
    while batch := batches.next():
        if len(batch.items) > 3:
            batches.refused(batch, error)
        else:
            answers = [linnet.TargetScore(text=target) for _, target in batch.items]
            batches.answer(batch, answers)
    assert [answer.text for answer in batches.answers()] == [str(number) for number in range(10)]
    batches = scores(("a", "b"))
    with pytest.raises(linnet.LinnetError, match="too large"):
        batches.refused(batches.next(), error)
    batches = scores(("a", "b"))
    with pytest.raises(linnet.LinnetError, match="0 answers to 1 pairs") as caught:
        batches.answer(batches.next(), [])
    assert caught.value.code == grpc.StatusCode.INTERNAL
