"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import overload

from grpc_health.v1 import health_pb2

from .async_connection import AsyncConnection
from .async_document import AsyncDocument, Lines
from .async_plan import run_plan
from .async_stream import AsyncStream
from .batches import Pair, detections, scores, scoring
from .errors import LinnetError
from .options import Options
from .texts import (
    Plan,
    Terms,
    TextAnswer,
    check_message,
    check_request_alone,
    document_start,
    joins_lines,
    keep_language,
    set_field,
    summary,
    translation,
)
from .v1 import text_service_pb2 as api


class AsyncClient:
    """The asynchronous Client: its methods are awaited, and a list of strings to translate or to
    summarise is sent in concurrent calls. Use it in one event loop, that of its first call.
    Cancelling the task that awaits a call cancels the call on the server as well."""

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._connection = AsyncConnection(self.options)

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
        line_breaks: str = "",
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
        line_breaks: str = "",
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
        line_breaks: str = "",
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
                line_breaks=line_breaks,
            )
            return await self._connection.unary(
                self._connection.text.Translate, text, timeout, request_id
            )
        settings = translation(to, source, model, glossary, options, direct_only, line_breaks)
        plan = Plan.of(text, joins=joins_lines(settings))

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.TranslateRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._connection.unary(
                self._connection.text.Translate, request, timeout, request_id
            )
            keep_language(plan, settings, reply)
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
            return await self._connection.unary(
                self._connection.text.Summarize, text, timeout, request_id
            )
        settings = summary(language, model, words, sentences, style)

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.SummarizeRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._connection.unary(
                self._connection.text.Summarize, request, timeout, request_id
            )
            return list(reply.summaries)

        return await run_plan(Plan.of(text, whole=True), answers, first_alone=not language)

    @overload
    async def score(
        self, pairs: api.ScoreRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ScoreResponse: ...
    @overload
    async def score(
        self,
        pairs: Pair,
        *,
        source: str = "",
        to: str = "",
        model: str = "",
        style: str = "",
        options: api.ScoringOptions | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.TargetScore: ...
    @overload
    async def score(
        self,
        pairs: Iterable[Pair],
        *,
        source: str = "",
        to: str = "",
        model: str = "",
        style: str = "",
        options: api.ScoringOptions | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> list[api.TargetScore]: ...
    async def score(
        self,
        pairs: api.ScoreRequest | Pair | Iterable[Pair],
        *,
        source: str = "",
        to: str = "",
        model: str = "",
        style: str = "",
        options: api.ScoringOptions | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.ScoreResponse | api.TargetScore | list[api.TargetScore]:
        """Same as Client.score."""
        if isinstance(pairs, api.ScoreRequest):
            check_request_alone(source=source, to=to, model=model, style=style, options=options)
            return await self._connection.unary(
                self._connection.text.Score, pairs, timeout, request_id
            )
        request = scoring(source, to, model, style, options)
        batches = scores(pairs)
        while batch := batches.next():
            del request.pairs[:]
            for text, target in batch.items:
                request.pairs.add(source_text=text, target_text=target)
            try:
                reply = await self._connection.unary(
                    self._connection.text.Score, request, timeout, request_id
                )
            except LinnetError as error:
                batches.refused(batch, error)
            else:
                batches.answer(batch, reply.scores)
        return batches.answers()

    @overload
    async def detect_language(
        self, text: api.DetectLanguageRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.DetectLanguageResponse: ...
    @overload
    async def detect_language(  # type: ignore[overload-overlap]
        self, text: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.LanguageDetection: ...
    @overload
    async def detect_language(
        self, text: Iterable[str], *, timeout: float | None = None, request_id: str = ""
    ) -> list[api.LanguageDetection]: ...
    async def detect_language(
        self,
        text: api.DetectLanguageRequest | str | Iterable[str],
        *,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.DetectLanguageResponse | api.LanguageDetection | list[api.LanguageDetection]:
        """Same as Client.detect_language."""
        method = self._connection.text.DetectLanguage
        if isinstance(text, api.DetectLanguageRequest):
            return await self._connection.unary(method, text, timeout, request_id)
        batches = detections(text)
        while batch := batches.next():
            request = api.DetectLanguageRequest(contents=batch.items)
            try:
                reply = await self._connection.unary(method, request, timeout, request_id)
            except LinnetError as error:
                batches.refused(batch, error)
            else:
                batches.answer(batch, reply.detections)
        return batches.answers()

    async def list_models(
        self, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ListModelsResponse:
        request = api.ListModelsRequest()
        return await self._connection.unary(
            self._connection.text.ListModels, request, timeout, request_id
        )

    async def get_model(
        self, name: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.GetModelResponse:
        request = api.GetModelRequest()
        set_field(request, "name", name)
        return await self._connection.unary(
            self._connection.text.GetModel, request, timeout, request_id
        )

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.TranslateResponse]:
        check_message(request, api.TranslateRequest, "request")
        message = api.StreamTranslateRequest(request=request)
        return AsyncStream(
            self._connection, self._connection.text.StreamTranslate, message, timeout, request_id
        )

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.SummarizeResponse]:
        check_message(request, api.SummarizeRequest, "request")
        message = api.StreamSummarizeRequest(request=request)
        return AsyncStream(
            self._connection, self._connection.text.StreamSummarize, message, timeout, request_id
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
        results = self._connection.results(
            self._connection.text.TranslateDocument, AsyncDocument(first, lines), request_id
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
        results = self._connection.results(
            self._connection.text.SummarizeDocument, AsyncDocument(first, texts), request_id
        )
        async for result in results:
            yield result

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Same as Client.is_serving."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        answer = await self._connection.unary(self._connection.check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING
