"""A client and a fake server for the tests of the package `linnet`."""

from __future__ import annotations

import pytest
from fake_server import FakeServer


@pytest.fixture
def fake(linnet):
    fakes = []

    def make(*arguments, **named) -> FakeServer:
        fakes.append(FakeServer(linnet, *arguments, **named))
        return fakes[-1]

    yield make
    for each in fakes:
        each.released.set()
        each.server.stop(None)


@pytest.fixture
def client(linnet, server):
    with linnet.Client(server.grpc) as client:
        yield client
