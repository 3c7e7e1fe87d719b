"""Answers to valid requests, health, reflection and metrics."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

TEXT = "  Dr. Smith reads.  A bird sings.\n\nThe last line \t"


def test_translation_keeps_white_space_between_segments(server):
    answer = server.translate(TEXT)
    assert (answer.model, answer.model_version) == ("en-de", "seed-7")
    translation = answer.translations[0]
    source, target = TEXT.encode(), translation.text.encode()
    sources, gaps, source_end, target_end = [], [], 0, 0
    for segment in translation.segments:
        assert (
            source[source_end : segment.source_begin] == target[target_end : segment.target_begin]
        )
        gaps.append(source[source_end : segment.source_begin])
        sources.append(source[segment.source_begin : segment.source_end])
        source_end, target_end = segment.source_end, segment.target_end
    assert sources == [b"Dr. Smith reads.", b"A bird sings.", b"The last line"]
    assert gaps == [b"  ", b"  ", b"\n\n"]
    assert source[source_end:] == target[target_end:] == b" \t"


def test_translations_keep_order_and_are_batch_invariant(server):
    texts = [f"word number {n} of many" for n in range(12)]
    together = [translation.text for translation in server.translate(*texts).translations]
    alone = [server.translate(text).translations[0].text for text in texts]
    assert together == alone


def test_concurrent_callers_get_the_same_answers(server):
    texts = [f"caller {n} says {n * n} words" for n in range(16)]
    alone = [server.translate(text).translations[0].text for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert (
            list(pool.map(lambda text: server.translate(text).translations[0].text, texts)) == alone
        )


def test_options_change_the_search(server):
    options = {"beam_size": 4, "n_best": 3, "min_target_tokens": 5, "max_target_tokens": 7}
    segment = server.translate("A bird sings.", options=options).translations[0].segments[0]
    scores = [hypothesis.score for hypothesis in segment.hypotheses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    for hypothesis in segment.hypotheses:
        assert 6 <= hypothesis.tokens <= 8, "5 to 7 and the end token"
        assert len(hypothesis.token_scores) == hypothesis.tokens
        assert hypothesis.score == pytest.approx(
            sum(hypothesis.token_scores) / hypothesis.tokens, rel=1e-4
        )


def test_summary_reads_the_whole_text_as_one(server):
    summary = server.summarize(
        "A bird sings. The dog runs.\nA line.", max_summary_tokens=9
    ).summaries[0]
    assert len(summary.segments) == 1
    assert summary.usage.target_tokens <= 10


def test_usage_and_timings_are_returned(server):
    answer = server.translate("A bird sings.")
    assert answer.translations[0].usage.source_tokens > 1
    total = answer.timings.total.ToTimedelta()
    assert total >= answer.timings.decode.ToTimedelta() > answer.timings.encode.ToTimedelta()
    assert answer.timings.encode.ToTimedelta() > total * 0


def test_models_are_listed_with_every_default(server, api):
    models = {
        model.name: model
        for model in server.method("ListModels")(api.ListModelsRequest(), timeout=10).models
    }
    assert set(models) == {"en-de", "en-summary"}
    model = models["en-de"]
    assert (model.source_language_code, model.target_language_code, model.device) == (
        "en",
        "de",
        "cpu",
    )
    assert len(model.sha256) == 64
    assert model.parameters > 0
    assert model.compute_type
    for field in model.default_options.DESCRIPTOR.fields:
        drawn_per_request = field.name == "seed"
        assert model.default_options.HasField(field.name) != drawn_per_request, field.name


def test_health_is_reported_by_service(server):
    assert server.health("") == 1
    assert server.health("linnet.v1.TextService") == 1
    with pytest.raises(grpc.RpcError) as error:
        server.health("linnet.v1.Nothing")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_reflection_names_the_services(server):
    info = server.channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    )
    list_services = b"\x3a\x00"
    answer = next(iter(info(iter([list_services]), timeout=10)))
    assert b"linnet.v1.TextService" in answer
    assert b"grpc.health.v1.Health" in answer


def test_metrics_page_counts_calls(server):
    ok = 'linnet_requests_total{code="OK",method="Translate"}'
    before, tokens = server.metric(ok), server.metric('linnet_target_tokens_total{model="en-de"}')
    usage = server.translate("A bird sings. The dog runs.").translations[0].usage
    assert server.metric(ok) == before + 1
    assert (
        server.metric('linnet_target_tokens_total{model="en-de"}') == tokens + usage.target_tokens
    )
    page = server.scrape()
    assert 'linnet_queue_duration_seconds_count{model="en-de",priority="normal"}' in page
    for name in ("encode", "decode", "step"):
        assert f'linnet_{name}_duration_seconds_count{{model="en-de"}}' in page
    assert server.metric('linnet_step_rows_count{model="en-de"}') > 0
    assert server.metric("linnet_admitted_tokens") == 0


def test_text_is_never_logged(server):
    server.translate("Xylophones quarrel mightily.")
    with pytest.raises(grpc.RpcError):
        server.translate("Xylophones quarrel mightily.", mime_type="xylophone/quarrel")
    log = server.log.read_text()
    assert "call method=Translate" in log
    assert "ylophone" not in log


def test_cli_gets_answers(server, linnet_binary):
    def linnet(*arguments: str, text: str | None = None) -> str:
        command = [str(linnet_binary), *arguments[:1], "--server", server.grpc, *arguments[1:]]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    assert (
        linnet("translate", "--to", "de", "A bird sings.").strip()
        == server.translate("A bird sings.").translations[0].text
    )
    assert linnet("summarize", text="A bird sings. The dog runs.").strip()
    assert "en-de" in linnet("models")
    assert "SERVING" in linnet("health")
