"""The progress of a run on terminals of any width."""

from __future__ import annotations

import os
import pty
import sys
import termios
from types import SimpleNamespace

import pytest
from linnet_corpus import Answer, progress

WHOLE = "42,000/50,000,000 ETA 1189:28:34 1 errors 12 rows/s 2 tokens/s"


@pytest.fixture
def shown(monkeypatch):
    """shown(columns): what a terminal gets of a bar that is drawn once, after an hour."""

    def shown(columns: int) -> str:
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        clock = iter([0, 0, 3600])  # begin, a chunk, an answer
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        with os.fdopen(slave, "w") as terminal:
            monkeypatch.setattr(sys, "stderr", terminal)
            bar = progress.Bar(50_000_000)
            bar.chunk(progress.Summary(rows=41_999))
            bar.came(Answer(error="INTERNAL", tokens=7200))
            bar.end()
        said = b""
        try:
            while part := os.read(master, 1000):
                said += part
        except OSError:  # how a terminal ends
            os.close(master)
        return said.decode()

    return shown


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (200, f"[{'':24}] {WHOLE}"),
        (80, f"[{'':14}] {WHOLE}"),
        (40, WHOLE[:39]),
        (1, ""),
    ],
)
def test_line_fits_the_terminal_and_is_removed_at_the_end(shown, columns, line):
    assert shown(columns) == f"\r{line}\x1b[K\r\x1b[K"
