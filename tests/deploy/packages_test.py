"""The packages of the release build: Debian packages and a tarball, unpacked and used.

Slow: LibTorch is packed twice. The packages are not installed here, so that this machine stays as
it is; installed_test.py installs them in a container.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from opus_mt import SOURCES, opus_mt
from programs import ROOT
from replicas import Server

pytestmark = pytest.mark.slow

BUILD = ROOT / "build/release"
VERSION = re.search(r"project\(linnet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
NAMES = ("linnet-server", "linnet-model", "linnet-http", "linnet-client", "linnet-dev")


@pytest.fixture(scope="module")
def packages(packed: Path) -> dict[str, Path]:
    found = {path.name.partition("_")[0]: path for path in packed.glob("*.deb")}
    assert set(found) == set(NAMES)
    return found


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    for path in packages.values():
        subprocess.run(["dpkg-deb", "-x", str(path), str(folder)], check=True)
    return folder


def field(package: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "-f", str(package), name], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_packages_have_the_project_version(packages):
    for path in packages.values():
        assert field(path, "Version") == VERSION
        assert field(path, "Architecture") == "amd64"


def test_programs_print_the_project_version(unpacked):
    for program in ("linnet-server", "linnet-decode", "linnet", "linnet-load"):
        done = subprocess.run(
            [unpacked / "usr/bin" / program, "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert VERSION in done.stdout.split()


@pytest.fixture
def served(unpacked) -> Iterator[Server]:
    """The server of the package with the models of the package."""
    models = unpacked / "usr/share/linnet/models"
    running = Server(unpacked / "usr/bin/linnet-server", models=models)
    running.wait_for_ready()
    yield running
    assert running.stop() == 0
    running.remove()


def test_unpacked_server_answers_unpacked_client(unpacked, served):
    command = [unpacked / "usr/bin/linnet", "translate", "--to", "de", "--server", served.grpc]
    done = subprocess.run(
        [*command, "Where is the train station?"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Wo ist der Bahnhof?\n"
    maps = Path(f"/proc/{served.process.pid}/maps").read_text()
    # it loads nothing of this tree: only libraries of the package and of Debian
    assert str(unpacked / "usr/lib/linnet/lib/libtorch_cpu.so") in maps
    assert str(ROOT / ".deps") not in maps
    assert str(ROOT / ".venv") not in maps
    assert str(BUILD) not in maps


def test_unpacked_linnet_http_answers_with_its_own_packages_alone(unpacked, served, tmp_path):
    command = [unpacked / "usr/bin/linnet-http", "--server", served.grpc, "--listen", "127.0.0.1:0"]
    command += ["--server-metrics", "", "--glossaries", tmp_path / "glossaries"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as running:
        try:
            address = running.stdout.readline().strip().removeprefix("ready http=")
            body = b"q=Where is the train station?&source=en&target=de"
            with urllib.request.urlopen(f"http://{address}/translate", body) as reply:
                assert json.load(reply)["translatedText"] == "Wo ist der Bahnhof?"
            children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
            maps = Path(f"/proc/{children.split()[0]}/maps").read_text()
        finally:
            running.terminate()
    assert running.returncode == 0
    assert str(unpacked / "usr/lib/linnet-http/python/grpc") in maps
    assert str(ROOT / ".venv") not in maps
    assert "/usr/local/lib" not in maps
    assert "/usr/lib/python3/dist-packages" not in maps


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", ["linnet-server", "linnet-client"])
def test_package_depends_on_every_loaded_library(packages, unpacked, name):
    listed = output("dpkg-deb", "-c", packages[name])
    files = [unpacked / it for it in re.findall(r"^-rwxr-xr-x .* \./(\S+)$", listed, re.MULTILINE)]
    assert files
    lines = output("ldd", *files)
    assert "not found" not in lines
    paths = dict(re.findall(r"(\S+) => (/\S+)", lines))
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", *files)))
    depends = {part.split()[0] for part in field(packages[name], "Depends").split(",")}
    for dependency in list(depends):  # and their dependencies
        depends |= set(
            re.findall(r"[\w.+-]+", output("dpkg-query", "-W", "-f${Depends}", dependency))
        )
    for library in needed & paths.keys():
        path = os.path.realpath(paths[library])
        if not path.startswith(str(unpacked)):
            # dpkg lists the C library at its old path under /lib.
            owner = output("dpkg", "-S", path).partition(":")[0] or "libc6"
            assert owner in depends, f"{library} of {owner}"


def test_program_builds_with_dev_package_and_pkg_config(unpacked, served, tmp_path):
    source = tmp_path / "ask.cc"
    source.write_text("""
