"""Attacks by peers, each of which tries to use as much of a server as possible.

They send raw HTTP/2 to a server on this machine that the caller has started: many connections at
once from one thread, for a bounded time. All but one are unauthenticated: a test asserts that they
are closed in time; the bench tests/bench/security/unauthenticated.py measures their cost.
"""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, repeat

from http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    header_block,
    message_prefix,
)

CONTINUATION = 9
TRANSLATE = "/linnet.v1.TextService/Translate"
LIST_MODELS = "/linnet.v1.TextService/ListModels"
HEALTH = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
HELLO = PREFACE + frame(SETTINGS, 0, 0, b"")
BURST = 256 << 10  # bytes handed to a socket at once
SMALL = 16384  # max bytes of a frame

# The pieces that an attacker sends; a float is seconds of silence.
Script = Iterator[bytes | float]


def headers(stream: int, path: str = TRANSLATE, flags: int = END_HEADERS, **more: str) -> bytes:
    return frame(HEADERS, flags, stream, header_block(path, **more))


def idle() -> Script:
    yield HELLO


def unfinished_header() -> Script:
    """One header field of 8 MB in frames of 16 KiB."""
    yield HELLO
    name = b"\0\1x\x7f" + bytes([0x81, 0xA4, 0xE8, 0x03])  # a length of 8 MB: RFC 7541, 5.1
    yield frame(HEADERS, 0, 1, header_block(TRANSLATE) + name)
    yield from repeat(frame(CONTINUATION, 0, 1, b"a" * SMALL), 500)


