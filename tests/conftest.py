"""Where the tests find the programs under test: LINNET_BIN_DIR, else build/release/bin."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def binaries() -> Path:
    return Path(os.environ.get("LINNET_BIN_DIR", ROOT / "build/release/bin")).absolute()


@pytest.fixture(scope="session")
def program(binaries: Path) -> Callable[[str], Path]:
    """program("linnet-server") -> its path; a test that needs what is not built fails."""

    def find(name: str) -> Path:
        path = binaries / name
        assert path.exists(), f"{path} is not built: run ./start.sh --build, or set LINNET_BIN_DIR"
        return path

    return find