#include <iostream>
#include "linnet/client.h"
int main(int, char** arguments) {
  linnet::client::ClientOptions options;
  options.server = arguments[1];
  auto client = linnet::client::Client::Create(options);
  linnet::v1::TranslateRequest request;
  request.add_contents("Where is the train station?");
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  auto answer = client->Translate(request);
  if (!answer.ok()) return 1;
  std::cout << answer->translations(0).text() << " " << linnet::client::Version();
}
""")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "linnet_client"],
        env={**os.environ, "PKG_CONFIG_PATH": str(unpacked / "usr/lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    program = tmp_path / "ask"
    subprocess.run(
        ["g++", "-std=c++17", "-o", str(program), str(source), *flags], check=True, cwd=tmp_path
    )
    done = subprocess.run([program, served.grpc], capture_output=True, text=True, check=True)
    assert done.stdout == f"Wo ist der Bahnhof? {VERSION}"


def test_unpacked_linnet_model_imports_and_checks(unpacked, tmp_path):
    """With the Python of Debian and the packages alone: no torch of this machine is loaded."""
    folder = opus_mt(tmp_path / "opus-mt-en-de")
    command = [unpacked / "usr/bin/linnet-model"]
    environment = {"PATH": "/usr/bin:/bin"}

    def run(*arguments: str | Path) -> str:
        done = subprocess.run(
            [*command, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"linnet-model import huggingface --model {folder}" in run("info", folder)
    pair = ("--source-language", "en", "--target-language", "de", "--license", "none")
    texts = tmp_path / "texts"
    texts.write_text("".join(text + "\n" for text in SOURCES[:24]), encoding="utf-8")
    golden = ("--golden", str(texts))
    run("import", "huggingface", "--model", folder, "--out", "en-de", *pair, *golden)
    assert "made by transformers" in (tmp_path / "en-de/MODEL_CARD.md").read_text("utf-8")
    assert re.search(r"(\d+) of \1 golden examples in float32", run("check", "en-de"))
    run("convert", "en-de", "--out", "half", "--dtype", "bfloat16")
    assert "stored as bfloat16" in run("info", "half")


def test_completion_and_man_page_are_installed(unpacked):
    share = unpacked / "usr/share"
    assert (share / "man/man1/linnet.1").read_text().startswith(".TH LINNET 1")
    assert "_linnet" in (share / "bash-completion/completions/linnet").read_text()
    assert "complete -c linnet" in (share / "fish/vendor_completions.d/linnet.fish").read_text()


def test_tarball_is_relocatable(packed, tmp_path):
    (tarball,) = packed.glob("*.tar.zst")
    subprocess.run(["cmake", "-E", "tar", "xf", str(tarball)], cwd=tmp_path, check=True)
    (root,) = tmp_path.iterdir()
    assert root.name == f"linnet-{VERSION}-Linux"
    for program in ("linnet-server", "linnet"):
        done = subprocess.run(
            [root / "usr/bin" / program, "--version"], capture_output=True, text=True, check=True
        )
        assert VERSION in done.stdout.split()


def test_every_package_contains_the_licence(unpacked):
    for name in ("server", "model", "http", "client", "dev"):
        installed = unpacked / f"usr/share/doc/linnet-{name}/copyright"
        assert installed.read_text() == (ROOT / "LICENSE").read_text()


def test_notices_name_every_bundled_part(unpacked):
    notices = (unpacked / "usr/share/doc/linnet-server/THIRD_PARTY_NOTICES").read_text()
    for part in ("LibTorch", "NVIDIA", "SentencePiece", "CLI11", "JSON for Modern C++"):
        assert re.search(rf"^{part}.*: ", notices, re.MULTILINE) or part == "SentencePiece"
    assert "SentencePiece" in notices
    assert len(notices) > 100_000  # the texts themselves
