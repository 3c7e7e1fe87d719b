"""Requests whose client has hung up leave no objects and no memory behind."""

import asyncio
import ctypes
import gc
import json
import resource
import socket
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest
from aiohttp import web
from every_face import FACES
from malloc import used_bytes

KINDS = {
    "unary": FACES["libretranslate"][:2],
    "kept for a repetition": FACES["deepl"][:2],
    "stream": ("/v1/translate/stream", {"contents": ["a"], "target_language_code": "de"}),
    "document": ("/v1/translate/document", {"lines": ["a"] * 40}),
}
HANG_UPS = 20
OURS = ("_asyncio", "aiohttp", "asyncio", "grpc", "linnet", "linnet_http")


@asynccontextmanager
async def running(linnet, tmp_path):
    """The port of linnet-http in this process, before a server that answers no call, and a counter
    of the calls that the server has: entered and ended."""
    from linnet.v1 import text_service_pb2_grpc
    from linnet_http import app
    from linnet_http.glossaries import Glossaries
    from linnet_http.options import Options

    seen: Counter[str] = Counter()

    async def wait_for_cancellation() -> None:
        seen["entered"] += 1
        try:
            await asyncio.Event().wait()
        finally:
            seen["ended"] += 1

    class Service(text_service_pb2_grpc.TextServiceServicer):
        async def Translate(self, request, context):
            await wait_for_cancellation()

        async def StreamTranslate(self, request, context):
            yield linnet.v1.text_service_pb2.StreamTranslateResponse(part=linnet.TextPart(text="a"))
            await wait_for_cancellation()

        async def TranslateDocument(self, requests, context):
            response = linnet.v1.text_service_pb2.TranslateDocumentResponse
            yield response(response=linnet.TranslateResponse())
            await wait_for_cancellation()

    server = grpc.aio.server()
    text_service_pb2_grpc.add_TextServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    options = Options(server=f"127.0.0.1:{port}", documents=tmp_path / "documents")
    made = app.make(options, Glossaries(tmp_path / "glossaries"))
    runner = web.AppRunner(made, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site._server.sockets[0].getsockname()[1], seen
    await runner.cleanup()
    await server.stop(None)


def objects() -> Counter[str]:
    """The objects of linnet-http and its libraries, by type. A loop keeps up to a hundred timers
    that were cancelled."""
    gc.collect()
    kinds = Counter(
        type(it)
        for it in gc.get_objects()
        if not (isinstance(it, asyncio.TimerHandle) and it.cancelled())
    )
    ours = {
        it: count for it, count in kinds.items() if str(it.__module__).partition(".")[0] in OURS
    }
    return Counter({f"{it.__module__}.{it.__qualname__}": count for it, count in ours.items()})


async def hang_up(kind: str, port: int, seen: Counter[str]) -> None:
    """Sends requests whose clients hang up once the server has the calls."""
    path, body = KINDS[kind]
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    writers = []
    for number in range(HANG_UPS):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        token = f"Authorization: {number}\r\n"  # or the calls of one caller would be one
        writer.write(f"{head}{token}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        writers.append(writer)
    while seen["entered"] - seen["ended"] < HANG_UPS:
        await asyncio.sleep(0.01)
    for writer in writers:
        writer.close()
        await writer.wait_closed()
    while seen["ended"] < seen["entered"]:
        await asyncio.sleep(0.01)


def test_a_hang_up_leaves_no_objects(linnet, tmp_path, monkeypatch):
    from linnet_http.faces import deepl

    monkeypatch.setattr(deepl, "KEEP_SECONDS", 0.001)

    async def run() -> None:
        async with running(linnet, tmp_path) as (port, seen):
            for kind in KINDS:
                await hang_up(kind, port, seen)
                before = objects()
                for _ in range(3):
                    await hang_up(kind, port, seen)
                end = time.monotonic() + 30  # the last ones may take some turns of the loop
                while grown := {it: n for it, n in (objects() - before).items() if n >= HANG_UPS}:
                    assert time.monotonic() < end, (kind, grown)
                    await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(run(), 200))


@pytest.mark.parametrize("kind", ["stream", "document"])
def test_calls_that_are_left_leave_no_memory(linnet, kind):
    """Without the loop of linnet-http, grpc.aio keeps 200 to 700 bytes of each."""
    from linnet_http.loop import Loop

    settings = linnet.TranslateRequest(target_language_code="de")

    async def read(client) -> None:
        if kind == "stream":
            await client.stream_translate(settings).response()
        async for _ in client.translate_document(settings, ["a"]):
            pass

    async def left(client, count: int) -> int:
        """The bytes of malloc that are in use after so many calls."""
        for _ in range(count):
            call = asyncio.create_task(read(client))
            await asyncio.sleep(0.001)
            call.cancel()
            with suppress(asyncio.CancelledError, linnet.LinnetError):
                await call
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)
        return used_bytes()

    async def run(address: str) -> int:
        async with linnet.AsyncClient(linnet.Options(address, wait=0)) as client:
            before = await left(client, 300)
            return await left(client, 600) - before

    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        asyncio.Runner(loop_factory=Loop) as runner,
    ):
        grown = runner.run(run(f"127.0.0.1:{silent.getsockname()[1]}"))
    assert grown < 100_000


@pytest.mark.memory
def test_free_memory_is_returned_to_the_system(linnet, monkeypatch):
    from linnet_http import command

    monkeypatch.setattr(command, "_TRIM_SECONDS", 0.001)
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    async def run() -> None:
        before = resident()
        blocks = [libc.malloc(1 << 16) for _ in range(1024)]
        for block in blocks:
            ctypes.memset(block, 1, 1 << 16)
        kept = blocks.pop()  # glibc alone returns what lies behind it
        for block in blocks:
            libc.free(ctypes.c_void_p(block))
        assert resident() - before > 32 << 20
        trimming = asyncio.create_task(command._trim_memory())
        end = time.monotonic() + 60
        while resident() - before > 16 << 20:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        trimming.cancel()
        libc.free(ctypes.c_void_p(kept))

    asyncio.run(run())
