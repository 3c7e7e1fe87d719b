"""deploy/pin-images on a copy of the files, with a fake registry."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import ROOT

FOREIGN = {"prom/prometheus", "grafana/grafana", "library/haproxy"}


class Registry:
    """A registry that has every image and requires a token, which it gives to everybody."""

    def __init__(self):
        registry = self
        self.answers: dict[str, str] = {}  # path of a manifest → a manifest other than the default
        self.lies = False
        self.asked: set[str] = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.startswith("/token?"):
                    assert "service=registry" in self.path
                    return self.send(200, json.dumps({"token": f"for {registry.url}"}).encode())
                if self.headers.get("Authorization") != f"Bearer for {registry.url}":
                    ask = f'Bearer realm="{registry.url}/token",service="registry",scope="pull"'
                    return self.send(401, b"{}", **{"WWW-Authenticate": ask})
                registry.asked.add(self.path)
                body = registry.manifest(self.path)
                digest = digest_of(b"another" if registry.lies else body)
                return self.send(200, body, **{"Docker-Content-Digest": digest})

            def send(self, status: int, body: bytes, **headers: str):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def manifest(self, path: str) -> bytes:
        return self.answers.get(path, f'{{"manifest of": "{path}"}}').encode()


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    running = Registry()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def tree(tmp_path) -> Path:
    for file in [*ROOT.glob("docker-compose*.yml"), ROOT / ".env.example"]:
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOT / "deploy/kubernetes", tmp_path / "deploy/kubernetes")
    shutil.copy(ROOT / "deploy/pin-images", tmp_path / "deploy")
    return tmp_path


def pin(tree: Path, hub: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, tree / "deploy/pin-images", "--hub", hub, *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def state(tree: Path) -> dict[Path, str]:
    return {file: file.read_text() for file in sorted(tree.rglob("*")) if file.is_file()}


def test_third_party_images_are_pinned_to_registry_digests(tree, registry):
    done = pin(tree, registry.url)
    assert done.returncode == 0, done.stderr
    assert {path.split("/manifests/")[0].removeprefix("/v2/") for path in registry.asked} == FOREIGN
    text = "".join(state(tree).values())
    for path in registry.asked:
        name, tag = path.removeprefix("/v2/").removeprefix("library/").split("/manifests/")
        pinned = f"{name}:{tag}@{digest_of(registry.manifest(path))}"
        unpinned = rf"[-=] ?{re.escape(name)}:{re.escape(tag)}(?!@)"
        assert text.count(pinned) >= 2  # in a compose file and in .env.example
        assert not re.search(unpinned, text)


def test_pinning_is_idempotent_and_changes_nothing_else(tree, registry):
    before = state(tree)
    pin(tree, registry.url)
    once = state(tree)
    without = {file: re.sub(r"@sha256:[0-9a-f]{64}", "", text) for file, text in once.items()}
    assert without == {
        file: re.sub(r"@sha256:[0-9a-f]{64}", "", text) for file, text in before.items()
    }
    assert pin(tree, registry.url).returncode == 0
    assert state(tree) == once


def test_check_reports_a_moved_tag_without_writing(tree, registry):
    assert pin(tree, registry.url, "--check").returncode == 1
    pin(tree, registry.url)
    assert pin(tree, registry.url, "--check").returncode == 0
    before = state(tree)
    (path,) = [path for path in registry.asked if "prometheus" in path]
    registry.answers[path] = '{"another": "build"}'
    done = pin(tree, registry.url, "--check")
    assert done.returncode == 1
    assert "docker-compose.yml would change" in done.stdout
    assert state(tree) == before
    pin(tree, registry.url)
    assert digest_of(b'{"another": "build"}') in (tree / "docker-compose.yml").read_text()


def test_digest_mismatch_is_an_error(tree, registry):
    before = state(tree)
    registry.lies = True
    done = pin(tree, registry.url)
    assert done.returncode == 1
    assert "the registry says" in done.stderr
    assert state(tree) == before


def test_unreachable_registry_leaves_files_unchanged(tree, registry):
    before = state(tree)
    registry.server.server_close()
    registry.server.shutdown()
    done = pin(tree, "http://127.0.0.1:9")
    assert done.returncode == 1
    assert re.match(r"error: \S+:\S+: .*; nothing was written\n", done.stderr)
    assert state(tree) == before


def test_host_in_an_image_name_selects_the_registry(tree, registry):
    host = registry.url.removeprefix("http://")
    file = tree / "docker-compose.yml"
    file.write_text(f"services:\n  one:\n    image: {host}/team/tool:1.2\n")
    assert pin(tree, registry.url).returncode == 0
    path = "/v2/team/tool/manifests/1.2"
    assert (
        f"    image: {host}/team/tool:1.2@{digest_of(registry.manifest(path))}\n"
        in file.read_text()
    )
