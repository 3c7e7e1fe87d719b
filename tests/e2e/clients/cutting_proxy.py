"""A TCP proxy that resets a connection after a given number of HTTP/2 frames."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

PREFACE = 24  # bytes that a client sends before its first frame


class _Connection:
    """Forwards the frames of both directions, and resets both sides after `frames` of them, or of
    those `of_server`."""

    def __init__(
        self, sides: tuple[socket.socket, socket.socket], frames: int | None, of_server: bool
    ):
        self._sides, self._frames, self._of_server = sides, frames, of_server
        self._lock = threading.Lock()
        self.forwarded = 0
        client, server = sides
        for source, target, first in ((client, server, PREFACE), (server, client, 0)):
            threading.Thread(target=self._pump, args=(source, target, first), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, first: int) -> None:
        with suppress(OSError):
            read = source.makefile("rb")
            if first:
                target.sendall(read.read(first))
            while len(header := read.read(9)) == 9:
                payload = read.read(int.from_bytes(header[:3], "big"))
                with self._lock:  # frames are counted in the order in which they are sent
                    if self.forwarded == self._frames:
                        break
                    target.sendall(header + payload)
                    self.forwarded += not (first and self._of_server)
                    if self.forwarded == self._frames:
                        break
        self.reset()

    def reset(self) -> None:
        for side in self._sides:
            with suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.shutdown(socket.SHUT_RDWR)
                side.close()


class CuttingProxy:
    """Connection number n, from 0, is reset after `cut(n)` frames; None lets it live."""

    def __init__(
        self, server: str, cut: Callable[[int], int | None], *, frames_of_server: bool = False
    ):
        host, port = server.rsplit(":", 1)
        self._server = (host, int(port))
        self._cut, self._of_server = cut, frames_of_server
        self.connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                sides = (client, socket.create_connection(self._server))
                for side in sides:
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                cut = self._cut(len(self.connections))
                self.connections.append(_Connection(sides, cut, self._of_server))

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        for connection in self.connections:
            connection.reset()
