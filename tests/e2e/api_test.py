"""The API's models, languages, scores, headers and long texts."""

from __future__ import annotations

import grpc
import pytest

LONG = "The bird sings in the garden.  " * 300  # the tiny summariser reads 1024 tokens


def test_detects_source_language_of_a_request(server):
    answer = server.translate("The dog runs across the street.", source_language_code="")
    assert answer.detected_language.language_code == "en"
    assert 0.5 < answer.detected_language.confidence <= 1
    assert not server.translate("The dog runs.").HasField("detected_language")
    summary = server.summarize("The dog runs across the street.", language_code="")
    assert summary.detected_language.language_code == "en"


def test_detects_languages(server, api):
    request = api.DetectLanguageRequest(
        contents=["The dog runs across the street.", "Der Hund läuft über die Straße.", "12345"]
    )
    answer = server.method("DetectLanguage")(request, timeout=10)
    codes = [[said.language_code for said in each.languages] for each in answer.detections]
    assert codes == [["en"], ["de"], []]
    assert [each.reliable for each in answer.detections] == [True, True, False]


def test_returns_a_model_by_name(server, api):
    listed = server.method("ListModels")(api.ListModelsRequest(), timeout=10)
    told = server.method("GetModel")(api.GetModelRequest(name="en-de"), timeout=10)
    assert told.model == listed.models[0]
    assert told.request_limits == listed.request_limits
    assert told.model.max_beam_size >= 5
    assert told.request_limits.max_contents == 16384
    with pytest.raises(grpc.RpcError) as raised:
        server.method("GetModel")(api.GetModelRequest(name="babel"), timeout=10)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert api.details(raised.value)["ResourceInfo"].resource_name == "babel"


def test_long_text_is_summarised_in_chunks_on_request(server):
    source = LONG.encode()
    summary = server.summarize(LONG, long_input="LONG_INPUT_CHUNK", max_summary_tokens=9).summaries[
        0
    ]
    assert len(summary.segments) > 1
    assert not summary.truncated
    end = 0
    for segment in summary.segments:
        assert source[end : segment.source_begin].strip() == b""
        assert segment.source_end > segment.source_begin
        end = segment.source_end
    assert source[end:].strip() == b""


