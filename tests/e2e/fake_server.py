"""A server of the package `linnet`'s own stubs that does what a real one does rarely."""

from __future__ import annotations

import threading
import time
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


class FakeServer:
    """Answers call number n, from 1, with the error that `behave(n)` returns, or with success."""

    def __init__(
        self, linnet, behave=lambda number: None, address: str = "127.0.0.1:0", options=()
    ):
        from linnet.v1 import text_service_pb2_grpc

        fake = self
        self.calls: list[float] = []
        self.tokens: list[str] = []
        self.request_ids: list[str] = []
        self.forwarded: list[str] = []
        self.parts = 0  # of a stream, each of which waits for `released`
        self.cut = False  # it fails after its parts
        self.ended = threading.Event()  # a stream has ended, in whichever way
        self.released = threading.Event()
        self.holds_documents = False  # it answers none of their lines that have a text
        self.held = threading.Event()  # it has got such a line
        self.behave, self.linnet = behave, linnet
        self.reply = linnet.TranslateResponse()  # to Translate
        self.models = linnet.ListModelsResponse()

        class Service(text_service_pb2_grpc.TextServiceServicer):
            def Translate(self, request, context):
                fake.take(context)
                return fake.reply

            def ListModels(self, request, context):
                return fake.models

            def TranslateDocument(self, requests, context):
                fake.take(context)
                answer = linnet.v1.text_service_pb2.TranslateDocumentResponse
                for line in (line for request in requests for line in request.lines):
                    if fake.holds_documents and line.text:
                        context.add_callback(fake.ended.set)
                        fake.held.set()
                        fake.released.wait(300)
                    yield answer(sequence_id=line.sequence_id, response=fake.reply)

            def StreamTranslate(self, request, context):
                context.add_callback(fake.ended.set)
                fake.take(context)
                answer = linnet.v1.text_service_pb2.StreamTranslateResponse
                for _ in range(fake.parts):
                    yield answer(part=linnet.TextPart(text="a"))
                    fake.released.wait(300)
                if fake.cut:
                    context.abort(grpc.StatusCode.INTERNAL, "as told")
                yield answer(response=linnet.TranslateResponse())

        self.health = health.HealthServicer()
        self.server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
        text_service_pb2_grpc.add_TextServiceServicer_to_server(Service(), self.server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        self.set_serving(True)
        self.address = f"127.0.0.1:{self.server.add_insecure_port(address)}"
        self.server.start()

    def take(self, context) -> None:
        self.calls.append(time.monotonic())
        headers = dict(context.invocation_metadata())
        self.tokens.append(headers.get("authorization", ""))
        self.request_ids.append(headers.get("x-request-id", ""))
        self.forwarded.append(headers.get("x-forwarded-for", ""))
        error = self.behave(len(self.calls))
        if error:
            code, trailers = error
            context.set_trailing_metadata(trailers)
            context.abort(code, "as told")

    def set_serving(self, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING
        if not serving:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        self.health.set("linnet.v1.TextService", status)
