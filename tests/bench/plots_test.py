"""The plots of the committed results can be drawn, and a folder without results is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDERS = sorted(path.parent for path in HERE.glob("results/*/batching.json"))


def plots(results: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "plots.py"), str(results), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_draws_committed_results(folder: Path, tmp_path: Path) -> None:
    done = plots(folder, tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = [Path(line) for line in done.stdout.split()]
    assert tmp_path / "batching.svg" in drawn
    assert all("<svg" in path.read_text() for path in drawn)


def test_refuses_folder_without_results(tmp_path: Path) -> None:
    done = plots(tmp_path, tmp_path)
    assert done.returncode == 1
    assert "has no batching.json" in done.stderr
