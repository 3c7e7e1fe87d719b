"""The errors of every face: statuses, forms, and words."""

import re
from pathlib import Path

import deepl
import grpc
import pytest
from every_face import FACES, JOB, error

ROOT = Path(__file__).resolve().parents[3]


CASES = {
    "busy": (error(grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED", 2.2), 429),
    "late": (error(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_TOO_CLOSE"), 504),
    "long": (error(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT"), 504),
    "down": (error(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", 1), 503),
    "broken": (error(grpc.StatusCode.INTERNAL, "INTERNAL"), 500),
    "large": (error(grpc.StatusCode.INVALID_ARGUMENT, "CALL_TOO_LARGE"), 413),
    "wrong": (error(grpc.StatusCode.INVALID_ARGUMENT, "BAD_OPTION"), 400),
    "old": (error(grpc.StatusCode.UNIMPLEMENTED, "UNKNOWN_FIELD"), 400),
    "message": (error(grpc.StatusCode.RESOURCE_EXHAUSTED, ""), 413),
    "token": (error(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"), 401),
    "pair": (error(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND"), 404),
}

# Messages of linnet-http in place of those of gRPC and the server.
OTHERS = {
    "message": "the request or its answer is too large",
    "late": "the server is busy and cannot answer within the 30 s of this front end: try again "
    "later, send less text at once, or have its operator raise --timeout",
    "long": "the server cannot answer within the 30 s of this front end: send less text at once, "
    "or have its operator raise --timeout",
}

# What the clients of a face expect instead.
INSTEAD = {
    "libretranslate": {401: 403, 404: 400},
    "deepl": {401: 403, 404: 400},
    "deeplx": {401: 403},
}


def test_every_face_has_the_status_and_the_form_of_its_errors(fake, open_door):
    told = []
    server = fake(lambda number: told[-1])
    door = open_door(server.address)
    for reason, (failure, status) in CASES.items():
        told.append(failure)
        for face, (path, body, message) in FACES.items():
            said = door.post(path, body)
            assert said.status == INSTEAD.get(face, {}).get(status, status), (face, reason)
            assert message(said.json).startswith(OTHERS.get(reason, "as told")), (face, reason)
            assert said.headers.get("Retry-After") == {"busy": "3", "down": "1"}.get(reason)
            assert said.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("reason", "raised"),
    [
        ("wrong", deepl.DeepLException),
        ("old", deepl.DeepLException),
        ("large", deepl.DeepLException),
        ("message", deepl.DeepLException),
        ("token", deepl.AuthorizationException),
        ("pair", deepl.DeepLException),
    ],
)
def test_deepls_client_sends_nothing_again_that_will_fail_again(fake, open_door, reason, raised):
    """It repeats 429 and every status from 500 up, five times."""
    server = fake(lambda number: CASES[reason][0])
    translator = deepl.DeepLClient("key", server_url=open_door(server.address).url)
    with pytest.raises(raised):
        translator.translate_text("a", target_lang="DE")
    assert len(server.calls) == 1


def test_deepl_repeats_nothing_for_the_shares_of_the_server(fake, open_door):
    """The server's limits are on load, so a retry helps: 429, and not 456, which ends a program."""
    table = (ROOT / "docs/ERRORS.md").read_text()
    reasons = re.findall(r"^\| (\w+) \| RESOURCE_EXHAUSTED \| RetryInfo", table, re.MULTILINE)
    assert "SHARE_USED" in reasons
    told = iter(reasons)
    server = fake(lambda number: error(grpc.StatusCode.RESOURCE_EXHAUSTED, next(told), 1))
    door = open_door(server.address)
    path, body, message = FACES["deepl"]
    for reason in reasons:
        said = door.post(path, body)
        assert (said.status, said.headers["Retry-After"]) == (429, "1"), reason
        assert message(said.json) == "as told"


def test_no_server(open_door):
    """The address of the server is not told to strangers."""
    door = open_door("127.0.0.1:1")
    said = door.post("/translate", JOB)
    assert said.status == 503
    assert said.json["error"] == "the translation server cannot be reached: try again later"
    assert door.get("/health").status == 503


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json; charset=latin-1", b"{}", 415),
        ("application/json", b"[]", 400),
        ("application/x-www-form-urlencoded", b"q=%ff&source=en&target=de", 400),
        ("application/x-www-form-urlencoded", b"q=a&q=b&source=en&target=de", 200),
        ("application/x-www-form-urlencoded", b"&q=a&&source=en&target=de&", 200),
        ("application/x-www-form-urlencoded", b"q=AT&T&source=en&target=de", 400),
        ("application/x-www-form-urlencoded", b"q=a&source&target=de&format&api_key", 200),
        ("application/x-www-form-urlencoded", b"text=a&source_lang&target_lang=de", 200),
        ("application/x-www-form-urlencoded", b' {"q": "a"}', 415),  # curl -d
        ("application/json", b'\xef\xbb\xbf{"q": "a", "source": "en", "target": "de"}', 200),
        ("application/json", b'{"q": 1, "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "\\ud800", "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "", "source": "en", "target": "de"}', 400),
        ("application/json", b'{"q": "a", "source": "en", "target": null}', 400),
    ],
)
def test_wrong_bodies(door, kind, body, status):
    said = door.send("POST", "/translate", body, Content_Type=kind)
    assert said.status == status, said.body
    assert status == 200 or said.json["error"]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("encoding", "status"),
    [("gzip", 400), ("deflate", 400), ("br", 415), ("zstd", 415), ("compress", 415)],
)
def test_a_body_that_cannot_be_unpacked_is_refused(door, face, encoding, status):
    path, body, _ = FACES[face]
    said = door.post(path, body, Content_Encoding=encoding)
    assert said.status == status, said.body
    assert encoding in str(said.json) or "gzip or deflate" in str(said.json)


@pytest.mark.parametrize("path", ["/translate/", "//translate", "/v2/translate/"])
def test_a_slash_too_many_is_told(door, path):
    said = door.post(path, JOB)
    assert said.status == 404
    assert f'"{path}" (is there a slash too many' in said.json.get("error", said.json["message"])


@pytest.mark.parametrize("face", FACES)
def test_unknown_paths_and_methods_have_the_form_of_their_face(door, face):
    path, _, message = FACES[face]
    said = door.get(path.removesuffix("translate") + "none")
    assert said.status == 404
    assert message(said.json).startswith("there is no such path")
    said = door.send("DELETE", path)
    assert said.status == 405
    assert message(said.json).startswith("DELETE is not allowed here: use ")


def test_messages_name_the_fields_of_the_face(door):
    text = "Bonjour tout le monde, comment allez-vous ?"
    for path, body, field in (
        ("/translate", {"q": text, "source": "auto", "target": "de"}, "source"),
        ("/translate", {"text": text, "to": "de"}, "from"),
        ("/translate", {"texts": [text], "tgt_lang": "de"}, "src_lang"),
        ("/language/translate/v2", {"q": text, "target": "de"}, "source"),
        ("/v2/translate", {"text": text, "target_lang": "DE"}, "source_lang"),
        (
            "/v1/translate",
            {"contents": [text], "target_language_code": "de"},
            "source_language_code",
        ),
    ):
        reply = door.post(path, body)
        said = f'"{field} is not set and the text seems to be in'
        assert said in reply.body.decode(), reply.body


def test_texts_in_messages_have_the_numbers_of_the_request(linnet):
    """Of a list, the server gets only those that are to be translated."""
    from linnet_http.problem import Problem

    problem = Problem(400, "contents[0] and contents[2] differ", field="contents[1]")
    problem.renumber([3, 5, 9])
    assert (problem.message, problem.field) == ("contents[3] and contents[9] differ", "contents[5]")
