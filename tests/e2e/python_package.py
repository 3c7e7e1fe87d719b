"""Helpers of the tests of the package `linnet` (client/python)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "client/python"


def install_package(tree: Path) -> Path:
    """Builds a wheel and installs it into a folder with pip, without a network."""
    skip = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(PACKAGE, tree / "client/python", ignore=skip)
    (tree / "proto").symlink_to(ROOT / "proto")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    quiet = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", str(tree), "."]
    subprocess.run(build, check=True, cwd=tree / "client/python", capture_output=True)
    (wheel,) = tree.glob("linnet-*-py3-none-any.whl")
    installed = tree / "site"
    install = [*pip, "install", *quiet, "--target", str(installed), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return installed


def english(linnet, *contents: str, **fields):
    fields = {"source_language_code": "en", "target_language_code": "de", **fields}
    return linnet.TranslateRequest(contents=contents, **fields)


def wait_until(done, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
