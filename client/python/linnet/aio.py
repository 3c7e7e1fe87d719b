"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2

from . import channel as shared
from .errors import LinnetError
from .options import Options
from .v1 import text_service_pb2 as api
from .v1.text_service_pb2_grpc import TextServiceStub

Response = TypeVar("Response", covariant=True)
Answer = TypeVar("Answer")
Lines = Iterable[str] | AsyncIterable[str]


@asynccontextmanager
async def _under_way(call: Any) -> AsyncIterator[None]:
    """Cancels a call that is left before its end, and puts our errors in the place of grpc's."""
    try:
        yield
    except grpc.RpcError as error:
        raise LinnetError.of(error) from error
    finally:
        call.cancel()  # nothing, if it has ended


async def _numbered(lines: Lines) -> AsyncIterator[api.DocumentLine]:
    number = 0
    if isinstance(lines, AsyncIterable):
        async for text in lines:
            yield api.DocumentLine(sequence_id=number, text=text)
            number += 1
        return
    for text in lines:
        yield api.DocumentLine(sequence_id=number, text=text)
        number += 1


class AsyncStream(Generic[Response]):
    """As Stream: `async for part in stream`, then `await stream.response()`."""

    def __init__(self, call: Any):
        self._call = call
        self._response: Response | None = None

    async def __aiter__(self) -> AsyncIterator[api.TextPart]:
        async with _under_way(self._call):
            async for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part

    async def response(self) -> Response:
        """The whole answer. Reads the parts that were not read."""
        if self._response is None:
            async for _ in self:
                pass
        assert self._response is not None, "the server ended the stream without its response"
        return self._response


class AsyncClient:
    """As Client, with methods to be awaited. To be made and used in one event loop; cancelling the
    task that awaits a call cancels it on the server as well."""

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._headers = shared.Headers(self.options)
        self._channel = self._connect(health=True)
        self._text = TextServiceStub(cast(Any, self._channel))
        balanced = self.options.is_balanced()
        self._health_channel = self._connect(health=False) if balanced else self._channel
        self._check = self._health_channel.unary_unary(
            shared.HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        self._waited = self.options.wait == 0

    def _connect(self, health: bool) -> grpc.aio.Channel:
        name, arguments = shared.target(self.options), shared.arguments(self.options, health)
        secret = shared.credentials(self.options)
        if secret is None:
            return grpc.aio.insecure_channel(name, options=arguments)
        return grpc.aio.secure_channel(name, secret, options=arguments)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels what is under way, and closes the connection."""
        await self._channel.close(None)
        await self._health_channel.close(None)

    async def translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.TranslateResponse:
        return await self._unary(self._text.Translate, request, timeout, request_id)

    async def summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.SummarizeResponse:
        return await self._unary(self._text.Summarize, request, timeout, request_id)

    async def score(
        self, request: api.ScoreRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ScoreResponse:
        return await self._unary(self._text.Score, request, timeout, request_id)

    async def detect_language(
        self,
        request: api.DetectLanguageRequest,
        *,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.DetectLanguageResponse:
        return await self._unary(self._text.DetectLanguage, request, timeout, request_id)

    async def list_models(
        self, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ListModelsResponse:
        request = api.ListModelsRequest()
        return await self._unary(self._text.ListModels, request, timeout, request_id)

    async def get_model(
        self, name: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.GetModelResponse:
        request = api.GetModelRequest(name=name)
        return await self._unary(self._text.GetModel, request, timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.TranslateResponse]:
        message = api.StreamTranslateRequest(request=request)
        return AsyncStream(self._begin(self._text.StreamTranslate, message, timeout, request_id))

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.SummarizeResponse]:
        message = api.StreamSummarizeRequest(request=request)
        return AsyncStream(self._begin(self._text.StreamSummarize, message, timeout, request_id))

    async def translate_document(
        self,
        settings: api.TranslateRequest,
        lines: Lines,
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> AsyncIterator[tuple[int, api.TranslateResponse | LinnetError]]:
        """As Client.translate_document; lines may come from an asynchronous generator."""

        async def messages() -> AsyncIterator[api.TranslateDocumentRequest]:
            yield api.TranslateDocumentRequest(settings=settings, keep_order=keep_order)
            async for line in _numbered(lines):
                yield api.TranslateDocumentRequest(lines=[line])

        await self._wait()
        metadata = self._headers.of(request_id)
        call = self._text.TranslateDocument(cast(Any, messages()), metadata=metadata)
        async with _under_way(call):
            async for result in cast(AsyncIterable[api.TranslateDocumentResponse], call):
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response

    async def summarize_document(
        self,
        settings: api.SummarizeRequest,
        texts: Lines,
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> AsyncIterator[tuple[int, api.SummarizeResponse | LinnetError]]:
        """As Client.summarize_document; texts may come from an asynchronous generator."""

        async def messages() -> AsyncIterator[api.SummarizeDocumentRequest]:
            yield api.SummarizeDocumentRequest(settings=settings, keep_order=keep_order)
            async for line in _numbered(texts):
                yield api.SummarizeDocumentRequest(lines=[line])

        await self._wait()
        metadata = self._headers.of(request_id)
        call = self._text.SummarizeDocument(cast(Any, messages()), metadata=metadata)
        async with _under_way(call):
            async for result in cast(AsyncIterable[api.SummarizeDocumentResponse], call):
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """As Client.is_serving."""
        request = health_pb2.HealthCheckRequest(service=service)
        check: grpc.UnaryUnaryMultiCallable[Any, health_pb2.HealthCheckResponse]
        check = cast(Any, self._check)
        answer = await self._unary(check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    async def _wait(self) -> None:
        """Once, for a server that is just starting; the call says why it is not there."""
        if self._waited:
            return
        self._waited = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._channel.channel_ready(), self.options.wait)

    def _begin(
        self, method: Callable[..., Any], request: Any, timeout: float | None, request_id: str
    ) -> Any:
        limit = self.options.timeout if timeout is None else timeout
        return method(request, timeout=limit, metadata=self._headers.of(request_id))

    async def _unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        await self._wait()
        call = self._begin(method, request, timeout, request_id)
        async with _under_way(call):
            return await cast(Awaitable[Answer], call)
