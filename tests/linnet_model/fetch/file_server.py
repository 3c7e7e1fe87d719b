"""A local HTTP server for files, with ranges, and with the faults that a test wants."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FileServer:
    """Serves `files`, by path. `requests` has the path and the range of each request.

    cut[path]: the connection ends after so many bytes, once for each entry of the list.
    status[path]: this status in place of the file, once for each entry.
    redirects[path]: where a path leads. `ranges`: whether a part can be requested.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, list[int]] = {}
        self.status: dict[str, list[int]] = {}
        self.redirects: dict[str, str] = {}
        self.ranges = True
        self.tags = True
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    def add(self, path: str, content: bytes) -> str:
        self.files[path] = content
        return f"{self.url}/{path}"


def handler_of(server: FileServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.lstrip("/").partition("?")[0]
            server.requests.append((path, self.headers.get("Range", "")))
            if path in server.redirects:
                self.answer(302, b"", {"Location": server.redirects[path]})
            elif server.status.get(path):
                self.answer(server.status[path].pop(0), b"no", {})
            elif path not in server.files:
                self.answer(404, b"no such file", {})
            else:
                self.send_file(path, server.files[path])

        def send_file(self, path: str, content: bytes) -> None:
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            headers = {**({"ETag": tag} if server.tags else {}), **server.headers}
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            same = self.headers.get("If-Range", tag) == tag
            status, body = 200, content
            if wanted and same and server.ranges:
                start = int(wanted[1])
                if start >= len(content):
                    return self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                status, body = 206, content[start:]
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.answer(status, body, headers, server.cut.get(path))

        def answer(
            self, status: int, body: bytes, headers: dict[str, str], cut: list[int] | None = None
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if cut:
                self.wfile.write(body[: cut.pop(0)])
                self.close_connection = True
            else:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class Threads(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that has read enough closes its connection."""


@contextmanager
def serving() -> Iterator[FileServer]:
    server = FileServer()
    http_server = Threads(("127.0.0.1", 0), handler_of(server))
    server.url = f"http://127.0.0.1:{http_server.server_port}"
    thread = threading.Thread(target=http_server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http_server.shutdown()
        http_server.server_close()
        thread.join()
