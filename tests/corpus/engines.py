"""A Python with Ray, Spark and datasets, for what runs linnet-corpus in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import linnet

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/engines"
PINS = ROOT / "client/corpus/engines.txt"


def install() -> Path:
    """The Python of build/engines, with this tree's linnet-corpus and the Python client. What
    client/corpus/engines.txt pins is fetched when that file has changed."""
    python, installed = PLACE / "bin/python", PLACE / "installed.txt"
    if not installed.exists() or installed.read_bytes() != PINS.read_bytes():
        shutil.rmtree(PLACE, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "-r", PINS], check=True)
        shutil.copy(PINS, installed)
    (site,) = PLACE.glob("lib/python3.*/site-packages")
    shutil.copytree(Path(linnet.__file__).parent, site / "linnet", dirs_exist_ok=True)
    (site / "linnet_corpus.pth").write_text(f"{ROOT / 'client/corpus'}\n")
    return python
