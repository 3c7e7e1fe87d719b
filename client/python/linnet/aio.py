"""The client for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Generic, TypeVar, overload

from grpc_health.v1 import health_pb2

from . import channel as shared
from .async_connection import AsyncConnection, IteratorError, Lines, error_of, in_flight
from .async_plan import run_plan
from .errors import LinnetError, no_response
from .options import Options
from .texts import (
    Plan,
    Terms,
    TextAnswer,
    check_message,
    check_request_alone,
    document_start,
    keep_language,
    set_field,
    summary,
    translation,
)
from .v1 import text_service_pb2 as api

Response = TypeVar("Response", covariant=True)


class AsyncStream(Generic[Response]):
    """The asynchronous Stream: `async for part in stream`, then `await stream.response()`."""

    def __init__(
        self,
        connection: AsyncConnection,
        method: Callable[..., Any],
        request: Any,
        timeout: float | None,
        request_id: str,
    ):
        self._connection = connection
        self._begin = connection.starter(method, request, request_id)
        self._timeout = connection.limit(timeout)
        self._call: Any = None
        self._response: Response | None = None
        if connection.has_waited():
            self._start()

    def _start(self) -> None:
        self._end = time.monotonic() + self._timeout
        self._call = self._begin(self._timeout)

    async def __aiter__(self) -> AsyncIterator[api.TextPart]:
        if self._call is None:
            await self._connection.wait()
            self._start()
        try:
            async for part in self._parts():
                yield part
            return
        except LinnetError as error:  # DEADLINE_TOO_CLOSE arrives before the first part
            left = shared.time_for_another_server(self._connection.options, error, self._end)
            if not left:
                raise
        self._call = self._begin(left)
        async for part in self._parts():
            yield part

    async def _parts(self) -> AsyncIterator[api.TextPart]:
        async with in_flight(self._call, self._connection.options, self._timeout):
            async for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part
            # grpc.aio raises the error in the first loop over a call; another one just ends.
            if error := await error_of(self._call):
                raise error

    async def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            async for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response


class AsyncClient:
    """The asynchronous Client: its methods are awaited, and a list of strings is sent in concurrent
    calls. Create and use it in one event loop. Cancelling the task that awaits a call cancels the
    call on the server as well."""

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._connection = AsyncConnection(self.options)
        self._text = self._connection.text

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels the calls in flight and closes the connection."""
        await self._connection.close()

    @overload
    async def translate(
        self, text: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.TranslateResponse: ...
    @overload
    async def translate(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        to: str,
        source: str = "",
        model: str = "",
        glossary: Terms | None = None,
        options: api.DecodingOptions | None = None,
        direct_only: bool = False,
        reranking: api.Reranking | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> str: ...
    @overload
    async def translate(
        self,
        text: Iterable[str],
        *,
        to: str,
        source: str = "",
        model: str = "",
        glossary: Terms | None = None,
        options: api.DecodingOptions | None = None,
        direct_only: bool = False,
        reranking: api.Reranking | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> list[str]: ...
    async def translate(
        self,
        text: api.TranslateRequest | str | Iterable[str],
        *,
        to: str = "",
        source: str = "",
        model: str = "",
        glossary: Terms | None = None,
        options: api.DecodingOptions | None = None,
        direct_only: bool = False,
        reranking: api.Reranking | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.TranslateResponse | str | list[str]:
        """Same as Client.translate."""
        if isinstance(text, api.TranslateRequest):
            check_request_alone(
                to=to,
                source=source,
                model=model,
                glossary=glossary,
                options=options,
                direct_only=direct_only,
                reranking=reranking,
            )
            return await self._connection.unary(self._text.Translate, text, timeout, request_id)
        settings = translation(to, source, model, glossary, options, direct_only, reranking)
        plan = Plan.of(text)

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.TranslateRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._connection.unary(self._text.Translate, request, timeout, request_id)
            keep_language(settings, reply)
            return list(reply.translations)

        return await run_plan(plan, answers, first_alone=not source)

    @overload
    async def summarize(
        self, text: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.SummarizeResponse: ...
    @overload
    async def summarize(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        language: str = "",
        model: str = "",
        words: int | None = None,
        sentences: int | None = None,
        style: str = "",
        timeout: float | None = None,
        request_id: str = "",
    ) -> str: ...
    @overload
    async def summarize(
        self,
        text: Iterable[str],
        *,
        language: str = "",
        model: str = "",
        words: int | None = None,
        sentences: int | None = None,
        style: str = "",
        timeout: float | None = None,
        request_id: str = "",
    ) -> list[str]: ...
    async def summarize(
        self,
        text: api.SummarizeRequest | str | Iterable[str],
        *,
        language: str = "",
        model: str = "",
        words: int | None = None,
        sentences: int | None = None,
        style: str = "",
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.SummarizeResponse | str | list[str]:
        """Same as Client.summarize."""
        if isinstance(text, api.SummarizeRequest):
            check_request_alone(
                language=language, model=model, words=words, sentences=sentences, style=style
            )
            return await self._connection.unary(self._text.Summarize, text, timeout, request_id)
        settings = summary(language, model, words, sentences, style)

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.SummarizeRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._connection.unary(self._text.Summarize, request, timeout, request_id)
            keep_language(settings, reply)
            return list(reply.summaries)

        return await run_plan(Plan.of(text, whole=True), answers, first_alone=not language)

    async def score(
        self, request: api.ScoreRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ScoreResponse:
        check_message(request, api.ScoreRequest, "request")
        return await self._connection.unary(self._text.Score, request, timeout, request_id)

    async def detect_language(
        self,
        request: api.DetectLanguageRequest,
        *,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.DetectLanguageResponse:
        check_message(request, api.DetectLanguageRequest, "request")
        return await self._connection.unary(self._text.DetectLanguage, request, timeout, request_id)

    async def list_models(
        self, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ListModelsResponse:
        request = api.ListModelsRequest()
        return await self._connection.unary(self._text.ListModels, request, timeout, request_id)

    async def get_model(
        self, name: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.GetModelResponse:
        request = api.GetModelRequest()
        set_field(request, "name", name)
        return await self._connection.unary(self._text.GetModel, request, timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.TranslateResponse]:
        check_message(request, api.TranslateRequest, "request")
        message = api.StreamTranslateRequest(request=request)
        return AsyncStream(
            self._connection, self._text.StreamTranslate, message, timeout, request_id
        )

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.SummarizeResponse]:
        check_message(request, api.SummarizeRequest, "request")
        message = api.StreamSummarizeRequest(request=request)
        return AsyncStream(
            self._connection, self._text.StreamSummarize, message, timeout, request_id
        )

    async def translate_document(
        self,
        settings: api.TranslateRequest,
        lines: Lines,
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> AsyncIterator[tuple[int, api.TranslateResponse | LinnetError]]:
        """Same as Client.translate_document; lines may come from an asynchronous generator."""

        first = document_start(
            api.TranslateDocumentRequest, settings, keep_order, lines, "lines", asynchronous=True
        )
        failure = IteratorError()

        async def messages() -> AsyncIterator[api.TranslateDocumentRequest]:
            yield first
            async for line in failure.watch(lines):
                yield api.TranslateDocumentRequest(lines=[line])

        results = self._connection.results(
            self._text.TranslateDocument, messages(), failure, request_id
        )
        async for result in results:
            yield result

    async def summarize_document(
        self,
        settings: api.SummarizeRequest,
        texts: Lines,
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> AsyncIterator[tuple[int, api.SummarizeResponse | LinnetError]]:
        """Same as Client.summarize_document; texts may come from an asynchronous generator."""

        first = document_start(
            api.SummarizeDocumentRequest, settings, keep_order, texts, "texts", asynchronous=True
        )
        failure = IteratorError()

        async def messages() -> AsyncIterator[api.SummarizeDocumentRequest]:
            yield first
            async for line in failure.watch(texts):
                yield api.SummarizeDocumentRequest(lines=[line])

        results = self._connection.results(
            self._text.SummarizeDocument, messages(), failure, request_id
        )
        async for result in results:
            yield result

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Same as Client.is_serving."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        answer = await self._connection.unary(self._connection.check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING
