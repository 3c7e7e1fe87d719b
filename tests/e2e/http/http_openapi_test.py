"""The documents of the APIs: they name every path, and the answers are as they say."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest
from programs import tools

STATUSES = {"400", "401", "403", "404", "408", "413", "415", "429", "500", "503", "504"}


@pytest.fixture
def document(door) -> dict:
    return door.get("/openapi.json").json


def test_document_has_every_path_of_the_native_api(document, linnet, tmp_path):
    from linnet_http import app
    from linnet_http.glossaries import Glossaries
    from linnet_http.options import Options

    async def routes():
        return app.make(Options(), Glossaries(tmp_path / "glossaries")).router.routes()

    served = {
        (route.resource.canonical, route.method.lower())
        for route in asyncio.run(routes())
        if route.resource.canonical.startswith("/v1/") and route.method != "HEAD"
    }
    told = {(path, method) for path, it in document["paths"].items() for method in it}
    assert told == served
    for path in document["paths"].values():
        for operation in path.values():
            assert set(operation["responses"]) >= STATUSES | {"200"}


def test_document_has_every_method_of_the_service(document, linnet):
    from linnet.v1 import text_service_pb2

    paths = set(document["paths"])
    for method in text_service_pb2.DESCRIPTOR.services_by_name["TextService"].methods:
        words = re.sub(r"(?<!^)(?=[A-Z])", "-", method.name).lower()
        words = {"list-models": "models", "get-model": "models/{name}"}.get(words, words)
        words = re.sub("^stream-(.*)", r"\1/stream", words).replace("-document", "/document")
        path = f"/v1/{words}"
        assert path in paths, method.name
        paths.remove(path)
    assert paths == {"/v1/answers/{digest}/translate"}


def test_document_has_the_fields_of_the_messages(document):
    request = document["components"]["schemas"]["TranslateRequest"]
    assert request["properties"]["contents"] == {"type": "array", "items": {"type": "string"}}
    assert request["additionalProperties"] is False
    options = document["components"]["schemas"]["DecodingOptions"]["properties"]
    assert options["beam_size"]["type"] == "integer"
    limits = document["components"]["schemas"]["RequestLimits"]["properties"]
    assert limits["max_text_bytes"]["type"] == "string", "64 bits are more than JavaScript reads"


def references(value) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"]} if "$ref" in value else set()
        return found.union(*(references(it) for it in value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_to_a_schema(document):
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= names


def test_libretranslate_has_its_own_document(door):
    spec = door.get("/spec").json
    assert spec["swagger"] == "2.0"
    assert set(spec["paths"]) >= {"/translate", "/detect", "/languages", "/frontend/settings"}
    operation = spec["paths"]["/translate_file"]["post"]
    assert operation["consumes"] == ["multipart/form-data"]
    fields = {it["name"]: it["type"] for it in operation["parameters"] if it["required"]}
    assert fields == {"file": "file", "source": "string", "target": "string"}


@pytest.mark.slow
@pytest.mark.parametrize(("path", "mode"), [("/openapi.json", "all"), ("/spec", "positive")])
def test_schemathesis_finds_no_answer_that_the_document_does_not_have(door, path, mode, tmp_path):
    """Requests that fit the document, and requests that do not."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance"
    checks += ",response_headers_conformance,response_schema_conformance"
    schemathesis = tools(Path(__file__).with_name("http_tools.txt")) / "bin/schemathesis"
    command = [str(schemathesis), "run", f"{door.url}{path}", "--checks", checks, "--mode", mode]
    command += ["--max-examples", "60", "--seed", "1", "--no-color", "--request-timeout", "60"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:]
