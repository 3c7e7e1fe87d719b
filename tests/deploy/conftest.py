"""Servers as processes with the bundles that ship; the engine and the image for containers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import ROOT, Engine, skip
from replicas import Server


@pytest.fixture(scope="session")
def server(program, binaries) -> Iterator[Server]:
    """One server, with the GPUs of a fake NVML, for all tests that do not change its state."""
    nvml = binaries.parent / "fake-nvml"
    assert (nvml / "libnvidia-ml.so.1").exists(), f"{nvml} is not built: see ./test.sh"
    running = Server(program("linnet-server"), environment={"LD_LIBRARY_PATH": str(nvml)})
    running.wait_for_ready()
    yield running
    assert running.stop() == 0
    running.remove()


@pytest.fixture(scope="session")
def page(server: Server) -> dict[str, list[str]]:
    """The samples of a running server's metrics page, by name."""
    found: dict[str, list[str]] = {}
    for line in server.scrape().splitlines():
        if line and not line.startswith("#"):
            found.setdefault(line.partition(" ")[0].partition("{")[0], []).append(line)
    return found


@pytest.fixture(scope="session")
def load(program):
    """load(address, "--rate", "5", …) → a running linnet-load; its report is JSON."""

    def start(address: str, *flags: str) -> subprocess.Popen:
        command = [program("linnet-load"), "--server", address, "--json", *flags]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.fixture(scope="session")
def engine() -> Engine:
    found, reason = Engine.find()
    return found or skip(f"no container engine: {reason}")


def _image(variable: str, name: str, target: str = "cpu"):
    """A fixture with an image; the variable names one of this tree that exists already."""

    @pytest.fixture(scope="session")
    def built(engine) -> str:
        if made := os.environ.get(variable):
            return made
        engine.build(name, target)
        return name

    return built


image = _image("LINNET_TEST_IMAGE", "linnet-server:test")
http_image = _image("LINNET_TEST_HTTP_IMAGE", "linnet-http:test", "http")
model_image = _image("LINNET_TEST_MODEL_IMAGE", "linnet-model:test", "model")


@pytest.fixture(scope="session")
def linnet_http_options():
    """Reads flags as linnet-http does; wrong ones end it."""
    from linnet_http.options import parse

    return parse


@pytest.fixture(scope="session")
def packed(tmp_path_factory) -> Path:
    """A folder with the packages that cpack makes of the release build.

    LINNET_TEST_PACKAGES names a folder with packages of this tree that exist already.
    """
    if made := os.environ.get("LINNET_TEST_PACKAGES"):
        return Path(made).absolute()
    folder = tmp_path_factory.mktemp("packages")
    done = subprocess.run(
        ["cpack", "-B", str(folder)],
        cwd=ROOT / "build/release",
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch
