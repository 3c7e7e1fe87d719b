"""linnet-file with a client whose server shouts."""

from __future__ import annotations

from pathlib import Path

import linnet
import pytest
from file_samples import Shouter
from linnet_files.command import main


class Connected(Shouter):
    def __init__(self, options: linnet.Options):
        super().__init__()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object):
        return None


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs linnet-file: (exit status, standard output, standard error)."""
    monkeypatch.setattr(linnet, "AsyncClient", Connected)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status: object = 0
        try:
            main([str(it) for it in arguments])
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return int(str(status)), said.out, said.err

    return run
