"""A folder in the layout of OPUS-MT with random weights, for tests of packages and images."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from tiny_marian import SOURCES, make_tiny_marian

__all__ = ["SOURCES", "opus_mt"]


def opus_mt(folder: Path) -> Path:
    """Writes the folder, which anybody may read."""
    make_tiny_marian(folder, max_position_embeddings=128)
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder
