"""Files through the APIs of DeepL and LibreTranslate, with their own clients."""

from __future__ import annotations

import io
import os
import time
import urllib.request
import uuid

import deepl
import grpc
import pytest
from file_samples import SAMPLES
from google.rpc import error_details_pb2, status_pb2
from linnet_files import find, read

SMALL = b"1\n00:00:01,000 --> 00:00:02,000\none two three\n"
# One file of each format.
NAMES = list({find(name).name: name for name in SAMPLES}.values())


@pytest.fixture
def translator(door):
    return deepl.DeepLClient("key", server_url=door.url)


def form(name: str, data: bytes, **fields: str) -> tuple[bytes, str]:
    """A body of multipart/form-data, and its type."""
    mark = uuid.uuid4().hex
    body = b"".join(
        f'--{mark}\r\nContent-Disposition: form-data; name="{it}"\r\n\r\n{value}\r\n'.encode()
        for it, value in fields.items()
    )
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body += head.encode() + data + f"\r\n--{mark}--\r\n".encode()
    return body, f"multipart/form-data; boundary={mark}"


def send(door, path: str, name: str, data: bytes, **fields: str):
    body, kind = form(name, data, **fields)
    return door.send("POST", path, body, Content_Type=kind)


def looks_translated(name: str, data: bytes) -> None:
    before, after = read(name, SAMPLES[name]), read(name, data)
    assert data != SAMPLES[name]
    if not name.endswith((".po", ".pot", ".xlf", ".xliff")):
        assert len(after.fragments) == len(before.fragments)


@pytest.mark.parametrize("name", NAMES)
def test_deepls_client_translates_a_document(translator, name: str):
    source, out = io.BytesIO(SAMPLES[name]), io.BytesIO()
    source.name = name
    status = translator.translate_document(source, out, source_lang="EN", target_lang="DE")
    assert status.done
    assert status.billed_characters > 0
    looks_translated(name, out.getvalue())


@pytest.mark.parametrize("name", NAMES)
def test_libretranslate_translates_a_file(door, name: str):
    said = send(door, "/translate_file", name, SAMPLES[name], source="en", target="de")
    assert said.status == 200, said.body
    url = said.json["translatedFileUrl"]
    assert url.startswith(door.url)
    with urllib.request.urlopen(url) as reply:
        stem, _, suffix = name.partition(".")
        assert f"{stem}_de.{suffix}" in reply.headers["Content-Disposition"]
        looks_translated(name, reply.read())


def test_the_address_of_a_file_has_the_scheme_of_its_client(open_door, server):
    """Behind a proxy that ends TLS. It holds the key of the file, so it must not become http."""
    body, kind = form("a.srt", SMALL, source="en", target="de")
    for flags, scheme in (((), "http"), (("--trusted-proxies", "127.0.0.1"), "https")):
        door = open_door(server.grpc, *flags)
        headers = {"Content_Type": kind, "X_Forwarded_Proto": "https", "Host": "mt.example"}
        said = door.send("POST", "/translate_file", body, **headers)
        assert said.json["translatedFileUrl"].startswith(f"{scheme}://mt.example/download_file/")


def test_settings_list_the_formats(door):
    said = door.get("/frontend/settings").json
    assert said["filesTranslation"] is True
    assert {".docx", ".srt"} <= set(said["supportedFilesFormat"])


def test_a_document_needs_its_key(door, translator):
    handle = translator.translate_document_upload(
        SMALL, source_lang="EN", target_lang="DE", filename="a.srt"
    )
    path = f"/v2/document/{handle.document_id}"
    assert door.post(path, {"document_key": handle.document_key}).status == 200
    for wrong in (path, path + "/result", "/v2/document/" + "0" * 32, "/v2/document/.."):
        said = door.post(wrong, {"document_key": "0" * 64})
        assert said.status == 404, wrong
    assert door.post(path, {}).json == {"message": "document_key is missing"}