@pytest.mark.parametrize("words", [1, 4, 7])
def test_summary_has_the_wished_words(server, words):
    for text in ("A bird sings.", "The dog runs across the street and barks at a cat."):
        summary = server.summarize(text, length={"words": words}).summaries[0]
        assert len(summary.text.split()) <= words
        if summary.finish_reason == 1:  # STOP
            assert len(summary.text.split()) >= max(1, words * 3 // 4)
    chunked = server.summarize(LONG, long_input="LONG_INPUT_CHUNK", length={"words": 9})
    assert len(chunked.summaries[0].text.split()) <= 9


def test_long_text_is_truncated_on_request(server):
    summary = server.summarize(LONG, long_input="LONG_INPUT_TRUNCATE").summaries[0]
    assert summary.truncated
    assert 0 < summary.segments[0].source_end < len(LONG)


def test_words_have_scores_on_request(server):
    options = {"beam_size": 2, "n_best": 1}
    answer = server.translate("A bird sings.\nThe dog runs.", word_scores=True, options=options)
    translation = answer.translations[0]
    text = translation.text.encode()
    for segment in translation.segments:
        said = text[segment.target_begin : segment.target_end].split()
        words = [text[word.target_begin : word.target_end] for word in segment.words]
        assert words == said
        assert all(word.score <= 0 for word in segment.words)


def test_scores_are_batch_invariant(server, api):
    pairs = [
        {"source_text": "A bird sings.", "target_text": "Ein Vogel singt."},
        {"source_text": "The dog runs. It barks.", "target_text": "Der Hund läuft. Er bellt."},
    ]
    score = server.method("Score")

    def ask(*pairs):
        request = {"pairs": pairs, "source_language_code": "en", "target_language_code": "de"}
        return score(api.ScoreRequest(**request, word_scores=True), timeout=60)

    together = ask(*pairs)
    assert (together.model, len(together.scores)) == ("en-de", 2)
    for pair, scored in zip(pairs, together.scores, strict=True):
        assert ask(pair).scores[0] == scored
        assert scored.text == pair["target_text"]
        assert len(scored.words) == len(pair["target_text"].split())
        assert scored.usage.target_tokens == len(scored.token_scores)
        mean = sum(scored.token_scores) / len(scored.token_scores)
        assert scored.score == pytest.approx(mean, rel=1e-4)


def test_score_equals_the_score_of_the_search(server, api):
    """Only for targets that the tokenizer splits into the same tokens as the random model."""
    options = {"beam_size": 8, "n_best": 8, "max_target_tokens": 3}
    texts = [f"A bird sings {n} times." for n in range(40)]
    same = 0
    for text, found in zip(
        texts, server.translate(*texts, options=options).translations, strict=True
    ):
        said = [
            each for each in found.segments[0].hypotheses if each.text.strip() == each.text != ""
        ]
        pairs = [{"source_text": text, "target_text": each.text} for each in said]
        scored = server.method("Score")(api.ScoreRequest(pairs=pairs, model="en-de"), timeout=60)
        for hypothesis, score in zip(said, scored.scores, strict=True):
            if list(score.token_scores) == pytest.approx(list(hypothesis.token_scores), rel=1e-4):
                assert score.score == pytest.approx(hypothesis.score, rel=1e-4)
                same += 1
    assert same > 0


def test_accepts_known_and_rejects_unknown_priority(server, api):
    for priority in ("PRIORITY_BATCH", "PRIORITY_NORMAL", "PRIORITY_INTERACTIVE"):
        assert server.translate("A bird sings.", priority=priority).translations
    with pytest.raises(grpc.RpcError) as raised:
        server.translate("A bird sings.", priority=7)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert api.details(raised.value)["BadRequest"].field_violations[0].field == "priority"


def test_calls_and_errors_return_the_request_id(server, api):
    request = api.TranslateRequest(
        contents=["A bird sings."],
        source_language_code="en",
        target_language_code="de",
        labels={"team": "search"},
    )
    translate = server.method("Translate")
    _, call = translate.with_call(request, timeout=30, metadata=[("x-request-id", "one-two/3")])
    assert dict(call.initial_metadata())["x-request-id"] == "one-two/3"
    assert 'request_id=one-two/3 labels="team=search"' in server.log.read_text()
    made = set()
    for _ in range(3):
        _, call = translate.with_call(request, timeout=30)
        made.add(dict(call.initial_metadata())["x-request-id"])
    assert len(made) == 3
    assert all(len(each) == 32 for each in made)
    with pytest.raises(grpc.RpcError) as raised:
        translate(api.TranslateRequest(), timeout=30, metadata=[("x-request-id", "four")])
    assert api.details(raised.value)["RequestInfo"].request_id == "four"
    # gRPC does not retry after it has received headers, so a refused call has only trailers.
    assert raised.value.initial_metadata() in (None, ())
    assert dict(raised.value.trailing_metadata())["x-request-id"] == "four"


@pytest.mark.parametrize(
    ("header", "value", "told"),
    [
        ("x-priority", "urgent", ('"urgent"', "batch, normal or interactive")),
        ("x-request-id", "x" * 500, ("500 characters", "at most 128")),
        ("x-request-id", "two words", ('"two words"',)),
        ("x-client-id", "x" * 65, ("65 characters", "at most 64")),
    ],
)
def test_every_method_rejects_invalid_headers(server, api, header, value, told):
    unary = api.TranslateRequest(contents=["A bird sings."], target_language_code="de")
    document = api.TranslateDocumentRequest(settings={"target_language_code": "de"})
    metadata = [(header, value)]

    def calls():
        yield lambda: server.method("Translate")(unary, timeout=30, metadata=metadata)
        stream = api.StreamTranslateRequest(request=unary)
        yield lambda: list(
            server.method("StreamTranslate", "unary_stream")(stream, timeout=30, metadata=metadata)
        )
        yield lambda: list(
            server.method("TranslateDocument", "stream_stream")(
                iter([document]), timeout=30, metadata=metadata
            )
        )

    for call in calls():
        with pytest.raises(grpc.RpcError) as raised:
            call()
        details = api.check_error(raised.value)
        assert details["ErrorInfo"].reason == "BAD_HEADER"
        assert details["BadRequest"].field_violations[0].field == header
        for part in (header, *told):
            assert part in raised.value.details()


def test_rejects_unknown_field(server):
    with pytest.raises(grpc.RpcError) as raised:
        server.channel.unary_unary("/linnet.v1.TextService/Translate")(
            b"\x0a\x04good\x12\x02en\x1a\x02de\x62\x02hi", timeout=30
        )
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "field 12" in raised.value.details()


def test_full_server_returns_a_retry_delay(start, api):
    server = start("--max-admitted-tokens", "110000")
    running = server.translate_slowly()
    server.wait_for("linnet_admitted_tokens", lambda tokens: tokens > 0)
    long = {"beam_size": 5, "min_target_tokens": 1000, "max_target_tokens": 1000}
    with pytest.raises(grpc.RpcError) as raised:
        server.translate(*["one two three"] * 16, options=long)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    details = api.details(raised.value)
    delay = details["RetryInfo"].retry_delay.ToMilliseconds()
    assert dict(raised.value.trailing_metadata())["grpc-retry-pushback-ms"] == str(delay)
    assert details["QuotaFailure"].violations[0].subject
    assert details["ErrorInfo"].reason == "TOO_MUCH_WORK"
    running.cancel()
    server.stop()
