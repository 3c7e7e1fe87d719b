"""Keeps linnet-http busy for a time with requests of every kind, and watches its memory.

Clients translate in each API, read streams, ask for answers with their ETag, keep and delete
glossaries, upload files, send what is wrong or too large, and hang up. Resident memory of the
worker is read every ten seconds, more often in short runs; what the first third of the time takes,
while caches fill, does not count. Writes DIR/MACHINE/http-soak.json and http-soak.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e"))
import machine
import server_overhead
from aiohttp import ClientError, ClientSession, ClientTimeout, FormData
from http_overhead import front_end
from sentences import sentences
from server_overhead import Placement
from slope import BLOCKS, Slope, fit

EVERY_SECONDS = 10.0
MIN_SAMPLES = 2 * BLOCKS  # a third of which do not count
CLIENTS = 8
MAX_GROWTH_PER_HOUR = 0.02


class Client:
    """Sends requests of every kind, one after the other, chosen at random."""

    def __init__(
        self, http: ClientSession, texts: list[str], documents: Path, seed: int, seen: Counter[str]
    ):
        self._http, self._texts, self._seen = http, texts, seen
        self._documents, self._random = documents, random.Random(seed)
        self._tag = ""

    def _text(self) -> str:
        return self._random.choice(self._texts)

    async def _post(self, path: str, **body: Any) -> int:
        async with self._http.post(path, **body) as reply:
            await reply.read()
            return reply.status

    async def libretranslate(self) -> int:
        job = {"q": self._text(), "source": "en", "target": "de", "alternatives": 1}
        return await self._post("/translate", json=job)

    async def form(self) -> int:
        return await self._post(
            "/v2/translate", data=[("text", self._text()), ("target_lang", "DE")]
        )

    async def google(self) -> int:
        body = {"q": [self._text()] * 2, "target": "de", "source": "en", "format": "text"}
        return await self._post("/language/translate/v2", json=body)

    async def stream(self) -> int:
        message = {"contents": [self._text()], "source_language_code": "en"}
        message |= {"target_language_code": "de"}
        return await self._post("/v1/translate/stream", json=message)

    async def current(self) -> int:
        query = {"q": self._texts[0], "source": "en", "target": "de"}
        headers = {"If-None-Match": self._tag} if self._tag else {}
        async with self._http.get("/v1/translate", params=query, headers=headers) as reply:
            self._tag = reply.headers.get("ETag", "")
            await reply.read()
            return reply.status

    async def glossary(self) -> int:
        headers = {"Authorization": f"DeepL-Auth-Key {self._random.random()}"}
        body = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries": "dog\tHund"}
        async with self._http.post("/v2/glossaries", json=body, headers=headers) as reply:
            made = (await reply.json())["glossary_id"]
        async with self._http.delete(f"/v2/glossaries/{made}", headers=headers) as reply:
            return reply.status

    async def wrong(self) -> int:
        wrong: list[Any] = ["{", "[1]", '{"q": 1}', b"\xff\xfe", "a" * (5 << 20)]
        headers = {"Content-Type": "application/json", "X-A": "a" * self._random.choice((1, 9000))}
        return await self._post("/translate", data=self._random.choice(wrong), headers=headers)

    async def upload(self) -> int:
        form = FormData({"source": "en", "target": "de"})
        form.add_field("file", "\n".join(self._text() for _ in range(3)), filename="a.txt")
        async with self._http.post("/translate_file", data=form) as reply:
            said = await reply.json()
        if reply.status == 200:  # linnet-http itself keeps the file for an hour
            name = said["translatedFileUrl"].rpartition("/")[2]
            shutil.rmtree(self._documents / name.partition(".")[0])
        return reply.status

    async def hang_up(self) -> int:
        kind = self._random.choice((self.libretranslate, self.form, self.stream, self.upload))
        task = asyncio.create_task(kind())
        await asyncio.sleep(self._random.random() / 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return 499

    async def detect(self) -> int:
        return await self._post("/detect", json={"q": self._text()})

    async def run(self, end: float) -> None:
        kinds = (self.libretranslate, self.form, self.google, self.stream, self.current)
        kinds += (self.glossary, self.wrong, self.hang_up, self.detect, self.upload)  # type: ignore[assignment]
        while time.monotonic() < end:
            kind = self._random.choice(kinds)
            try:
                status = str(await kind())
            except ClientError:
                status = "closed"  # a body that is too large: the rest is not read
            self._seen[f"{kind.__name__} {status}"] += 1


def resident(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{child}/status").read_text())
    assert found
    return int(found[1]) << 10


async def soak(
    address: str, pid: int, documents: Path, minutes: float, every: float
) -> tuple[list[int], Counter[str]]:
    begin, seen = time.monotonic(), Counter[str]()
    end = begin + 60 * minutes
    texts, samples = sentences(400), []
    timeout = ClientTimeout(total=120)
    async with ClientSession(f"http://{address}", timeout=timeout) as http:
        clients = [Client(http, texts, documents, number, seen) for number in range(CLIENTS)]
        running = asyncio.gather(*(client.run(end) for client in clients))
        while not running.done():
            await asyncio.sleep(every)
            samples.append(resident(pid))
        await running
    return samples, seen


def growth(results: dict[str, Any]) -> Slope:
    """The share of resident memory that an hour adds, without the first third of the time."""
    samples = results["resident_bytes"]
    kept = range(len(samples) // 3, len(samples))
    seconds = [number * results["every_seconds"] for number in kept]
    return fit(seconds, [float(samples[number]) for number in kept])


def markdown(results: dict[str, Any]) -> str:
    samples = results["resident_bytes"]
    slope = growth(results)
    about = (
        "Written by `tests/bench/server/http_soak.py`. "
        f"{machine.sentence(results['machine'])}. {results['minutes']:g} minutes with "
        f"{CLIENTS} clients; {sum(results['requests'].values())} requests, of which "
        f"{sum(n for name, n in results['requests'].items() if ' 5' in name)} failed with a status "
        "from 500 up."
    )
    rows = [
        ["after a third of the time", f"{samples[len(samples) // 3] / 2**20:.1f} MiB"],
        ["at the end", f"{samples[-1] / 2**20:.1f} MiB"],
        ["growth an hour", f"{slope.per_hour:+.1%} ({slope.low:+.1%} to {slope.high:+.1%})"],
        ["wanted, of the lower bound", f"at most {MAX_GROWTH_PER_HOUR:+.0%}"],
    ]
    rows += [[name, str(count)] for name, count in sorted(results["requests"].items())]
    return machine.report("A soak of linnet-http", about, ["resident memory, requests", ""], rows)


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=30.0)
    machine.add_server(parser)
    options = machine.parse(parser, words)
    options.batch = 40
    return options


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    cores = sorted(os.sched_getaffinity(0))
    every = min(EVERY_SECONDS, 60 * options.minutes / MIN_SAMPLES)
    facts = machine.facts(cores)  # before: the tree may change meanwhile
    placement = Placement(cores[:1], cores[:1])
    with (
        tempfile.TemporaryDirectory() as documents,
        server_overhead.server(options, placement, "int8", 4) as grpc,
        front_end(cores, grpc, "--documents", documents) as (http, process),
    ):
        running = soak(http, process.pid, Path(documents), options.minutes, every)
        samples, seen = asyncio.run(running)
    results = {
        "machine": facts,
        "minutes": options.minutes,
        "every_seconds": every,
        "requests": dict(sorted(seen.items())),
        "resident_bytes": samples,
    }
    machine.publish(options.out, "http-soak", results, markdown(results))
    return 0 if growth(results).low <= MAX_GROWTH_PER_HOUR else 1


if __name__ == "__main__":
    sys.exit(main())
