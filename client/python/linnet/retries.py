"""Decides whether, and after which delay, a call that failed is made again. For both clients."""

from __future__ import annotations

import random
import re
import threading
import time
from typing import Any

import grpc

from .errors import LinnetError
from .options import Options

_RETRIED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
# gRPC's messages of a call that was never sent, because there was no connection.
_NOT_SENT = re.compile(
    "failed to connect to all addresses|connections to all backends failing|DNS resolution failed"
)
_UNHEALTHY = "backend unhealthy"  # there are connections, to servers that take no calls now
# The operating system found nobody there. A connection that was reset at once had somebody.
_NOBODY = re.compile("Failed to connect to remote host: (?!.*(Broken pipe|reset by peer))")
# More than a server takes by default: a larger request is refused for good, with a code as if a
# retry could help.
MAX_RETRIED_BYTES = (4 << 20) + (64 << 10)


def _pushback(error: LinnetError) -> float | None:
    """The seconds that the server asks for, by grpc-retry-pushback-ms or RetryInfo; below 0 if it
    forbids a retry, None if it says nothing."""
    call: Any = error.__cause__
    if isinstance(call, grpc.Call | grpc.aio.AioRpcError):
        for key, value in call.trailing_metadata() or ():
            if key == "grpc-retry-pushback-ms":
                return int(value) / 1000 if re.fullmatch("[0-9]{1,10}", str(value)) else -1.0
    return error.retry_delay


class Retries:
    """The calls of one connection together. Thread-safe."""

    MAX_TOKENS, TOKENS_OF_SUCCESS = 100.0, 0.1  # as in deploy/balancers/client_retries.json

    def __init__(self, options: Options):
        self.options = options
        self.reached = False  # there was a connection
        self._lock = threading.Lock()
        self._tokens = self.MAX_TOKENS

    def succeeded(self) -> None:
        self.reached = True
        with self._lock:
            self._tokens = min(self._tokens + self.TOKENS_OF_SUCCESS, self.MAX_TOKENS)

    def may_retry(self) -> bool:
        """Counts a failure. False while most calls fail, so that retries do not add to the load."""
        with self._lock:
            self._tokens = max(self._tokens - 1, 0)
            return self._tokens > self.MAX_TOKENS / 2


class Attempts:
    """The attempts of one call. gRPC's own retries are not used: they lose a retry without a delay,
    and hide a refusal if the server's delay is beyond the deadline. INTERNAL and CANCELLED are not
    retried: a call that made the engine of one server stall or crash would go on to the next."""

    def __init__(self, retries: Retries, timeout: float, *, max_attempts: int | None = None):
        self._retries, self._timeout = retries, timeout
        self._max = retries.options.retry.max_attempts if max_attempts is None else max_attempts
        self._asked_another = False
        self._end: float | None = time.monotonic() + timeout
        self._failed, self._backoff = 0, retries.options.retry.initial_backoff

    @classmethod
    def of_document(cls, retries: Retries) -> Attempts:
        """Counts anew after each result, and has a deadline only while there is none."""
        attempts = cls(retries, retries.options.timeout)
        attempts._end = None
        return attempts

    def left(self) -> float:
        """The seconds until the deadline."""
        return self._timeout if self._end is None else max(self._end - time.monotonic(), 0.0)

    def succeeded(self) -> None:
        self._retries.succeeded()

    def progressed(self) -> None:
        """A result of a document has come."""
        self._retries.reached = True
        self._end = None
        self._failed, self._backoff = 0, self._retries.options.retry.initial_backoff

    def delay(self, error: LinnetError) -> float:
        """The seconds before the next attempt. Raises `error` if there is none, or none before the
        deadline."""
        if self._end is None:
            self._end = time.monotonic() + self._timeout
        delay = self._delay(error) if self._max > 1 else None
        if delay is None or delay >= self.left():
            raise error
        return delay

    def _delay(self, error: LinnetError) -> float | None:
        if error.reason == "DEADLINE_TOO_CLOSE" and self._retries.options.is_balanced():
            # The next server may have a shorter queue. Tried once, so that a deadline that no
            # server can meet does not load all of them.
            asked, self._asked_another = self._asked_another, True
            return None if asked else 0.0
        if error.code not in _RETRIED:
            return None
        if not error.reason and _NOT_SENT.search(error.message) and _UNHEALTHY not in error.message:
            # No server was asked. One that was never there is an error at once; one that was there
            # may be restarting, and the attempt does not count.
            if self._retries.reached:
                return self._next_backoff()
            if _NOBODY.search(error.message):
                return None
        else:
            self._retries.reached = True
        self._failed += 1
        pushback = _pushback(error)
        may_retry = self._retries.may_retry()
        if self._failed >= self._max or not may_retry or (pushback is not None and pushback < 0):
            return None
        return self._next_backoff() if pushback is None else pushback

    def _next_backoff(self) -> float:
        delay = self._backoff * random.uniform(0.8, 1.2)
        self._backoff = min(2 * self._backoff, self._retries.options.retry.max_backoff)
        return delay
