"""Linnet's own API as JSON, streams as server-sent events, and answers with ETags."""

import json

import pytest

TEXT = "one two three"


def request(text: str = TEXT, **fields) -> dict:
    return {
        "contents": [text],
        "source_language_code": "en",
        "target_language_code": "de",
        **fields,
    }


def events(reply) -> list[tuple[str, dict]]:
    found = []
    for event in reply.body.decode().strip().split("\n\n"):
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_messages_have_the_names_of_the_proto(door, server):
    said = door.post("/v1/translate", request(word_scores=True))
    expected = server.translate(TEXT).translations[0]
    (translation,) = said.json["translations"]
    assert translation["text"] == expected.text
    assert translation["segments"][0]["finish_reason"].startswith("FINISH_REASON_")
    assert said.json["model"] == "en-de"
    assert said.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/summarize", {"contents": [TEXT], "language_code": "en"}, "summaries"),
        ("/v1/detect-language", {"contents": [TEXT]}, "detections"),
        (
            "/v1/score",
            {
                "pairs": [{"source_text": "a", "target_text": "b"}],
                "source_language_code": "en",
                "target_language_code": "de",
            },
            "scores",
        ),
    ],
)
def test_every_unary_method(door, path, body, field):
    said = door.post(path, body)
    assert said.status == 200, said.body
    assert len(said.json[field]) == 1


def test_models(door):
    names = [it["name"] for it in door.get("/v1/models").json["models"]]
    assert names == ["en-de", "en-summary"]
    assert door.get("/v1/models/en-de").json["model"]["task"] == "TASK_TRANSLATE"
    missing = door.get("/v1/models/none")
    assert missing.status == 404
    assert missing.json["error"]["reason"] == "MODEL_NOT_FOUND"


def test_a_stream_is_events_that_end_with_the_response(door):
    said = door.post("/v1/translate/stream", request("one. two. three."))
    assert said.headers["Content-Type"] == "text/event-stream"
    *parts, (last, response) = events(said)
    assert last == "response"
    assert {name for name, _ in parts} == {"part"}
    assert "".join(it["text"] for _, it in parts) == response["translations"][0]["text"]


def test_a_stream_that_fails_before_its_first_event_has_a_status(door):
    said = door.post("/v1/translate/stream", request(target_language_code="xx"))
    assert said.status == 404
    assert said.json["error"]["reason"] == "MODEL_NOT_FOUND"


def test_a_document_answers_each_line(door, server):
    settings = request()
    del settings["contents"]
    lines = ["one", "", "two"]
    *found, end = events(
        door.post("/v1/translate/document", {"settings": settings, "lines": lines})
    )
    assert end == ("end", {"lines": 3})
    said = [it["response"]["translations"][0]["text"] for _, it in found]
    assert said == [server.translate(line).translations[0].text if line else "" for line in lines]


def test_a_line_that_fails_leaves_the_others(door):
    settings = request()
    del settings["contents"]
    body = {"settings": settings, "lines": ["a " * 700_000, "one"]}
    (_, first), (_, second), end = events(door.post("/v1/translate/document", body))
    assert first["error"]["reason"] == "TEXT_TOO_LARGE"
    assert len(second["response"]["translations"]) == 1
    assert end == ("end", {"lines": 2})


def test_wrong_settings_of_a_document_have_a_status(door):
    body = {"settings": {"target_language_code": "de", "model": "none"}, "lines": ["one"]}
    said = door.post("/v1/translate/document", body)
    assert said.status == 404
    assert said.json["error"]["reason"] == "MODEL_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b'{"contents": ["a"], "contents": ["b"]}', "occurs twice"),
        (b'{"contents": [NaN]}', "NaN is not JSON"),
        (b'{"contents": ["\xff"]}', "byte 15 is wrong"),
        (b"{", "not JSON"),
        (b"[]", "must be an object"),
        (b'{"beam": 1}', "beam"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_wrong_json_is_refused_with_its_cause(door, body, wrong):
    said = door.send("POST", "/v1/translate", body, Content_Type="application/json")
    assert said.status == 400
    assert wrong in said.json["error"]["message"]
