"""Tests of downloads by HTTP: cuts and their continuation, hashes, redirects, errors, sizes."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest
import requests
from file_server import FileServer

from linnet_model.config import ConfigError
from linnet_model.fetch.http import ATTEMPTS, Downloads, public

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def downloads(pauses: list[float]) -> Downloads:
    return Downloads(pause=pauses.append)


def parts(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_writes_the_file_and_returns_its_sha256(server: FileServer, downloads, tmp_path):
    url = server.add("a/model.bin", CONTENT)
    assert downloads.file(url, tmp_path / "model.bin") == DIGEST
    assert (tmp_path / "model.bin").read_bytes() == CONTENT
    assert parts(tmp_path) == ["model.bin"]


def test_cut_download_goes_on_where_it_ended(server: FileServer, downloads, pauses, tmp_path):
    url = server.add("model.bin", CONTENT)
    server.cut["model.bin"] = [70_000, 65_536]
    assert downloads.file(url, tmp_path / "model.bin", DIGEST) == DIGEST
    first, second, third = (wanted for _, wanted in server.requests)
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 70_000
    assert int(third.removeprefix("bytes=").rstrip("-")) > 65_536
    assert len(pauses) == 2


def test_next_run_goes_on_where_the_last_one_ended(server: FileServer, downloads, tmp_path):
    url = server.add("model.bin", CONTENT)
    server.cut["model.bin"] = [100_000] + [0] * ATTEMPTS
    with pytest.raises(ConfigError) as raised:
        downloads.file(url, tmp_path / "model.bin")
    kept = (tmp_path / "model.bin.part").stat().st_size
    assert 0 < kept <= 100_000
    assert f"{kept} bytes are in {tmp_path}/model.bin.part" in str(raised.value)
    server.requests.clear()
    assert Downloads().file(url, tmp_path / "model.bin") == DIGEST
    assert server.requests == [("model.bin", f"bytes={kept}-")]


def test_file_that_changed_meanwhile_is_fetched_from_its_start(
    server: FileServer, downloads, tmp_path
):
    url = server.add("model.bin", b"x" * 200_000)
    server.cut["model.bin"] = [100_000] + [0] * ATTEMPTS
    with pytest.raises(ConfigError):
        downloads.file(url, tmp_path / "model.bin")
    server.files["model.bin"] = CONTENT
    assert downloads.file(url, tmp_path / "model.bin") == DIGEST
    assert (tmp_path / "model.bin").read_bytes() == CONTENT


def test_part_of_another_url_is_not_continued(server: FileServer, downloads, tmp_path):
    (tmp_path / "model.bin.part").write_bytes(b"other")
    state = {"url": f"{server.url}/other", "etag": '"1"'}
    (tmp_path / "model.bin.part.json").write_text(json.dumps(state))
    assert downloads.file(server.add("model.bin", CONTENT), tmp_path / "model.bin") == DIGEST
    assert server.requests == [("model.bin", "")]


def test_wrong_part_with_a_pinned_hash_is_fetched_once_more(
    server: FileServer, downloads, tmp_path
):
    server.tags = False
    url = server.add("model.bin", CONTENT)
    (tmp_path / "model.bin.part").write_bytes(b"y" * 1000)
    (tmp_path / "model.bin.part.json").write_text(json.dumps({"url": url, "etag": ""}))
    assert downloads.file(url, tmp_path / "model.bin", DIGEST) == DIGEST
    assert [wanted for _, wanted in server.requests] == ["bytes=1000-", ""]


def test_server_without_ranges_sends_all_of_it_again(server: FileServer, downloads, tmp_path):
    server.ranges = False
    server.cut["model.bin"] = [70_000]
    assert downloads.file(server.add("model.bin", CONTENT), tmp_path / "model.bin") == DIGEST


def test_whole_part_is_not_fetched_again(server: FileServer, downloads, tmp_path):
    """As where the last run was stopped between the download and the renaming."""
    url = server.add("model.bin", CONTENT)
    (tmp_path / "model.bin.part").write_bytes(CONTENT)
    (tmp_path / "model.bin.part.json").write_text(json.dumps({"url": url, "etag": ""}))
    assert downloads.file(url, tmp_path / "model.bin", DIGEST) == DIGEST


def test_other_hash_names_both_and_removes_the_file(server: FileServer, downloads, tmp_path):
    url = server.add("model.bin", CONTENT)
    with pytest.raises(ConfigError) as raised:
        downloads.file(url, tmp_path / "model.bin", "0" * 64)
    assert f"has the sha256 {DIGEST}, expected {'0' * 64}; the file was removed" in str(
        raised.value
    )
    assert not (tmp_path / "model.bin").exists()
    assert not (tmp_path / "model.bin.part").exists()


def test_busy_server_is_asked_again(server: FileServer, downloads, pauses, tmp_path):
    server.status["model.bin"] = [503, 429]
    assert downloads.file(server.add("model.bin", CONTENT), tmp_path / "model.bin") == DIGEST
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize("status", [403, 404, 410])
def test_missing_file_is_refused_at_once(server: FileServer, downloads, pauses, tmp_path, status):
    server.status["model.bin"] = [status]
    with pytest.raises(ConfigError, match=f"cannot be fetched: HTTP {status} "):
        downloads.file(server.add("model.bin", CONTENT), tmp_path / "model.bin")
    assert pauses == []
    assert parts(tmp_path) == []


def test_redirect_is_followed_and_its_end_named(server: FileServer, downloads, tmp_path):
    server.add("there/model.bin", CONTENT)
    server.redirects["model.bin"] = "/there/model.bin"
    url = f"{server.url}/model.bin"
    assert downloads.file(url, tmp_path / "model.bin") == DIGEST
    server.redirects["model.bin"] = "/gone"
    with pytest.raises(ConfigError, match=r"model.bin cannot be fetched: HTTP 404 .* at .*/gone$"):
        downloads.file(url, tmp_path / "other")


def test_endless_redirects_end(server: FileServer, downloads, tmp_path):
    server.redirects["model.bin"] = "/model.bin"
    with pytest.raises(ConfigError, match="redirects"):
        downloads.file(f"{server.url}/model.bin", tmp_path / "model.bin")


def test_redirect_from_https_to_http_is_refused(downloads, monkeypatch, tmp_path):
    def answer(_self, url, **_):
        first, last = requests.Response(), requests.Response()
        last.raw = io.BytesIO()
        first.url, last.url, last.history = url, "http://127.0.0.1/model.bin", [first]
        return last

    monkeypatch.setattr(requests.Session, "get", answer)
    with pytest.raises(ConfigError, match="redirected from https to http, which is refused"):
        downloads.file("https://127.0.0.1/model.bin", tmp_path / "model.bin")


def test_nobody_listening_says_what_to_check(pauses, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(ConfigError) as raised:
        Downloads(pause=pauses.append).file("http://127.0.0.1:9/model.bin", tmp_path / "model.bin")
    assert "http://127.0.0.1:9/model.bin cannot be fetched: " in str(raised.value)
    assert "Connection refused; check the network, and the proxy in https_proxy" in str(
        raised.value
    )
    assert "object at 0x" not in str(raised.value)
    assert len(pauses) == ATTEMPTS - 1


def test_more_than_the_limit_is_refused(server: FileServer, tmp_path):
    url = server.add("model.bin", CONTENT)
    with pytest.raises(ConfigError, match="has more than 1000 bytes, the limit"):
        Downloads(limit=1000).file(url, tmp_path / "model.bin")
    with pytest.raises(ConfigError, match="has more than 1000 bytes, the limit"):
        Downloads().text(url, 1000)


def test_bytes_are_kept_as_they_are_sent(server: FileServer, downloads, tmp_path):
    """A server that calls a file .gz a compressed answer: the hash is that of the file."""
    server.headers["Content-Encoding"] = "gzip"
    assert downloads.file(server.add("model.bin.gz", CONTENT), tmp_path / "model.bin.gz") == DIGEST


def test_full_disk_is_an_error_of_the_system(server: FileServer, downloads, tmp_path):
    url = server.add("model.bin", CONTENT)
    (tmp_path / "model.bin.part").symlink_to("/dev/full")
    state = {"url": url, "etag": '"1"'}
    (tmp_path / "model.bin.part.json").write_text(json.dumps(state))
    with pytest.raises(OSError, match="No space left on device"):
        downloads.file(url, tmp_path / "model.bin")


@pytest.mark.parametrize("url", ["ftp://host/a", "file:///etc/passwd", "https:///a", "host/a"])
def test_other_addresses_are_refused(downloads, tmp_path, url):
    with pytest.raises(ConfigError, match=r"is no URL that is fetched: http://… or https://…"):
        downloads.file(url, tmp_path / "model.bin")


def test_secrets_of_a_url_are_not_repeated():
    assert public("https://user:word@host:8/a/b.zip?token=x#y") == "https://host:8/a/b.zip"
