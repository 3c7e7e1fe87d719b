"""Requests whose head cannot be read, which aiohttp answers before any handler of the application.

aiohttp 3.14 repeats the part that it cannot read in its answer and, with a traceback, in the log.
"""

from __future__ import annotations

import json
import logging

from aiohttp import http_exceptions, web, web_server

from . import metrics

log = logging.getLogger("linnet_http")
KEEP_ALIVE_SECONDS = 75.0  # also the time in which a head must arrive


class Connection(web.RequestHandler):
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status == 500:  # of a handler; _guard in app.py leaves none but broken connections
            return super().handle_error(request, status, exc, message)
        if exc is not None:
            exc.__traceback__ = None  # its frames hold it, and what was read, until a collection
        text = "the head of the request is not HTTP"
        if isinstance(exc, http_exceptions.LineTooLong):
            status = 431
            text = (
                f"the head of the request has a line of more than {self.max_line_size} bytes: send "
                "long texts in the body of a POST"
            )
        elif isinstance(exc, http_exceptions.ContentEncodingError):
            status = 415
            text = "the Content-Encoding is not supported: use gzip or deflate, or none"
        elif "headers" in (message or "").lower() and "many" in (message or "").lower():
            status = 431
            text = f"the request has more than {self.max_headers} headers"
        metrics.REQUESTS.labels("other", str(status)).inc()
        log.info("request", extra={"fields": {"path": "unknown", "status": status}})
        # Which face it is for is not known: `error` and `message` are what most of them have.
        response = web.Response(
            status=status,
            text=json.dumps({"code": status, "error": text, "message": text}),
            content_type="application/json",
            headers={"Cache-Control": "no-store"},
        )
        response.force_close()
        return response


def use() -> None:
    """Makes aiohttp's servers use this class: it has no parameter for that."""
    web_server.RequestHandler = Connection  # type: ignore[attr-defined]
