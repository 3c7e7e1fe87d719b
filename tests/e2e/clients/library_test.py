"""linnet_client installed and used by an external project."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "client/example"


def run(*command: str | Path, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(program, tmp_path_factory) -> Path:
    """A folder with the files of the package linnet-dev."""
    build = program("linnet").parents[1]
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build, "--component", "dev", "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def sanitizer_flags(program) -> list[str]:
    """Flags without which a program does not link with a library built with a sanitizer."""
    cache = (program("linnet").parents[1] / "CMakeCache.txt").read_text()
    found = re.search(r"^LINNET_SANITIZE:\w+=(.+)$", cache, re.MULTILINE)
    return [f"-fsanitize={found[1]}"] if found else []


@pytest.fixture(scope="module")
def example(installed, sanitizer_flags, tmp_path_factory) -> Path:
    """The example, built with CMake outside this tree."""
    folder = tmp_path_factory.mktemp("example")
    source = folder / "source"
    source.mkdir()
    for file in EXAMPLE.iterdir():
        (source / file.name).write_text(file.read_text())
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        source,
        "-B",
        folder / "build",
        f"-DCMAKE_PREFIX_PATH={installed}",
        f"-DCMAKE_CXX_FLAGS={' '.join(sanitizer_flags)}",
    )
    run("cmake", "--build", folder / "build")
    return folder / "build/translate_lines"


def test_external_project_uses_the_installed_library(example, server):
    lines = ["A bird sings.", "", "Two dogs run."]
    said = run(example, server.grpc, "en", "de", input="\n".join(lines) + "\n")
    wanted = [server.translate(line).translations[0].text if line else "" for line in lines]
    assert said.splitlines() == wanted


def test_example_prints_error_details(example, server):
    done = subprocess.run(
        [example, server.grpc, "en", "tlh"], input="One.\n", capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "reason " in done.stderr


def test_pkg_config_flags_compile_a_program(installed, sanitizer_flags, tmp_path):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "linnet_client", env=environment).split()
    source = tmp_path / "version.cc"
    source.write_text(
        '#include <iostream>\n#include "linnet/client.h"\n'
        "int main() {\n"
        "  auto client = linnet::client::Client::Create({});\n"
        "  std::cout << client.ok() << linnet::client::Version();\n"
        "}\n"
    )
    run("g++", "-std=c++17", "-o", tmp_path / "version", source, *flags, *sanitizer_flags)
    version = run("pkg-config", "--modversion", "linnet_client", env=environment).strip()
    assert run(tmp_path / "version") == f"1{version}"


def test_installed_headers_do_not_include_grpc(installed):
    header = (installed / "include/linnet/linnet/client.h").read_text()
    assert "grpcpp" not in header
    assert "grpc::" not in header
