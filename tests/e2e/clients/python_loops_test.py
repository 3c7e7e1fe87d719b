"""The event loop of an AsyncClient of the package `linnet`."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from python_package import english


def test_client_made_outside_of_a_loop_belongs_to_that_of_its_first_call(linnet, fake):
    client = linnet.AsyncClient(fake().address)  # a global of a module, say

    async def ask() -> None:
        await client.translate(english(linnet, "a"))

    async def ask_and_close() -> None:
        await ask()
        await client.close()

    asyncio.run(ask_and_close())
    uses = {
        "a call": ask,
        "a stream": lambda: client.stream_translate(english(linnet, "a")).response(),
        "a document": lambda: anext(client.translate_document(english(linnet), ["a"])),
        "a check": client.is_serving,
        "the end": client.close,
    }
    for name, use in uses.items():

        async def another(use=use) -> None:
            await use()

        with pytest.raises(linnet.LinnetError, match="belongs to another event loop") as caught:
            asyncio.run(another())
        assert caught.value.code == grpc.StatusCode.FAILED_PRECONDITION, name


def test_use_without_a_running_loop_is_a_clear_error(linnet, fake):
    client = linnet.AsyncClient(fake().address)
    with pytest.raises(linnet.LinnetError, match="no event loop runs") as caught:
        client.stream_translate(english(linnet, "a"))
    assert caught.value.code == grpc.StatusCode.FAILED_PRECONDITION
    call = client.translate(english(linnet, "a"))
    with pytest.raises(linnet.LinnetError, match="no event loop runs"):
        call.send(None)
    end = client.close()
    with pytest.raises(linnet.LinnetError, match="no event loop runs"):
        end.send(None)


def test_wrong_file_of_tls_is_refused_when_the_client_is_made(linnet, tmp_path):
    options = linnet.Options("a.example:1", tls=linnet.Tls(ca_file=tmp_path / "none.pem"))
    with pytest.raises(linnet.LinnetError, match="cannot read"):
        linnet.AsyncClient(options)


def test_each_loop_has_a_client_of_its_own(linnet, fake):
    server = fake()

    async def ask() -> None:
        async with linnet.AsyncClient(server.address) as client:
            await client.translate(english(linnet, "a"))

    for _ in range(2):
        asyncio.run(ask())
    assert len(server.calls) == 2
