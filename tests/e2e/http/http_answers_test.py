"""What the faces say of answers and requests, before a server whose answers a test chooses."""

import pytest
from fake_server import FakeServer
from http_files_test import send


@pytest.fixture(scope="module")
def told(linnet, open_door):
    """A server with models for en-de, de-en and fr-de, and linnet-http before it."""
    server = FakeServer(linnet)
    for source, target in (("en", "de"), ("de", "en"), ("fr", "de")):
        model = server.models.models.add(name=f"{source}-{target}")
        model.language_pairs.add(source_language_code=source, target_language_code=target)
    yield server, open_door(server.address)
    server.server.stop(None)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (
            "/translate",
            {"q": "a", "source": "en", "target": "de", "format": "md"},
            'format is "md", it must be one of text, html',
        ),
        (
            "/v2/translate",
            {"text": ["a"], "target_lang": "DE", "tag_handling": "md"},
            'tag_handling is "md", it must be one of xml, html',
        ),
    ],
)
def test_a_wrong_choice_lists_the_choices(told, path, body, message):
    said = told[1].post(path, body)
    assert said.status == 400
    assert message in said.json.values()


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"beam": 1}, "beam", "TranslateRequest has the fields contents, source_language_code,"),
        ({"options": {"beamSize": 1, "nbest": 1}}, "options.nbest", "DecodingOptions has the"),
        ({"glossary": {"entries": [{}, {"a": 1}]}}, "glossary.entries[1].a", "GlossaryEntry has"),
    ],
)
def test_an_unknown_field_is_named_with_its_path(told, body, field, message):
    said = told[1].post("/v1/translate", body)
    assert said.status == 400
    error = said.json["error"]
    assert (error["reason"], error["field"]) == ("UNKNOWN_FIELD", field)
    assert error["message"].startswith(f"{field} is not known: {message}")


@pytest.mark.parametrize("path", ["/v2/document", "/translate_file"])
def test_a_file_that_cannot_be_read_is_told_in_terms_of_http(told, path):
    fields = {"source": "en", "target": "de", "target_lang": "DE"}
    cue = "1\n00:00:01,000 --> 00:00:02,000\nNa\u00efve\n".encode("latin-1")
    for data, message in (
        (b"", "file is empty: send a file that has text"),
        (cue, "a.srt: line 3: byte 34 is not utf-8: convert the file to UTF-8"),
    ):
        said = send(told[1], path, "a.srt", data, **fields)
        assert said.status == 400
        assert message in said.json.values()


def test_settings_propose_a_pair_that_is_served(told):
    said = told[1].get("/frontend/settings").json["language"]
    assert (said["source"]["code"], said["target"]["code"]) == ("de", "en")
