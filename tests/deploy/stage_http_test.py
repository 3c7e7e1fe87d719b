"""Tests deploy/stage_http.py: the folder has all that linnet-http imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_staged_program_starts(tmp_path):
    stage = [sys.executable, str(ROOT / "deploy/stage_http.py"), str(tmp_path / "linnet")]
    subprocess.run(stage, check=True, timeout=300)
    command = [str(tmp_path / "linnet/bin/linnet-http"), "--server", "127.0.0.1:1"]
    command += ["--listen", "127.0.0.1:0", "--glossaries", str(tmp_path / "glossaries")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready http=")
        process.terminate()