def test_unusable_files_are_refused_with_their_place(door):
    for name, data, message in (
        ("a.xyz", b"x", "a.xyz: .xyz is no known format"),
        ("a.srt", b"hello", "a.srt: line 1: 'hello' is outside of a cue"),
        ("../../a.docx", b"PK", "a.docx: the archive cannot be read"),
    ):
        said = send(door, "/v2/document", name, data, target_lang="DE")
        assert said.status == 400
        assert said.json["message"].startswith(message), said.json
        said = send(door, "/translate_file", name, data, source="en", target="de")
        assert said.status == 400
        assert said.json["error"].startswith(message)


def test_wrong_requests_are_refused(door):
    assert door.post("/v2/document", {"target_lang": "DE"}).status == 415
    assert send(door, "/v2/document", "a.srt", b"", target_lang="DE").status == 400
    assert send(door, "/v2/document", "a.srt", SMALL).json == {"message": "target_lang is missing"}
    said = send(door, "/v2/document", "a.srt", SMALL, target_lang="DE", output_format="docx")
    assert said.status == 400
    assert "must be the format of the file" in said.json["message"]


def test_languages_that_are_not_served_are_refused_with_the_upload(small_door):
    """As those of a text are; the status of a document is asked for later, perhaps never."""
    door, folder = small_door
    for languages, message in (
        ({"source_lang": "EN", "target_lang": "XX"}, "no model translates en to xx"),
        ({"target_lang": "XX"}, "no model translates to xx"),
        ({"source_lang": "EN", "target_lang": "?"}, "target_lang"),
    ):
        said = send(door, "/v2/document", "a.srt", SMALL, **languages)
        assert said.status == 400
        assert said.json["message"].startswith(message)
    said = send(door, "/translate_file", "a.srt", SMALL, source="en", target="xx")
    assert said.status == 400
    assert said.json["error"].startswith("no model translates en to xx")
    assert not folder.exists() or not list(folder.iterdir())


def test_a_language_that_only_its_text_tells_is_told_by_the_status(door):
    cue = "1\n00:00:01,000 --> 00:00:02,000\nBonjour tout le monde, comment allez-vous ?\n"
    said = send(door, "/v2/document", "a.srt", cue.encode(), target_lang="DE").json
    path, key = f"/v2/document/{said['document_id']}", {"document_key": said["document_key"]}
    while (state := door.post(path, key).json)["status"] in ("queued", "translating"):
        time.sleep(0.05)
    assert state["status"] == "error"
    assert '"fr"' in state["error_message"] or "fr to de" in state["error_message"]
    said = door.post(path + "/result", key)
    assert (said.status, said.json) == (400, {"message": state["error_message"]})


def test_a_document_takes_the_options_of_a_text(door, translator):
    """What cannot be followed is refused, or named as ignored."""
    languages = {"source_lang": "EN", "target_lang": "DE"}
    said = send(door, "/v2/document", "a.srt", SMALL, formality="more", **languages)
    assert said.status == 400
    assert said.json["message"].startswith('formality "more" is not supported')
    fields = {"formality": "prefer_more", "style_id": "a", **languages}
    said = send(door, "/v2/document", "a.srt", SMALL, **fields)
    assert said.status == 200
    assert said.headers["X-Linnet-Ignored"] == "style_id"
    made = [
        translator.create_glossary("g", "EN", "DE", it) for it in ({"two": "zwo"}, {"one": "1"})
    ]
    source, out = io.BytesIO(SMALL), io.BytesIO()
    source.name = "a.srt"
    translator.translate_document(source, out, glossary_ids=made, **languages)
    assert b"zwo" in out.getvalue()
    assert b"1" in out.getvalue().splitlines()[2]
    for one in made:
        translator.delete_glossary(one)


