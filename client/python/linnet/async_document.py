"""The lines of a document of the client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from .document import MAX_LINES_IN_FLIGHT
from .texts import check_lines, check_text
from .v1 import text_service_pb2 as api

Lines = Iterable[str] | AsyncIterable[str]


class AsyncDocument:
    """Takes lines from the caller's iterator and keeps each until its result has come, so that
    another call can continue the document. The task that takes a line outlives the call for which
    it began: cancelling it would end an asynchronous generator of the caller."""

    def __init__(self, first: Any, lines: Lines, name: str):
        check_lines(lines, name, asynchronous=True)
        self._first, self._lines = first, lines
        self.error: BaseException | None = None  # of the iterator, which grpc.aio would replace
        self._iterator: Iterator[str] | AsyncIterator[str] | None = None
        self._taking: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._in_flight: dict[int, str] = {}
        self._taken = 0
        self._all_taken = False

    async def messages(self) -> AsyncIterator[Any]:
        """The messages of a call: the settings, then every line without a result."""
        yield self._first
        number = self._taken
        for earlier, text in list(self._in_flight.items()):
            yield self._message(earlier, text)
        while True:
            while len(self._in_flight) >= MAX_LINES_IN_FLIGHT:
                self._room.clear()
                await self._room.wait()
            while number == self._taken and not self._all_taken and self.error is None:
                await self._take()
            if self.error is not None:
                raise self.error
            if number not in self._in_flight:
                return
            yield self._message(number, self._in_flight[number])
            number += 1

    def answer(self, number: int) -> None:
        """Notes the result of a line."""
        self._in_flight.pop(number, None)
        self._room.set()

    def is_answered(self) -> bool:
        return self._all_taken and not self._in_flight

    def end(self) -> None:
        if self._taking is not None:
            self._taking.cancel()

    def _message(self, number: int, text: str) -> Any:
        return type(self._first)(lines=[api.DocumentLine(sequence_id=number, text=text)])

    async def _take(self) -> None:
        if not isinstance(self._lines, AsyncIterable):
            await self._take_one()  # without a task, which costs more than the line
            return
        if self._taking is None or self._taking.done():
            self._taking = asyncio.ensure_future(self._take_one())
        await asyncio.shield(self._taking)

    async def _take_one(self) -> None:
        try:
            if self._iterator is None:
                if isinstance(self._lines, AsyncIterable):
                    self._iterator = aiter(self._lines)
                else:
                    self._iterator = iter(self._lines)
            if isinstance(self._iterator, AsyncIterator):
                text = await anext(self._iterator)
            else:
                text = next(self._iterator)
            check_text(text, f"line {self._taken}")
            self._in_flight[self._taken] = text
            self._taken += 1
        except (StopIteration, StopAsyncIteration):
            self._all_taken = True
        except Exception as error:
            self.error = error
