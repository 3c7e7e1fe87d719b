"""A local server for the tests of linnet-model fetch, without a proxy before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from file_server import FileServer, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running
