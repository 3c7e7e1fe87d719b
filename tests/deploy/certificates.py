"""The folder secrets, created by the commands of docs/TLS.md."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from programs import ROOT

PAGE = ROOT / "docs/TLS.md"
OWNER = 10001  # the user of the image, which must read the files


def blocks() -> list[str]:
    """The commands of the page: for the files, for compose, for Kubernetes."""
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def client_command(text: str) -> list[str]:
    """The words of the docker command of a page or a comment that calls the server."""
    lines = re.sub(r"\\\n#? *", "", text).splitlines()
    return next(shlex.split(line.lstrip("# ")) for line in lines if "docker run" in line)


def make(folder: Path) -> Path:
    done = subprocess.run(
        ["sh", "-e"], input=blocks()[0], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "secrets"
