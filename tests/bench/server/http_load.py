"""Sends LibreTranslate requests over HTTP, for http_overhead.py and http_libretranslate.py.

It does as little as it can: one connection for each request in flight, prepared requests, and no
more of an answer read than its length and status, so that little of the time is its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any


def request(text: str, source: str, target: str) -> bytes:
    body = json.dumps({"q": text, "source": source, "target": target, "format": "text"}).encode()
    head = "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Caller(asyncio.Protocol):
    """A connection. `answered` is called with the seconds of each request, and sends the next."""

    def __init__(self, requests: Iterator[bytes], answered: Any):
        self._requests, self._answered = requests, answered
        self._found, self._sent = b"", 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.send()

    def send(self) -> None:
        sent = next(self._requests, None)
        if sent is None:
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(sent)

    def data_received(self, data: bytes) -> None:
        self._found += data
        head, blank, body = self._found.partition(b"\r\n\r\n")
        if not blank:
            return
        at = head.lower().index(b"content-length: ") + len(b"content-length: ")
        if len(body) < int(head[at : at + 12].split(b"\r")[0]):
            return
        if b" 200 " not in head[:16]:
            self.done.set_exception(RuntimeError(f"{head!r} {body!r}"))
            self._transport.close()
            return
        self._found = b""
        self._answered(time.perf_counter() - self._sent, body)
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(
    address: str, requests: list[bytes], concurrency: int, warmup: float, seconds: float
) -> dict[str, Any]:
    """Keeps so many requests in flight; answers during the warm-up do not count."""
    host, _, port = address.rpartition(":")
    begin = time.perf_counter() + warmup
    end = begin + seconds
    took: list[float] = []
    every = 0

    def of(first: int) -> Iterator[bytes]:
        number = first
        while time.perf_counter() < end:
            yield requests[number % len(requests)]
            number += concurrency

    def answered(duration: float, _: bytes) -> None:
        nonlocal every
        every += 1
        if begin <= time.perf_counter() < end:
            took.append(duration)

    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda n=n: Caller(of(n), answered), host, int(port))
        for n in range(concurrency)
    ]
    await asyncio.gather(*(caller.done for _, caller in made))
    rate = len(took) / seconds
    return {"per_second": rate, "median_ms": 1e3 * median(took), "answered": every}


async def alone(
    http: str, grpc: str, texts: list[str], source: str, target: str
) -> dict[str, list[float]]:
    """The milliseconds of each text by the asyncio client and over HTTP, in turn, on connections
    that are kept."""
    import linnet

    host, _, port = http.rpartition(":")
    loop = asyncio.get_running_loop()
    found: dict[str, list[float]] = {"grpc": [], "http": []}
    pending: asyncio.Future[float] | None = None

    def answered(duration: float, _: bytes) -> None:
        assert pending is not None
        pending.set_result(duration)

    class Waiting(Caller):
        def send(self) -> None:
            pass

        def now(self, sent: bytes) -> None:
            self._sent = time.perf_counter()
            self._transport.write(sent)

    _, caller = await loop.create_connection(lambda: Waiting(iter(()), answered), host, int(port))
    async with linnet.AsyncClient(linnet.Options(server=grpc)) as client:
        for text in texts:
            message = linnet.TranslateRequest(
                contents=[text], source_language_code=source, target_language_code=target
            )
            begin = time.perf_counter()
            await client.translate(message)
            found["grpc"].append(1e3 * (time.perf_counter() - begin))
            pending = loop.create_future()
            caller.now(request(text, source, target))
            found["http"].append(1e3 * await pending)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--http", required=True, metavar="HOST:PORT")
    add("--grpc", metavar="HOST:PORT", help="compare with the asyncio client, one text at a time")
    add("--file", type=Path, required=True, help="a text per line")
    add("--source", default="en")
    add("--target", default="de")
    add("--concurrency", type=int, default=64)
    add("--warmup", type=float, default=2.0, help="seconds")
    add("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    texts = options.file.read_text().splitlines()
    if options.grpc:
        print(json.dumps(asyncio.run(alone(
            options.http, options.grpc, texts, options.source, options.target))))  # fmt: skip
        return
    requests = [request(text, options.source, options.target) for text in texts]
    report = load(options.http, requests, options.concurrency, options.warmup, options.seconds)
    json.dump(asyncio.run(report), sys.stdout)


if __name__ == "__main__":
    main()
