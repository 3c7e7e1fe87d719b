"""linnet-file with a client whose server shouts."""

from __future__ import annotations

from functools import partial

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
def run(monkeypatch, run_main):
    """Runs linnet-file: (exit status, standard output, standard error)."""
    monkeypatch.setattr(linnet, "AsyncClient", Connected)
    return partial(run_main, main)