def test_files_of_strangers_are_not_kept(open_door, fake, tmp_path):
    """They could fill the folder, which has a limit for all."""
    server = fake(lambda number: failure(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"))
    door = open_door(server.address, "--documents", str(tmp_path / "documents"))
    assert send(door, "/v2/document", "a.srt", SMALL, target_lang="DE").status == 403
    assert send(door, "/translate_file", "a.srt", SMALL, source="en", target="de").status == 403
    assert not (tmp_path / "documents").exists()


def test_a_client_that_hangs_up_while_its_file_is_translated_ends_that(fake, open_door, tmp_path):
    server = fake()
    server.holds_documents = True
    door = open_door(server.address, "--documents", str(tmp_path))
    body, kind = form("a.srt", SMALL, source="en", target="de")
    head = f"POST /translate_file HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\n"
    with door.connect() as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert server.held.wait(60)
    assert server.ended.wait(60)
    assert list(tmp_path.iterdir()) == []


def failure(code: grpc.StatusCode, reason: str):
    status = status_pb2.Status(code=code.value[0], message="as told")
    status.details.add().Pack(error_details_pb2.ErrorInfo(domain="linnet", reason=reason))
    return code, (("grpc-status-details-bin", status.SerializeToString()),)


def test_a_file_waits_for_a_busy_server(fake, open_door):
    """Its sender cannot repeat a part of it."""
    busy = failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED")
    server = fake(lambda number: busy if number <= 2 else None)
    server.reply.translations.add(text="eins")
    door = open_door(server.address)
    said = send(door, "/translate_file", "a.srt", SMALL, source="en", target="de")
    assert said.status == 200, said.body
    assert len(server.calls) == 3, "one for the settings"
    with urllib.request.urlopen(said.json["translatedFileUrl"]) as reply:
        assert b"eins" in reply.read()


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED", 429),
        (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", 503),
        (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", 403),
        (grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND", 400),
        (grpc.StatusCode.INTERNAL, "INTERNAL", 500),
    ],
)
def test_a_file_that_fails_has_the_status_of_its_error(fake, open_door, code, reason, status):
    server = fake(lambda number: failure(code, reason))
    door = open_door(server.address)
    said = send(door, "/translate_file", "a.srt", SMALL, source="en", target="de")
    assert (said.status, said.json) == (status, {"error": "as told"})
    assert said.headers["Retry-After"] == ("1" if status in (429, 503) else None)


@pytest.fixture
def small_door(open_door, server, tmp_path):
    folder = tmp_path / "documents"
    door = open_door(server.grpc, "--max-file-bytes", "2000", "--documents", str(folder))
    return door, folder


def test_warnings_of_a_file_are_told(fake, open_door):
    server = fake()
    one = server.reply.translations.add(text="eins")
    one.warnings.add(reason="LANGUAGE_MISMATCH", message="as told")
    door = open_door(server.address)
    said = send(door, "/translate_file", "a.srt", SMALL, source="en", target="de")
    assert said.json["warnings"] == ["line 3: as told"]
    upload = send(door, "/v2/document", "a.srt", SMALL, source_lang="EN", target_lang="DE").json
    key = {"document_key": upload["document_key"]}
    said = {"status": "queued"}
    while said["status"] in ("queued", "translating"):
        said = door.post(f"/v2/document/{upload['document_id']}", key).json
    assert said["status"] == "done"
    assert said["warnings"] == ["line 3: as told"]


def test_a_large_file_is_refused(small_door):
    door, _ = small_door
    said = send(door, "/v2/document", "a.srt", SMALL + b" " * 2000, target_lang="DE")
    assert said.status == 413
    assert said.json == {"message": "file has more than 2000 bytes: split the file"}


def test_old_documents_go_and_lost_ones_fail(small_door):
    door, folder = small_door
    first = send(door, "/v2/document", "a.srt", SMALL, source_lang="EN", target_lang="DE").json
    path, key = f"/v2/document/{first['document_id']}", {"document_key": first["document_key"]}
    while door.post(path, key).json["status"] != "done":
        time.sleep(0.05)
    document = folder / first["document_id"]
    state = document / "state.json"
    state.write_text(state.read_text().replace('"done"', '"translating"', 1))
    past = time.time() - 100
    os.utime(state, (past, past))
    assert door.post(path, key).json["error_message"] == ("the translation was lost: send it again")
    past -= 4000
    for entry in (*document.iterdir(), document):
        os.utime(entry, (past, past))
    send(door, "/v2/document", "a.srt", SMALL, source_lang="EN", target_lang="DE")
    assert not document.exists()
    assert door.post(path, key).status == 404