def continuation_flood() -> Script:
    """Endless small header fields, and settings that are never acknowledged."""
    yield HELLO
    yield frame(HEADERS, 0, 1, header_block(TRANSLATE))
    yield from repeat(frame(CONTINUATION, 0, 1, b"\0\1x\1y" * (SMALL // 5)))


def indexed_flood() -> Script:
    """The same with fields of one byte, on a stream whose headers the server ignores."""
    yield HELLO
    yield frame(HEADERS, 0, 2, header_block(TRANSLATE))  # clients use odd numbers
    yield from repeat(frame(CONTINUATION, 0, 2, b"\x83" * SMALL))


def unfinished_messages() -> Script:
    """As many calls as the settings allow, each with a message of 4 MB without its last byte; the
    attacker fills every window that the server opens."""
    yield HELLO
    for stream in range(1, 200, 2):
        yield headers(stream)
        yield frame(DATA, 0, stream, message_prefix(4_000_000) + b"a" * 500)
    yield from repeat(b"")  # Attacker fills the windows


def known_unfinished_messages(token: str, seconds: float) -> Script:
    """The same after a complete call, which makes the connection a known one: 25 calls a second for
    `seconds`, also when earlier ones have ended."""
    authorization = f"Bearer {token}"
    yield HELLO
    yield headers(1, LIST_MODELS, authorization=authorization)
    yield frame(DATA, END_STREAM, 1, message_prefix(0))
    yield 1.0
    end = time.monotonic() + seconds
    for first in count(3, 50):
        for stream in range(first, first + 50, 2):
            yield headers(stream, authorization=authorization)
            yield frame(DATA, 0, stream, message_prefix(4_000_000) + b"a" * 500)
        again = time.monotonic() + 1
        while time.monotonic() < again:
            yield b""
        if again >= end:
            break
    yield from repeat(b"")


def known_calls_without_message(token: str, **more: str) -> Script:
    """98 calls without a message, 14 after each complete call: that makes the connection a known
    one, and lets it send as many frames again."""
    more["authorization"] = f"Bearer {token}"
    yield from _known_calls(token, lambda stream: headers(stream, **more))


def known_watches(token: str) -> Script:
    """98 complete calls that do not end, in the same way."""
    check = message_prefix(0)
    yield from _known_calls(
        token, lambda stream: headers(stream, WATCH) + frame(DATA, END_STREAM, stream, check)
    )


def endless_message() -> Script:
    """A message of 4 GB."""
    yield HELLO + headers(1) + frame(DATA, 0, 1, message_prefix(0xFFFFFFFF))
    yield from repeat(b"")


def many_streams() -> Script:
    """A thousand calls without a message, more than the settings allow."""
    yield HELLO
    for stream in range(1, 2000, 2):
        yield headers(stream)


def calls_without_message() -> Script:
    """As many calls as the settings allow, without a message."""
    yield HELLO
    for stream in range(1, 200, 2):
        yield headers(stream)


def calls_with_long_headers() -> Script:
    """11 KB each, which the server allows."""
    yield HELLO
    more = {f"x-{i:03}": "a" * 100 for i in range(100)}
    for stream in range(1, 200, 2):
        yield headers(stream, **more)


def rapid_reset() -> Script:
    yield HELLO
    yield from _calls_then(lambda stream: frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


def unknown_methods() -> Script:
    yield HELLO
    yield from _calls_then(lambda stream: b"", "/no.such.Service/Method", END_STREAM)


def health_checks() -> Script:
    """Complete calls that need no token."""
    yield HELLO
    yield from _calls_then(
        lambda stream: frame(DATA, END_STREAM, stream, message_prefix(0)), HEALTH
    )


def wrong_tokens() -> Script:
    yield HELLO
    yield from _calls_then(
        lambda stream: b"", TRANSLATE, 0, authorization="Bearer no-such-token-0123456789"
    )


def ping_flood() -> Script:
    yield HELLO
    yield from repeat(frame(PING, 0, 0, b"12345678") * 100)


def settings_flood() -> Script:
    yield HELLO
    yield from repeat(frame(SETTINGS, 0, 0, b"") * 100)


def priority_flood() -> Script:
    yield HELLO
    yield from repeat(frame(2, 0, 1, b"\0\0\0\0\1") * 100)


def empty_data_flood() -> Script:
    yield HELLO + headers(1)
    yield from repeat(frame(DATA, 0, 1, b"") * 100)


def data_after_the_end() -> Script:
    """Frames that the server skips: of a stream that its peer has ended."""
    yield HELLO + headers(1)
    yield from repeat(frame(DATA, END_STREAM, 1, b"") * 100)


def one_byte_a_second() -> Script:
    yield HELLO + headers(1)
    for byte in message_prefix(1000) + b"a" * 1000:
        yield frame(DATA, 0, 1, bytes([byte]))
        yield 1.0


def one_byte_of_the_preface() -> Script:
    for byte in HELLO:
        yield bytes([byte])
        yield 1.0


ATTACKS: dict[str, Callable[[], Script]] = {
    "unfinished header": unfinished_header,
    "CONTINUATION flood": continuation_flood,
    "CONTINUATION flood, skipped": indexed_flood,
    "unfinished messages": unfinished_messages,
    "endless message": endless_message,
    "1000 streams": many_streams,
    "100 streams": calls_without_message,
    "100 streams, long headers": calls_with_long_headers,
    "rapid reset": rapid_reset,
    "unknown methods": unknown_methods,
    "PING flood": ping_flood,
    "SETTINGS flood": settings_flood,
    "PRIORITY flood": priority_flood,
    "empty DATA flood": empty_data_flood,
    "DATA after the end": data_after_the_end,
    "one byte a second": one_byte_a_second,
    "preface byte by byte": one_byte_of_the_preface,
}
WITH_TOKENS = {"health checks": health_checks, "wrong tokens": wrong_tokens}


def _known_calls(token: str, begun: Callable[[int], bytes]) -> Script:
    yield HELLO
    for first in range(1, 7 * 30, 30):
        yield headers(first, LIST_MODELS, authorization=f"Bearer {token}")
        yield frame(DATA, END_STREAM, first, message_prefix(0))
        yield 0.3
        for stream in range(first + 2, first + 30, 2):
            yield begun(stream)


def _calls_then(
    ending: Callable[[int], bytes], path: str = TRANSLATE, flags: int = 0, **more: str
) -> Script:
    for first in count(1, 40):
        yield b"".join(
            headers(stream, path, END_HEADERS | flags, **more) + ending(stream)
            for stream in range(first, first + 40, 2)
        )


class Attacker:
    """One connection that sends its script and then, if that asks for it, fills the windows.

    A server resets streams that use a window which its peer has not acknowledged.
    """

    def __init__(self, connection: socket.socket, script: Script, acknowledges: bool = False):
        self.socket = connection
        self.script = script
        self.acknowledges = acknowledges  # the settings of the server
        self.began = time.monotonic()
        self.closed: float | None = None  # seconds after it began
        self.sent = 0
        self._fills = False  # the windows
        self._windows = {0: 65535}
        self._left: dict[int, int] = {}  # by stream: bytes of its message, without the last one
        self._initial = 65535
        self._settings = 0  # that are not acknowledged yet
        self._out = b""
        self._in = b""
        self._wakes = 0.0
        self._done = False

    def step(self, now: float) -> None:
        """Sends and reads as much as possible without blocking."""
        try:
            self._read()
            self._send(now)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return
            self.close()

    def close(self) -> None:
        if self.closed is None:
            self.closed = time.monotonic() - self.began
            self.socket.close()

    def _send(self, now: float) -> None:
        budget = BURST
        while budget > 0 and now >= self._wakes:
            while not self._out and not self._done and now >= self._wakes:
                piece = next(self.script, None)
                if piece is None:
                    self._done = True
                elif isinstance(piece, float):
                    self._wakes = now + piece
                elif piece:
                    self._note_streams(piece)
                    self._out = piece
                else:
                    self._fills = True
                    break
            if not self._out and self._settings > 0:
                self._out = frame(SETTINGS, ACK, 0, b"")
                self._settings -= 1
            if not self._out and self._fills:
                self._out = self._data()
            if not self._out:
                return
            sent = self.socket.send(self._out)
            self._out = self._out[sent:]
            self.sent += sent
            budget -= sent

    def _note_streams(self, piece: bytes) -> None:
        at = 0
        while at + 9 <= len(piece) and not piece.startswith(b"PRI"):
            length = int.from_bytes(piece[at : at + 3], "big")
            stream = int.from_bytes(piece[at + 5 : at + 9], "big")
            if piece[at + 3] == HEADERS:
                self._windows.setdefault(stream, self._initial)
            if piece[at + 3] == DATA:
                self._windows[0] -= length
                self._windows[stream] = self._windows.get(stream, self._initial) - length
                if stream not in self._left and length >= 5:
                    message = int.from_bytes(piece[at + 10 : at + 14], "big")
                    self._left[stream] = message + 5 - 1
                self._left[stream] = self._left.get(stream, 0) - length
            at += 9 + length

    def _data(self) -> bytes:
        """A frame that fills the window of a stream, and leaves its message unfinished."""
        for stream, window in self._windows.items():
            size = min(window, self._windows[0], SMALL, self._left.get(stream, 0))
            if stream and size > 0:
                self._left[stream] -= size
                self._windows[stream] -= size
                self._windows[0] -= size
                return frame(DATA, 0, stream, b"a" * size)
        return b""

    def _read(self) -> None:
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if not data:
                return self.close()
            self._in += data
        while len(self._in) >= 9:
            length = int.from_bytes(self._in[:3], "big")
            if len(self._in) < 9 + length:
                break
            kind, flags = self._in[3], self._in[4]
            stream, payload = int.from_bytes(self._in[5:9], "big"), self._in[9 : 9 + length]
            self._in = self._in[9 + length :]
            if kind == WINDOW_UPDATE and stream in self._windows:
                self._windows[stream] += int.from_bytes(payload, "big")
            elif kind == RST_STREAM:
                self._windows.pop(stream, None)
            elif kind == SETTINGS and not flags & ACK:
                self._settings += self.acknowledges
                pairs = dict(struct.iter_unpack(">HI", payload))
                if INITIAL_WINDOW_SIZE in pairs:
                    change = pairs[INITIAL_WINDOW_SIZE] - self._initial
                    self._initial += change
                    for each in self._windows:
                        self._windows[each] += change if each else 0


@dataclass
class Outcome:
    """The result of an attack."""

    open: int  # connections that are open at the end
    refused: int  # by the kernel or the server while connecting
    sent: int  # bytes, by all
    last_closed: float  # seconds after the start; 0 if none was closed
    samples: list[float] = field(default_factory=list)  # the results of `sample`


def attack(
    address: str,
    script: Callable[[], Script],
    connections: int,
    seconds: float,
    sample: Callable[[], float] = lambda: 0.0,
    every: float = 0.1,
    acknowledges: bool = False,
) -> Outcome:
    """Attacks for `seconds`, or until all connections are closed, and never blocks on the server.
    Calls `sample` every `every` seconds."""
    host, port = address.rsplit(":", 1)
    attackers = []
    refused = 0
    for _ in range(connections):
        try:
            connection = socket.create_connection((host, int(port)), timeout=10)
        except OSError:
            refused += 1
            continue
        connection.setblocking(False)
        attackers.append(Attacker(connection, script(), acknowledges))
    outcome = Outcome(0, refused, 0, 0.0)
    end = time.monotonic() + seconds
    due = 0.0
    while (now := time.monotonic()) < end:
        if now >= due:
            outcome.samples.append(sample())
            due = now + every
        alive = [attacker for attacker in attackers if attacker.closed is None]
        if not alive:
            break
        before = sum(attacker.sent for attacker in alive)
        for attacker in alive:
            attacker.step(now)
        if before == sum(attacker.sent for attacker in alive):
            time.sleep(0.005)
    outcome.open = sum(attacker.closed is None for attacker in attackers)
    outcome.sent = sum(attacker.sent for attacker in attackers)
    outcome.last_closed = max((attacker.closed or 0.0 for attacker in attackers), default=0.0)
    for attacker in attackers:
        attacker.close()
    return outcome
