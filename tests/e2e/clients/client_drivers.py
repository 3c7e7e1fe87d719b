"""One interface to the clients: the Python client for threads and for asyncio, the C++ library and
the command line."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class Failed(Exception):
    """The error of a client."""

    def __init__(self, code: str, message: str, retry_delay: float | None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.retry_delay = code, message, retry_delay


@dataclass(frozen=True)
class Settings:
    timeout: float = 30
    max_attempts: int = 5
    initial_backoff: float = 0.01
    max_backoff: float = 0.05


class Threads:
    """linnet.Client"""

    def __init__(self, linnet):
        self._linnet = linnet

    def options(self, address: str, settings: Settings):
        retry = self._linnet.Retry(
            settings.max_attempts, settings.initial_backoff, settings.max_backoff
        )
        return self._linnet.Options(address, timeout=settings.timeout, retry=retry)

    def request(self, *contents: str):
        return self._linnet.TranslateRequest(
            contents=contents, source_language_code="en", target_language_code="de"
        )

    def failed(self, error) -> Failed:
        return Failed(error.code.name, error.message, error.retry_delay)

    def _text(self, result) -> str:
        """The text of a document's line. Raises the line's error."""
        if isinstance(result, self._linnet.LinnetError):
            raise result
        return result.translations[0].text

    def translate(self, address: str, texts: list[str], settings: Settings) -> list[str]:
        try:
            with self._linnet.Client(self.options(address, settings)) as client:
                response = client.translate(self.request(*texts))
        except self._linnet.LinnetError as error:
            raise self.failed(error) from error
        return [translation.text for translation in response.translations]

    def stream(self, address: str, texts: list[str], settings: Settings) -> list[str]:
        try:
            with self._linnet.Client(self.options(address, settings)) as client:
                return [part.text for part in client.stream_translate(self.request(*texts))]
        except self._linnet.LinnetError as error:
            raise self.failed(error) from error

    def document(self, address: str, lines: Iterable[str], settings: Settings) -> list[str]:
        said = []
        try:
            with self._linnet.Client(self.options(address, settings)) as client:
                for number, result in client.translate_document(self.request(), lines):
                    assert number == len(said)
                    said.append(self._text(result))
        except self._linnet.LinnetError as error:
            raise self.failed(error) from error
        return said


class Asyncio(Threads):
    """linnet.AsyncClient"""

    def translate(self, address: str, texts: list[str], settings: Settings) -> list[str]:
        async def run() -> list[str]:
            async with self._linnet.AsyncClient(self.options(address, settings)) as client:
                response = await client.translate(self.request(*texts))
                return [translation.text for translation in response.translations]

        return self._run(run())

    def stream(self, address: str, texts: list[str], settings: Settings) -> list[str]:
        async def run() -> list[str]:
            async with self._linnet.AsyncClient(self.options(address, settings)) as client:
                stream = client.stream_translate(self.request(*texts))
                return [part.text async for part in stream]

        return self._run(run())

    def document(self, address: str, lines: Iterable[str], settings: Settings) -> list[str]:
        async def asynchronous():
            iterator = iter(lines)
            while (line := await asyncio.to_thread(next, iterator, None)) is not None:
                yield line

        async def run() -> list[str]:
            said = []
            async with self._linnet.AsyncClient(self.options(address, settings)) as client:
                results = client.translate_document(self.request(), asynchronous())
                async for number, result in results:
                    assert number == len(said)
                    said.append(self._text(result))
            return said

        return self._run(run())

    def _run(self, coroutine) -> list[str]:
        try:
            return asyncio.run(coroutine)
        except self._linnet.LinnetError as error:
            raise self.failed(error) from error


def run_program(command: list[str | Path], lines: Iterable[str]) -> list[str]:
    """The lines that a program prints, which gets `lines` as they come. Its errors are those of
    linnet::client::ErrorText."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([str(part) for part in command], text=True, **pipes) as program:

        def feed() -> None:
            with suppress(BrokenPipeError), program.stdin:
                for line in lines:
                    program.stdin.write(f"{line}\n")
                    program.stdin.flush()

        feeder = threading.Thread(target=feed)
        feeder.start()
        said, errors = program.stdout.read(), program.stderr.read()
        feeder.join()
    if program.returncode != 0:
        found = re.search(r"([A-Z_]+): (.*)", errors)
        delay = re.search(r"retry after ([0-9.]+) s", errors)
        code, seconds = found[1] if found else "?", float(delay[1]) if delay else None
        raise Failed(code, errors, seconds)
    return said.splitlines()


class Library:
    """The C++ library, by a program of tests/client."""

    def __init__(self, program: Path):
        self._program = program

    def translate(self, address: str, texts: Iterable[str], settings: Settings) -> list[str]:
        return self._run("translate", address, texts, settings)

    def stream(self, address: str, texts: Iterable[str], settings: Settings) -> list[str]:
        return self._run("stream", address, texts, settings)

    def document(self, address: str, lines: Iterable[str], settings: Settings) -> list[str]:
        return self._run("document", address, lines, settings)

    def _run(self, mode: str, address: str, lines: Iterable[str], settings: Settings) -> list[str]:
        numbers = (
            settings.timeout,
            settings.max_attempts,
            settings.initial_backoff,
            settings.max_backoff,
        )
        return run_program([self._program, mode, address, *map(str, numbers)], lines)


class CommandLine:
    """`linnet`. It sends the lines of a file in calls of Translate, not as a document."""

    def __init__(self, program: Path):
        self._program = program

    def translate(self, address: str, texts: Iterable[str], settings: Settings) -> list[str]:
        languages = ["--from", "en", "--to", "de"]
        where = ["--server", address, "--timeout", f"{settings.timeout}s"]
        return run_program([self._program, "translate", *languages, *where], texts)
