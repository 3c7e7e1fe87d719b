"""A server that answers a text with "[de] TEXT" and counts what it was asked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

Trailers = tuple[tuple[str, str | bytes], ...]
Refusal = tuple[grpc.StatusCode, Trailers]


class EchoServer:
    """`refuse(n)` returns the error of attempt number n, from 1, or None. `seconds` are those that
    a text takes. With `hold`, calls wait until `released`."""

    def __init__(
        self,
        linnet,
        refuse: Callable[[int], Refusal | None] = lambda attempt: None,
        *,
        address: str = "127.0.0.1:0",
        seconds: float = 0,
        hold: bool = False,
        options: tuple[tuple[str, int], ...] = (),
    ):
        from linnet.v1 import text_service_pb2, text_service_pb2_grpc

        echo, lock = self, threading.Lock()
        self.attempts: list[float] = []  # when each began
        self.request_ids: set[str] = set()
        self.texts: Counter[str] = Counter()  # how often each was asked for
        self.released = threading.Event()

        def begin(context) -> None:
            with lock:
                echo.attempts.append(time.monotonic())
                attempt = len(echo.attempts)
                echo.request_ids.add(dict(context.invocation_metadata()).get("x-request-id", ""))
            if refusal := refuse(attempt):
                context.set_trailing_metadata(refusal[1])
                context.abort(refusal[0], "as told")
            if hold:
                echo.released.wait(60)

        def answer(contents) -> object:
            with lock:
                echo.texts.update(contents)
            time.sleep(seconds * len(contents))
            return linnet.TranslateResponse(
                translations=[{"text": f"[de] {text}"} for text in contents]
            )

        class Service(text_service_pb2_grpc.TextServiceServicer):
            def Translate(self, request, context):
                begin(context)
                return answer(request.contents)

            def StreamTranslate(self, request, context):
                begin(context)
                response = answer(request.request.contents)
                for number, translation in enumerate(response.translations):
                    part = linnet.TextPart(content_index=number, text=translation.text)
                    yield text_service_pb2.StreamTranslateResponse(part=part)
                yield text_service_pb2.StreamTranslateResponse(response=response)

            def TranslateDocument(self, requests: Iterator, context):
                begin(context)
                for line in (line for request in requests for line in request.lines):
                    yield text_service_pb2.TranslateDocumentResponse(
                        sequence_id=line.sequence_id, response=answer([line.text])
                    )

        checks = health.HealthServicer()
        checks.set("linnet.v1.TextService", health_pb2.HealthCheckResponse.SERVING)
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=options)
        text_service_pb2_grpc.add_TextServiceServicer_to_server(Service(), self.server)
        health_pb2_grpc.add_HealthServicer_to_server(checks, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port(address)}"
        self.server.start()

    def stop(self) -> None:
        """Cuts every call and closes the port."""
        stopped = self.server.stop(None)
        self.released.set()
        stopped.wait()
