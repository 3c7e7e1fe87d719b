"""A minimal HTTP/2 client for tests, which may violate the protocol on purpose."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS = 4, 3
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
    return head + payload


def header_block(path: str, **more: str) -> bytes:
    """The headers of a call as literals without indexing: RFC 7541, 6.2.2."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        **more,
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return b"".join(
        b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in pairs
    )


def message_prefix(length: int) -> bytes:
    """The prefix of a gRPC message: a compression flag and the length."""
    return b"\0" + struct.pack(">I", length)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def connect(address: str, source: str = "127.0.0.1") -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))


def is_closed(connection: socket.socket) -> bool:
    """Reads until the other side closes the connection."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


class ConnectionEnded(EOFError):
    """The server has closed the connection before the awaited frame."""


class RawClient:
    """One connection. `window` is the flow-control window of each answer in bytes."""

    def __init__(
        self,
        address: str,
        window: int = 65535,
        answers_pings: bool = True,
        source: str = "127.0.0.1",
    ):
        self.socket = connect(address, source)
        self.answers_pings = answers_pings
        self._next_stream = 1
        self.socket.sendall(PREFACE)
        self.send(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))

    def send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self.socket.sendall(frame(kind, flags, stream, payload))

    def call(self, method: str, message: bytes, **headers: str) -> int:
        """Sends a unary call and returns its stream."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        block = header_block(f"/linnet.v1.TextService/{method}", **headers)
        self.send(HEADERS, END_HEADERS, stream, block)
        self.send(DATA, END_STREAM, stream, message_prefix(len(message)) + message)
        return stream

    def frames(self) -> Iterator[Frame]:
        """Yields frames until the server closes the connection."""
        while head := self._read(9):
            length = int.from_bytes(head[:3], "big")
            payload = self._read(length) if length else b""
            arrived = Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
            if arrived.kind == SETTINGS and not arrived.flags & ACK:
                self.send(SETTINGS, ACK, 0, b"")
            if arrived.kind == PING and not arrived.flags & ACK and self.answers_pings:
                self.send(PING, ACK, 0, payload)
            yield arrived

    def settings(self) -> dict[int, int]:
        """Reads the server's settings, which come first."""
        frame = next(self.frames())
        assert frame.kind == SETTINGS
        pairs = struct.iter_unpack(">HI", frame.payload)
        return dict(pairs)

    def wait_for(self, kind: int, stream: int = 0) -> Frame:
        """Skips frames until one of that kind, of any stream if 0. Raises ConnectionEnded with
        those that came instead."""
        skipped = []
        for frame in self.frames():
            if frame.kind == kind and (not stream or frame.stream == stream):
                return frame
            skipped.append(frame)
        raise ConnectionEnded(f"no frame {kind} of stream {stream}, but {skipped[-10:]}")

    def close(self) -> None:
        self.socket.close()

    def _read(self, size: int) -> bytes:
        """Reads exactly that many bytes; b"" at the end."""
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                return b""
            if not more:
                return b""
            data += more
        return data
