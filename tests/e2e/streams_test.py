"""Streams, whose parts are final, and documents of any length."""

from __future__ import annotations

import random
import threading

import grpc
import pytest

TEXT = "  Dr. Smith reads.  A bird sings.\n\nThe last line \t"
IN_FLIGHT = 'linnet_requests_in_flight{method="TranslateDocument"}'


def without_timings(response):
    response.ClearField("timings")
    return response


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_stream_parts_make_the_unary_answer(server, beam):
    words = ["the", "bird", "sings", "reads", "in", "on", "garden", "book", "red", "7", "ä"]
    chance = random.Random(beam)
    contents = [TEXT] + [
        " ".join(chance.choices(words, k=chance.randint(1, 12))) + "." for _ in range(6)
    ]
    options = {"beam_size": beam, "n_best": 1, "max_target_tokens": 25}
    messages = list(server.stream_translate(*contents, options=options, word_scores=True))
    unary = server.translate(*contents, options=options, word_scores=True)
    assert [message.WhichOneof("event") for message in messages] == ["part"] * (
        len(messages) - 1
    ) + ["response"]
    assert without_timings(messages[-1].response) == without_timings(unary)
    texts = [""] * len(contents)
    places = []
    for message in messages[:-1]:
        part = message.part
        texts[part.content_index] += part.text
        whole = unary.translations[part.content_index]
        assert whole.text.startswith(texts[part.content_index]), "a part was not final"
        places.append((part.content_index, part.segment_index))
        if part.HasField("segment"):
            assert part.segment == whole.segments[part.segment_index]
    assert places == sorted(places)
    assert texts == [translation.text for translation in unary.translations]


def test_text_arrives_before_the_stream_is_complete(server):
    # Greedy: every token is stable at once. A writer that falls behind joins parts, so the text is
    # long enough for it to run in between.
    options = {"beam_size": 1, "min_target_tokens": 1000, "max_target_tokens": 1000}
    messages = list(server.stream_translate(*["A bird sings."] * 8, options=options))
    assert len(messages) > 8 + 1, "more than the last part of each text and the response"


def test_late_reader_gets_the_same_text(server):
    options = {"beam_size": 1, "min_target_tokens": 60, "max_target_tokens": 60}
    contents = ["A bird sings."] * 40
    call = server.stream_translate(*contents, options=options)
    texts = [""] * len(contents)
    first = next(call).part
    texts[first.content_index] += first.text
    unary = server.translate(*contents, options=options)  # takes as long as the stream
    rest = list(call)
    for message in rest[:-1]:
        texts[message.part.content_index] += message.part.text
    assert texts == [translation.text for translation in unary.translations]
    assert without_timings(rest[-1].response) == without_timings(unary)


def test_summary_is_streamed(server, api):
    request = {"contents": ["A bird sings. The dog runs."], "language_code": "en"}
    messages = list(
        server.method("StreamSummarize", "unary_stream")(
            api.StreamSummarizeRequest(request=request), timeout=60
        )
    )
    unary = server.summarize(*request["contents"])
    assert "".join(message.part.text for message in messages) == unary.summaries[0].text
    assert without_timings(messages[-1].response) == without_timings(unary)


def test_rejects_invalid_stream_by_field_path(server, api):
    with pytest.raises(grpc.RpcError) as raised:
        list(server.stream_translate("good", ""))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    field = api.details(raised.value)["BadRequest"].field_violations[0].field
    assert field == "request.contents[1]"


def test_cancelled_stream_frees_its_rows(server):
    options = {"beam_size": 1, "min_target_tokens": 1000, "max_target_tokens": 1024}
    call = server.stream_translate(*["A bird sings."] * 4, options=options)
    next(iter(call))
    call.cancel()
    server.wait_for("linnet_admitted_tokens", lambda tokens: tokens == 0)
    assert server.translate("A bird sings.").translations


def test_document_is_answered_line_by_line(server):
    lines = [(n, f"line {n} of the document") for n in range(200)]
    lines[7] = (7, "")
    results = {result.sequence_id: result for result in server.document(lines)}
    assert set(results) == set(range(200))
    assert results[7].response.translations[0].text == ""
    for n in (0, 63, 64, 199):
        alone = server.translate(lines[n][1])
        assert without_timings(results[n].response) == without_timings(alone)


def test_document_keeps_order_on_request(server):
    chance = random.Random(3)
    lines = [(100 - n, "the bird sings " * chance.randint(1, 9)) for n in range(60)]
    results = [result.sequence_id for result in server.document(lines, keep_order=True)]
    assert results == [sequence_id for sequence_id, _ in lines]


def test_failed_line_has_a_status(server, api):
    lines = [(1, "A bird sings."), (2, "a" * 1_100_000), (3, "The dog runs.")]
    results = {result.sequence_id: result for result in server.document(lines)}
    assert results[1].HasField("response")
    assert results[3].HasField("response")
    error = results[2].error
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    details = {detail.type_url.rsplit(".", 1)[-1]: detail for detail in error.details}
    assert (
        api.BadRequest.FromString(details["BadRequest"].value).field_violations[0].field == "text"
    )
    assert api.ErrorInfo.FromString(details["ErrorInfo"].value).reason == "TEXT_TOO_LARGE"


def test_document_with_invalid_settings_ends_at_once(server, api):
    forever = threading.Event()

    def lines():
        yield 1, "A bird sings."
        forever.wait(60)

    with pytest.raises(grpc.RpcError) as raised:
        list(server.document(lines(), options={"beam_size": 0}))
    forever.set()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    field = api.details(raised.value)["BadRequest"].field_violations[0].field
    assert field == "settings.options.beam_size"


def test_flow_control_blocks_an_unread_document(server):
    """Flow control blocks a client that sends without reading until it reads."""
    lines, blank = 4000, " " * 10_000  # blank lines are answered without the engine
    sent = 0

    def send():
        nonlocal sent
        for n in range(lines):
            yield n, blank
            sent += 1

    call = server.document(send(), keep_order=True)
    held = -1
    while held != (held := sent):
        for _ in range(5):  # meanwhile others are served
            server.translate("The dog runs.", options={"beam_size": 1, "max_target_tokens": 4})
    assert 0 < sent < lines // 2, "no more than the HTTP/2 buffers hold"
    assert [result.sequence_id for result in call] == list(range(lines))


def test_document_of_a_lost_client_is_cancelled(server):
    hold = threading.Event()

    def lines():
        for n in range(10):
            yield n, "A bird sings."
        hold.wait(60)

    call = server.document(lines(), options={"min_target_tokens": 900, "max_target_tokens": 900})
    server.wait_for("linnet_admitted_tokens", lambda tokens: tokens > 0)
    call.cancel()
    hold.set()
    server.wait_for("linnet_admitted_tokens", lambda tokens: tokens == 0)
    server.wait_for(IN_FLIGHT, lambda calls: calls == 0)


def test_drain_ends_documents_and_streams(start):
    """A document that waits for its client ends at once, and is told why."""
    server = start("--drain-timeout", "300")
    hold = threading.Event()

    def lines():
        yield 1, "A bird sings."
        hold.wait(600)

    call = server.document(lines())
    results = iter(call)
    assert next(results).sequence_id == 1
    assert server.stop() == 0
    hold.set()
    with pytest.raises(grpc.RpcError) as raised:
        list(results)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert server.api.details(raised.value)["ErrorInfo"].reason == "SHUTTING_DOWN"
