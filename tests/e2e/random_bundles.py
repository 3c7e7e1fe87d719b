"""Tiny bundles with random weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def random_bundle(folder: Path, *flags: str) -> None:
    """Makes the bundle `folder`, named as the folder, with a tokenizer of 600 pieces."""
    command = [sys.executable, "-m", "linnet_model.export.random_bundle", "--preset", "tiny"]
    command += ["--vocab", "600", "--tokenizer", "--name", folder.name, "--out", str(folder)]
    subprocess.run(
        [*command, *flags],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "model")},
    )
