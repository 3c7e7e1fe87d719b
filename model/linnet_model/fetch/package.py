"""Fetches a wheel of PyPI by pip, which knows the mirrors, proxies and certificates of the machine.

pip is one of our pinned packages (deps/versions.txt): the images and the Debian package have no
other. It compares the sha256, installs nothing and runs nothing of the wheel.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from linnet_model.config import ConfigError
from linnet_model.fetch.plan import Wheel, sha256_of

LAST = 3  # lines of pip's errors that are shown


def pip_command() -> list[str]:
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise ConfigError(
            "this Python has no pip, which fetches packages: run ./start.sh --build --import, or "
            "install pip"
        )
    # The folder, as -m finds no module of a path that was added in the process.
    return [sys.executable, str(Path(found.origin).parent)]


def requirement(wheel: Wheel) -> str:
    return f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n"


def fetch_wheel(wheel: Wheel, folder: Path) -> Path:
    """Returns the wheel in the folder, which a run before this one may have fetched."""
    for file in folder.glob("*.whl"):
        if sha256_of(file) == wheel.sha256:
            return file
        file.unlink()
    listed = folder / "requirements.txt"
    listed.write_text(requirement(wheel), encoding="utf-8")
    scratch = folder / "pip"  # rather than /tmp, which in a container may be small
    scratch.mkdir(exist_ok=True)
    told = sys.stderr.isatty()
    flags = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--platform", wheel.platform]
    flags += ["--disable-pip-version-check", "--no-input", *([] if told else ["--quiet"])]
    done = subprocess.run(
        [*pip_command(), "download", *flags, "--dest", str(folder), "--requirement", str(listed)],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if told else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(scratch)},
        check=False,
    )
    found = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        raise ConfigError(failure(wheel, done.stderr))
    return found[0]


def failure(wheel: Wheel, errors: str) -> str:
    """Returns what to say of pip's errors."""
    got = re.search(r"Got\s+([0-9a-f]{64})", errors)
    if got:
        return (
            f"the package {wheel.requirement} has the sha256 {got[1]}, expected {wheel.sha256}; "
            "the file was removed: this catalogue is of another build of it"
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    last = " ".join((said or lines)[-LAST:])
    return (
        f"pip cannot fetch {wheel.requirement}: {last or 'it gave no reason'}; check the network, "
        "and the mirror or the proxy of pip if there is one (PIP_INDEX_URL, https_proxy)"
    )
