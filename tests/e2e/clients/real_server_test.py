"""Documents through a real server whose connections age, and which restarts, are answered whole."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from client_drivers import Asyncio, Library, Settings, Threads

LINES = [f"The dog has {number} bones." for number in range(40)]
SETTINGS = Settings(max_attempts=5, initial_backoff=0.05, max_backoff=1)


@pytest.fixture(params=["threads", "asyncio", "library"])
def client(request, linnet, program):
    if request.param == "library":
        return Library(program("conformance_client"))
    return (Threads if request.param == "threads" else Asyncio)(linnet)


def test_document_goes_on_when_its_connection_ages(start, client):
    server = start("--max-connection-age", "1")
    expected = [it.text for it in server.translate(*LINES).translations]

    def slowly() -> Iterator[str]:
        for line in LINES:
            yield line
            time.sleep(0.1)  # four seconds in all

    assert client.document(server.grpc, slowly(), SETTINGS) == expected


# Not the library: its program may connect first while the server is down, an error at once.
@pytest.mark.parametrize("client", ["threads", "asyncio"], indirect=True)
def test_document_goes_on_when_the_server_restarts(start, client):
    server = start()
    expected = [it.text for it in server.translate(*LINES).translations]

    def with_restart() -> Iterator[str]:
        yield from LINES[:20]
        server.process.terminate()
        server.process.wait(60)
        start("--listen", server.grpc)
        yield from LINES[20:]

    assert client.document(server.grpc, with_restart(), SETTINGS) == expected
