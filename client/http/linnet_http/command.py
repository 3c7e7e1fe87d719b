"""The program linnet-http: its processes and their end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from .options import Options, parse

_RESTART_SECONDS = 1.0
_PARENT_SECONDS = 1.0  # between the checks whether the parent lives
_DRAIN_SECONDS = 10.0
_TRIM_SECONDS = 60.0
_STOPS = (signal.SIGTERM, signal.SIGINT)


class _LogLine(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _bind(listen: str) -> tuple[socket.socket, str]:
    """The listening socket, and its address. Exits with status 2 if it cannot be had."""
    try:
        if listen.startswith("unix:"):
            path = listen.removeprefix("unix:")
            with suppress(FileNotFoundError):
                os.unlink(path)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(1024)
            return listener, listen
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit():
            raise OSError("it must be HOST:PORT or unix:PATH")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        listener = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=1024)
        return listener, f"{host}:{listener.getsockname()[1]}"
    except OSError as error:
        print(f"error: cannot listen on {listen}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None


def _tls(options: Options) -> ssl.SSLContext | None:
    if options.tls_certificate is None or options.tls_key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(options.tls_certificate, options.tls_key)
    except OSError as error:
        print(f"error: cannot use {options.tls_certificate}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    return context


def _work(
    options: Options, listener: socket.socket, tls: ssl.SSLContext | None, parent: int, started: int
) -> None:
    """The life of one process that answers requests; it closes the pipe `started` when it can. gRPC
    starts here: it does not survive a fork."""
    from aiohttp import web

    from . import connection
    from .app import make
    from .glossaries import Glossaries
    from .loop import Loop

    connection.use()
    app = make(options, Glossaries(options.glossaries))
    app.cleanup_ctx.append(lambda _: _beside(_end_with, parent))
    app.cleanup_ctx.append(lambda _: _beside(_trim_memory))

    async def tell(_: web.Application) -> None:
        # The objects of the start live until the end. Without them collections are shorter, and a
        # request takes 8 % less processor time.
        gc.collect()
        gc.freeze()
        os.write(started, b"1")
        os.close(started)

    app.on_startup.append(tell)
    # aiohttp 3.14 counts shutdown_timeout twice.
    web.run_app(
        app,
        sock=listener,
        ssl_context=tls,
        handler_cancellation=True,
        keepalive_timeout=connection.KEEP_ALIVE_SECONDS,
        shutdown_timeout=_DRAIN_SECONDS / 2,
        access_log=None,
        print=None,
        loop=Loop(),
    )


async def _beside(
    work: Callable[..., Coroutine[Any, Any, None]], *given: Any
) -> AsyncIterator[None]:
    """Does this work as long as the application runs."""
    task = asyncio.create_task(work(*given))
    yield
    task.cancel()


async def _end_with(parent: int) -> None:
    """Ends this process when the one that started it was killed: nobody else would."""
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


async def _trim_memory() -> None:
    """Returns free memory to the system every minute. glibc returns by itself only what lies behind
    the last block in use, and large bodies and files leave much that does not."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    while trim is not None:
        await asyncio.sleep(_TRIM_SECONDS)
        trim(0)


class _Workers:
    """The processes. One that dies is replaced."""

    def __init__(self, options: Options, listener: socket.socket, tls: ssl.SSLContext | None):
        self._options, self._listener, self._tls = options, listener, tls
        self._running: set[int] = set()
        self._stopping = False

    def run(self, ready: str) -> None:
        """Runs until it is stopped; prints `ready` once all processes answer. Raises SystemExit if
        one of them cannot start."""
        from .metrics import forget

        for number in _STOPS:
            signal.signal(number, self._stop)
        if all(self._start() for _ in range(self._options.workers)):
            print(ready, flush=True)
        elif not self._stopping:
            self._stop()
            raise SystemExit("error: a worker could not start; the log says why")
        while self._running:
            try:
                gone, status = os.wait()
            except ChildProcessError:
                break
            self._running.discard(gone)
            forget(gone)
            if not self._stopping:
                logging.getLogger("linnet_http").error(
                    "a worker ended", extra={"fields": {"status": status}}
                )
                time.sleep(_RESTART_SECONDS)
                self._start()

    def _start(self) -> bool:
        """Starts a process. False if it ends before it can answer."""
        parent = os.getpid()
        answers, started = os.pipe()
        # A stop waits until the child is known, and has no handler of its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        child = os.fork()
        if child:
            self._running.add(child)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
            os.close(started)
            with os.fdopen(answers, "rb") as pipe:
                return pipe.read() == b"1"
        for number in _STOPS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        status = 1
        try:
            _work(self._options, self._listener, self._tls, parent, started)
            status = 0
        except Exception:
            logging.getLogger("linnet_http").exception("a worker failed")
        finally:
            os._exit(status)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        for child in self._running:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(_LogLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    from . import metrics  # its folder is made before the fork

    tls, (listener, address) = _tls(options), _bind(options.listen)
    scheme = "https" if tls else "http"
    try:
        _Workers(options, listener, tls).run(f"ready {scheme}={address}")
    finally:
        metrics.remove_folder()


if __name__ == "__main__":
    main()
