"""Texts that the package `linnet` sends in several calls, to a server with little room."""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2


class LittleServer:
    """Answers in capitals. Refuses calls of more than `lines` lines, and all but `room` at once."""

    def __init__(self, lines: int, room: int):
        from linnet.v1 import text_service_pb2 as messages
        from linnet.v1 import text_service_pb2_grpc

        little = self
        self.sizes: list[int] = []  # lines of the calls that were answered
        self.refused = 0
        self.languages: list[str] = []  # of the sources of these calls
        self.answers_too_few = False
        self.expensive = ""  # a text that is too large alone
        self.running = 0
        self.lock = threading.Lock()

        class Service(text_service_pb2_grpc.TextServiceServicer):
            def Translate(self, request, context):
                count = sum(text.count("\n") + 1 for text in request.contents)
                if count > lines or little.expensive in request.contents:
                    code = grpc.StatusCode.INVALID_ARGUMENT
                    refuse(context, code, "CALL_TOO_LARGE", "contents")
                with little.lock:
                    little.running += 1
                    refused = little.running > room
                    little.refused += refused
                try:
                    if refused:
                        refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARE_USED")
                    if "wrong" in request.contents:
                        wrong = request.contents[:].index("wrong")
                        refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "", f"contents[{wrong}]")
                    threading.Event().wait(0.05)
                    little.sizes.append(count)
                    little.languages.append(request.source_language_code)
                finally:
                    with little.lock:
                        little.running -= 1
                answers = [messages.Translation(text=text.upper()) for text in request.contents]
                reply = messages.TranslateResponse(translations=answers[little.answers_too_few :])
                if not request.source_language_code:
                    reply.detected_language.language_code = "en"
                return reply

        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        text_service_pb2_grpc.add_TextServiceServicer_to_server(Service(), self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()


def refuse(context, code, reason: str, field: str = "") -> None:
    status = status_pb2.Status(code=code.value[0], message=f"{field} {reason}")
    details = error_details_pb2.ErrorInfo(reason=reason, domain="linnet")
    violation = error_details_pb2.BadRequest.FieldViolation(field=field)
    for detail in (details, error_details_pb2.BadRequest(field_violations=[violation])):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    details_of_status = ("grpc-status-details-bin", status.SerializeToString())
    context.set_trailing_metadata((details_of_status, ("grpc-retry-pushback-ms", "-1")))
    context.abort(code, status.message)


@pytest.fixture
def little(linnet):
    servers = []

    def make(lines: int, room: int = 8) -> LittleServer:
        servers.append(LittleServer(lines, room))
        return servers[-1]

    yield make
    for each in servers:
        each.server.stop(None)


@pytest.fixture(params=["blocking", "asyncio"])
def translate(linnet, request):
    def blocking(server: LittleServer, texts):
        with linnet.Client(server.address) as client:
            return client.translate(texts, to="de", source="en")

    async def asynchronous(server: LittleServer, texts):
        async with linnet.AsyncClient(server.address) as client:
            return await client.translate(texts, to="de", source="en")

    if request.param == "blocking":
        return blocking
    return lambda server, texts: asyncio.run(asynchronous(server, texts))


def test_call_that_is_too_large_is_made_in_smaller_ones(little, translate):
    server = little(lines=10)
    texts = ["a\nb\nc\n" * 7, "d", " ", *["e"] * 30, "\n".join("fghijklm")]
    assert translate(server, texts) == [text.upper() for text in texts]
    assert max(server.sizes) <= 10
    assert translate(server, texts[0]) == texts[0].upper()


@pytest.mark.parametrize("text", ["a\n" * 12, ["a"] * 12], ids=["a text", "a list"])
def test_calls_of_one_text_have_the_language_of_the_first(little, linnet, text):
    server = little(lines=3)

    async def asynchronous() -> str | list[str]:
        async with linnet.AsyncClient(server.address) as client:
            return await client.translate(text, to="de")

    def blocking() -> str | list[str]:
        with linnet.Client(server.address) as client:
            return client.translate(text, to="de")

    wanted = text.upper() if isinstance(text, str) else [it.upper() for it in text]
    for translated in (blocking, lambda: asyncio.run(asynchronous())):
        server.languages.clear()
        assert translated() == wanted
        answered = server.languages
        assert answered[0] == "", "the language is detected"
        # Each text of a list may be in a language of its own.
        assert set(answered[1:]) == {"en" if isinstance(text, str) else ""}


def test_line_that_is_too_large_alone_is_an_error(little, translate, linnet):
    server = little(lines=0)
    with pytest.raises(linnet.LinnetError, match="CALL_TOO_LARGE"):
        translate(server, ["a", "b\nc"])


def test_call_of_one_text_that_is_too_large_names_the_text(little, translate, linnet):
    server = little(lines=1)
    server.expensive = "dear"
    with pytest.raises(linnet.LinnetError) as raised:
        translate(server, ["a", "b", "dear", "c"])
    assert raised.value.field == "contents[2]"
    assert raised.value.message == "contents[2] CALL_TOO_LARGE"


def test_reply_that_is_too_large_is_no_reason_for_smaller_calls(little, linnet):
    server = little(lines=100)
    options = linnet.Options(server.address, max_reply_bytes=64)

    def blocking() -> None:
        with linnet.Client(options) as client:
            client.translate(["a" * 20] * 8, to="de", source="en")

    async def asynchronous() -> None:
        async with linnet.AsyncClient(options) as client:
            await client.translate(["a" * 20] * 8, to="de", source="en")

    for translate in (blocking, lambda: asyncio.run(asynchronous())):
        with pytest.raises(linnet.LinnetError, match="raise max_reply_bytes") as raised:
            translate()
        assert raised.value.code == grpc.StatusCode.OUT_OF_RANGE
        assert raised.value.reason == "REPLY_TOO_LARGE"
        assert raised.value.metadata["maxBytes"] == "64"
    assert set(server.sizes) == {8}


def test_error_of_a_smaller_call_names_the_text(little, translate, linnet):
    server = little(lines=10)
    texts = [*["a"] * 25, "wrong", *["b"] * 25]
    with pytest.raises(linnet.LinnetError) as raised:
        translate(server, texts)
    assert raised.value.field == "contents[25]"


def test_first_error_ends_the_other_calls(little, linnet):
    server = little(lines=100)

    async def run() -> list[str]:
        async with linnet.AsyncClient(server.address) as client:
            with pytest.raises(linnet.LinnetError, match=r"contents\[0\]"):
                await client.translate(["wrong"] + ["a"] * 64 * 12, to="de", source="en")
            return [task.get_coro().__qualname__ for task in asyncio.all_tasks()]

    assert not any("run_plan" in name for name in asyncio.run(run()))


@pytest.mark.parametrize("room", [1, 2])
def test_concurrent_calls_become_fewer_where_the_server_has_no_room(little, linnet, room):
    server = little(lines=100, room=room)
    texts = [str(number) for number in range(64 * 12)]

    async def run() -> list[str]:
        async with linnet.AsyncClient(server.address) as client:
            return await client.translate(texts, to="de", source="en")

    assert asyncio.run(run()) == texts
    assert len(server.sizes) == 12
    assert 0 < server.refused <= 4 - room + 3


def test_server_that_is_full_without_the_calls_of_the_plan_is_an_error(little, linnet):
    server = little(lines=100, room=1)
    server.running = 1

    async def run() -> None:
        async with linnet.AsyncClient(server.address) as client:
            await client.translate(["a"] * 640, to="de", source="en")

    with pytest.raises(linnet.LinnetError, match="SHARE_USED"):
        asyncio.run(run())


def test_missing_answers_are_an_error(little, translate, linnet):
    server = little(lines=10)
    server.answers_too_few = True
    with pytest.raises(linnet.LinnetError, match="the server gave 1 answers to 2 texts"):
        translate(server, ["a", "b"])
