"""Who may call, what the server is told about a caller, and what the log says."""

import json

import grpc
import pytest
from every_face import JOB, error

BUSY = error(grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED", 2.2)


@pytest.mark.parametrize(
    ("headers", "body", "token"),
    [
        ({"Authorization": "Bearer abc"}, JOB, "Bearer abc"),
        ({"Authorization": "DeepL-Auth-Key abc"}, JOB, "Bearer abc"),
        ({"Authorization": "abc"}, JOB, "Bearer abc"),
        ({}, {**JOB, "api_key": "abc"}, "Bearer abc"),
        ({}, {**JOB, "api_key": ""}, ""),
        ({}, JOB, ""),
    ],
)
def test_the_token_is_passed_on(fake, open_door, headers, body, token):
    server = fake(lambda number: BUSY)
    open_door(server.address).post("/translate", body, **headers)
    assert server.tokens == [token]


def test_tokens_in_urls_are_ignored_unless_allowed(fake, open_door):
    server = fake(lambda number: BUSY)
    open_door(server.address).post("/translate?key=abc", JOB)
    door = open_door(server.address, "--url-tokens")
    door.post("/translate?key=abc", JOB)
    assert server.tokens == ["", "Bearer abc"]
    assert "abc" not in door.log.read_text()


def test_the_last_entry_of_a_trusted_proxy_names_the_client(fake, open_door):
    server = fake(lambda number: BUSY)
    forwarded = {"X_Forwarded_For": "6.6.6.6, 203.0.113.9"}
    open_door(server.address).post("/translate", JOB, **forwarded)
    door = open_door(server.address, "--trusted-proxies", "127.0.0.0/8")
    door.post("/translate", JOB, **forwarded)
    assert server.forwarded == ["127.0.0.1", "203.0.113.9"]


def test_the_scheme_of_another_authentication_is_told(door):
    """As a browser sends it to a proxy with a password, which passes it on."""
    said = door.post("/translate", JOB, Authorization="Basic dTpw")
    assert said.status == 403
    assert "the scheme Basic, not Bearer" in said.json["error"]
    assert "dTpw" not in str(said.json)


def preflight(door, origin: str) -> dict:
    asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "a, b"}
    said = door.send("OPTIONS", "/translate", Origin=origin, **asked)
    assert said.status == 204
    return said.headers


def test_other_origins_may_call_by_default(door):
    headers = preflight(door, "https://a.example")
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Access-Control-Allow-Headers"] == "a, b"
    assert headers["Access-Control-Max-Age"] == "3600", "browsers keep one without for 5 s only"
    said = door.post("/translate", JOB, Origin="https://a.example")
    exposed = said.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"ETag", "Retry-After", "Content-Location"} <= set(exposed)
    # A cache may give the answer to a program to a page as well.
    assert door.post("/translate", JOB).headers["Access-Control-Allow-Origin"] == "*"


def test_origins_can_be_named_or_closed(open_door, server):
    door = open_door(server.grpc, "--cors-origins", "https://a.example")
    assert (
        preflight(door, "https://a.example")["Access-Control-Allow-Origin"] == "https://a.example"
    )
    assert "Access-Control-Allow-Origin" not in preflight(door, "https://b.example")
    assert door.get("/languages").headers["Vary"] == "Origin"
    closed = open_door(server.grpc, "--cors-origins", "")
    assert "Access-Control-Allow-Origin" not in preflight(closed, "https://a.example")


def test_pages_come_with_a_strict_policy(door):
    for path, kind in {
        "/": "text/html",
        "/status": "text/html",
        "/page/app.js": "text/javascript",
    }.items():
        said = door.get(path)
        assert said.status == 200
        assert said.headers["Content-Type"].startswith(kind)
        policy = said.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert b"linnet_requests_total" in door.get("/server-metrics").body


def test_the_log_has_no_texts(open_door, server):
    door = open_door(server.grpc)
    door.post("/translate", {**JOB, "q": "SECRET", "api_key": "TOKEN"})
    door.get("/v1/translate?q=SECRET&target=de&source=en")
    assert door.stop() == 0
    lines = [json.loads(line) for line in door.log.read_text().splitlines()]
    assert [line["status"] for line in lines if line["event"] == "request"] == [200, 200]
    assert "SECRET" not in door.log.read_text()
    assert "TOKEN" not in door.log.read_text()
