"""What caches may keep: immutable answers, answers with an ETag, and nothing else."""

from urllib.parse import parse_qs, urlsplit

import pytest

QUERY = "q=one+two+%26+three&source=en&target=de"
CURRENT = f"/v1/translate?{QUERY}"
KEPT = "public, max-age=31536000, immutable"


def test_equal_gets_have_equal_answers_and_tags(door):
    first, second = door.get(CURRENT), door.get(CURRENT)
    assert first.body == second.body
    assert set(first.json) == {"text", "detected_language", "model"}
    tag = first.headers["ETag"]
    assert not tag.startswith("W/")
    assert first.headers["Cache-Control"] == "public, no-cache"
    again = door.get(CURRENT, If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == tag
    assert again.headers["Cache-Control"] == "public, no-cache"
    assert door.get(CURRENT, If_None_Match='"other"').status == 200


def test_content_location_names_the_immutable_answer(door):
    current = door.get(CURRENT)
    place = current.headers["Content-Location"]
    assert parse_qs(urlsplit(place).query)["q"] == ["one two & three"]
    kept = door.get(place)
    assert kept.status == 200
    assert kept.headers["Cache-Control"] == KEPT
    assert kept.body == current.body
    assert kept.headers["ETag"] == current.headers["ETag"]
    assert door.get(place, If_None_Match=kept.headers["ETag"]).status == 304


def test_a_digest_ends_with_its_model(reloadable, open_door):
    server, reload = reloadable
    door = open_door(server.grpc, "--server-metrics", server.metrics)
    old = door.get(CURRENT)
    place = old.headers["Content-Location"]
    assert door.get(place).status == 200
    reload()
    gone = door.get(place)
    assert gone.status == 404
    assert gone.headers["Cache-Control"] == "no-store"
    assert gone.json["error"]["reason"] == "MODEL_NOT_FOUND"
    new = door.get(CURRENT)
    assert new.json["text"] != old.json["text"]
    assert new.headers["ETag"] != old.headers["ETag"]


def test_the_digest_names_model_compute_type_and_version(linnet):
    from linnet.v1.text_service_pb2 import Model
    from linnet_http.faces.answers import digest_of

    def digest(version: str = "1.0", **fields) -> str:
        model = {"name": "a", "sha256": "b", "compute_type": "float32", "device": "cpu"}
        return digest_of(Model(**{**model, **fields}), version)

    assert digest(state="MODEL_STATE_LOADED") == digest()
    others = {
        digest("1.1"),
        digest(sha256="c"),
        digest(compute_type="int8"),
        digest(device="cuda:0"),
        digest(default_options={"beam_size": 2}),
    }
    assert len(others | {digest()}) == 6


def test_without_a_source_or_the_version_of_the_server_nothing_is_immutable(
    door, open_door, server
):
    assert "Content-Location" not in door.get("/v1/translate?q=Guten+Tag&target=de").headers
    blind = open_door(server.grpc)
    current = blind.get(CURRENT)
    assert current.status == 200
    assert "Content-Location" not in current.headers
    place = door.get(CURRENT).headers["Content-Location"]
    assert blind.get(place).status == 404


def test_answers_to_tokens_are_for_no_cache(door, open_door, server):
    """Unless the operator shares them."""
    token = {"Authorization": "Bearer abc"}
    place = door.get(CURRENT).headers["Content-Location"]
    private = door.get(CURRENT, **token)
    assert private.status == 200
    assert private.headers["Cache-Control"] == "no-store"
    assert {"ETag", "Content-Location"}.isdisjoint(private.headers)
    refused = door.get(place, **token)
    assert refused.status == 403
    assert refused.headers["Cache-Control"] == "no-store"
    assert "--shared-cache" in refused.json["error"]["message"]
    shared = open_door(server.grpc, "--server-metrics", server.metrics, "--shared-cache")
    assert shared.get(place, **token).headers["Cache-Control"] == KEPT
    assert shared.get(CURRENT, **token).headers["Cache-Control"] == "public, no-cache"


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("q=a&source=en", "target is missing"),
        ("source=en&target=de", "q is missing"),
        (f"{QUERY}&q=again", "twice"),
        (f"{QUERY}&utm_source=a", "not utm_source"),
        (f"{QUERY}&token=a", "not token"),
    ],
)
def test_wrong_urls_are_refused(door, query, wrong):
    """Fields without an effect too: each of their values would be kept anew."""
    for path in ("/v1/translate", "/v1/answers/0/translate"):
        said = door.get(f"{path}?{query}")
        assert said.status == 400
        assert wrong in said.json["error"]["message"]


def test_everything_else_says_that_it_must_not_be_kept(door):
    """Varnish 7.1 keeps for 120 s what says nothing. The requests are those of every route."""
    paths = ["/languages", "/frontend/settings", "/spec", "/health", "/metrics", "/server-metrics"]
    paths += ["/openapi.json", "/v2/languages", "/v2/usage", "/v2/glossaries", "/v3/glossaries"]
    paths += ["/v2/glossary-language-pairs", "/v1/models", "/v1/models/en-de", "/v1/models/none"]
    paths += ["/v2/glossaries/a", "/v2/glossaries/a/entries", "/v3/glossaries/a", "/none"]
    paths += ["/language/translate/v2?q=a&source=en&target=de", "/language/translate/v2/languages"]
    paths += ["/language/translate/v2/detect?q=a", "/v1/translate?q=a", "/v1/answers/0/translate"]
    for path in paths:
        assert door.get(path).headers["Cache-Control"] == "no-store", path
        assert door.send("HEAD", path).headers["Cache-Control"] == "no-store", path
        assert door.send("PUT", path).headers["Cache-Control"] == "no-store", path
    for path in ("/", "/status", "/page/app.js"):
        assert door.get(path).headers["Cache-Control"] == "no-cache", path
    job = {"q": "a", "source": "en", "target": "de"}
    assert door.post("/translate", job).headers["Cache-Control"] == "no-store"
    stream = {"contents": ["a"], "source_language_code": "en", "target_language_code": "de"}
    said = door.post("/v1/translate/stream", stream)
    assert said.headers["Cache-Control"] == "no-store"
