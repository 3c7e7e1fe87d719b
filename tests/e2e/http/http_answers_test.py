"""What the faces say of answers and requests, before a server whose answers a test chooses."""

import deepl
import libretranslatepy
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


# A request of each face without a source, and where its answer has the language.
SOURCES = [
    ("/translate", {"q": "a", "source": "auto"}, lambda it: it["detectedLanguage"]["language"]),
    ("/v2/translate", {"text": "a"}, lambda it: it["translations"][0]["detected_source_language"]),
    ("/translate", {"text": "a", "source_lang": "auto"}, lambda it: it["source_lang"]),
    ("/kiss", {"text": "a", "from": "auto", "to": "de"}, lambda it: it["src"]),
    ("/kiss", {"texts": ["a"], "to": "de"}, lambda it: it["translations"][0]["src"]),
    (
        "/imme",
        {"text_list": ["a"]},
        lambda it: it["translations"][0]["detected_source_lang"],
    ),
    (
        "/language/translate/v2",
        {"q": "a"},
        lambda it: it["data"]["translations"][0]["detectedSourceLanguage"],
    ),
]


@pytest.mark.parametrize(("path", "body", "read"), SOURCES)
def test_a_source_that_was_not_detected_is_that_of_the_model(told, path, body, read):
    server, door = told
    server.reply = server.linnet.TranslateResponse(model="fr-de")
    server.reply.translations.add(text="A")
    languages = {} if "to" in body else {"target": "de", "target_lang": "DE"}
    said = door.post(path, {**body, **languages})
    assert said.status == 200, said.body
    assert read(said.json).lower() == "fr"


def test_a_source_of_several_is_that_of_most_texts(told):
    server, door = told
    model = server.models.models.add(name="many")
    for pair in ("en", "de"), ("fr", "de"), ("it", "de"), ("es", "en"):
        model.language_pairs.add(source_language_code=pair[0], target_language_code=pair[1])
    server.reply = server.linnet.TranslateResponse(model="many")
    for language in ("it", "", "es", "es", ""):
        server.reply.translations.add(text="A").detected_language.language_code = language
    # The texts in Spanish went through English, and name the models themselves.
    for one in server.reply.translations[2:]:
        one.model, one.pivot.model, one.pivot.language_code = "en-de", "many", "en"
    said = door.post("/v2/translate", {"text": ["a"] * 5, "target_lang": "DE"}, Authorization="new")
    found = [it["detected_source_language"] for it in said.json["translations"]]
    assert found == ["IT", "IT", "ES", "ES", "ES"]


@pytest.mark.parametrize(("path", "body", "_"), SOURCES)
def test_every_face_passes_warnings_on(told, path, body, _):
    server, door = told
    server.reply = server.linnet.TranslateResponse(model="fr-de")
    one = server.reply.translations.add(text="A")
    languages = {} if "to" in body else {"target": "de", "target_lang": "DE"}
    assert b"warnings" not in door.post(path, {**body, **languages}).body
    one.warnings.add(reason="LANGUAGE_MISMATCH", message="German").metadata["x"] = "y"
    said = door.post(path, {**body, **languages})
    warning = '"warnings":[{"reason":"LANGUAGE_MISMATCH","message":"German"}]'
    assert warning in said.body.decode()
    if "q" in body and path == "/translate":
        said = door.post(path, {**body, **languages, "q": ["a"]}).json
        assert said["warnings"] == [[{"reason": "LANGUAGE_MISMATCH", "message": "German"}]]


def test_clients_of_libretranslate_and_deepl_ignore_warnings(told):
    server, door = told
    server.reply = server.linnet.TranslateResponse(model="fr-de")
    server.reply.translations.add(text="A").warnings.add(reason="NOT_PROSE")
    client = libretranslatepy.LibreTranslateAPI(door.url)
    assert client.translate("a", "fr", "de") == "A"
    found = deepl.DeepLClient("key", server_url=door.url).translate_text("a", target_lang="DE")
    assert (found.text, found.detected_source_lang) == ("A", "FR")
