"""The lines of a document of the blocking client."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from .texts import check_lines, check_text
from .v1 import text_service_pb2 as api

Lines = Iterable[str]
MAX_LINES_IN_FLIGHT = 256  # HTTP/2 alone would let megabytes of them pass


class LinesOfCall:
    """The end of a call that sends lines of a document."""

    ended = False


class Document:
    """Takes lines from the caller's iterator and keeps each until its result has come, so that
    another call can continue the document. A thread of gRPC takes the messages of each call; one
    that is still in the caller's iterator after its call has ended gives its line to the next."""

    def __init__(self, first: Any, lines: Lines, name: str):
        check_lines(lines, name)
        self._first, self._lines = first, lines
        self.error: BaseException | None = None  # of the iterator, which gRPC would drop
        self._iterator: Iterator[str] | None = None
        self._taking = threading.Lock()  # held in the caller's iterator
        self._changed = threading.Condition()
        self._in_flight: dict[int, str] = {}
        self._taken = 0
        self._all_taken = False

    def messages(self, call: LinesOfCall) -> Iterator[Any]:
        """The messages of a call: the settings, then every line without a result."""
        yield self._first
        with self._changed:
            number, again = self._taken, list(self._in_flight.items())
        for earlier, text in again:
            yield self._message(earlier, text)
        while (line := self._line(number, call)) is not None:
            yield self._message(number, line)
            number += 1

    def answer(self, number: int) -> None:
        """Notes the result of a line."""
        with self._changed:
            self._in_flight.pop(number, None)
            self._changed.notify_all()

    def end(self, call: LinesOfCall) -> None:
        with self._changed:
            call.ended = True
            self._changed.notify_all()

    def is_answered(self) -> bool:
        with self._changed:
            return self._all_taken and not self._in_flight

    def _message(self, number: int, text: str) -> Any:
        return type(self._first)(lines=[api.DocumentLine(sequence_id=number, text=text)])

    def _line(self, number: int, call: LinesOfCall) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: call.ended or len(self._in_flight) < MAX_LINES_IN_FLIGHT)
        with self._taking:
            if call.ended:
                return None
            if number == self._taken and not self._all_taken:
                self._take()
            if self.error is not None:
                # gRPC's thread catches only Exception: KeyboardInterrupt would end the thread and
                # leave the call without an end.
                raise RuntimeError("iterator ended") from self.error
            return self._in_flight.get(number)

    def _take(self) -> None:
        try:
            if self._iterator is None:
                self._iterator = iter(self._lines)
            for text in self._iterator:
                check_text(text, f"line {self._taken}")
                with self._changed:
                    self._in_flight[self._taken] = text
                    self._taken += 1
                return
            with self._changed:
                self._all_taken = True
        except BaseException as error:
            self.error = error
