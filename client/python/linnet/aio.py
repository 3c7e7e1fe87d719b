"""The client for asyncio, of which the build makes client.py, the blocking client (setup.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import overload

from grpc_health.v1 import health_pb2

from .async_connection import AsyncClientLife
from .async_document import AsyncDocument, Lines
from .async_plan import run_plan
from .async_stream import AsyncStream
from .batches import Pair, detections, scores, scoring
from .errors import LinnetError
from .texts import (
    Plan,
    Terms,
    TextAnswer,
    check_message,
    check_request_alone,
    document_start,
    is_whole,
    joins_lines,
    keep_language,
    set_field,
    summary,
    translation,
)
from .v1 import text_service_pb2 as api


class AsyncClient(AsyncClientLife):
    """A connection to one or several servers. The first call connects, and gRPC reconnects when the
    connection breaks. `close`, or the end of `with`, ends it.

    `translate` and `summarize` take strings and return strings, or take a request of the API and
    return its response, as the other methods do. `timeout` in seconds replaces that of the options;
    `request_id` identifies the call in the server's log. All methods raise LinnetError.

    A `Client` is thread-safe, and Ctrl-C during a call cancels it on the server as well. The
    methods of an `AsyncClient` are awaited, in the event loop of the first one. It sends the calls
    of a list concurrently and takes lines from asynchronous generators too. A task that is
    cancelled cancels its call on the server."""

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
        mime_type: str = "",
        protected_patterns: Iterable[str] = (),
        markup: api.MarkupOptions | None = None,
        target_prefix: str = "",
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
        mime_type: str = "",
        protected_patterns: Iterable[str] = (),
        markup: api.MarkupOptions | None = None,
        target_prefix: str = "",
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
        mime_type: str = "",
        protected_patterns: Iterable[str] = (),
        markup: api.MarkupOptions | None = None,
        target_prefix: str = "",
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.TranslateResponse | str | list[str]:
        """Translates a request, or a text or a list of texts to the language `to`. Texts are sent
        in as many calls as they need; the timeout applies to each call. `glossary` maps terms to
        their translations. Where no model translates the pair, two do through a third language,
        unless `direct_only`. With
        `line_breaks="join_paragraphs"` the lines of a paragraph that was wrapped are joined. With
        `mime_type="text/html"` or "application/xml" a text is a fragment whose tags are kept, as
        `markup` says. What `protected_patterns`, regular expressions of RE2, match is copied.
        The translation of a single text begins with `target_prefix`."""
        if isinstance(text, api.TranslateRequest):
            check_request_alone(
                to=to,
                source=source,
                model=model,
                glossary=glossary,
                options=options,
                direct_only=direct_only,
                line_breaks=line_breaks,
                mime_type=mime_type,
                protected_patterns=protected_patterns,
                markup=markup,
                target_prefix=target_prefix,
            )
            return await self._connection.unary(self._text.Translate, text, timeout, request_id)
        settings = translation(
            to,
            source,
            model,
            glossary,
            options,
            direct_only,
            line_breaks,
            mime_type,
            protected_patterns,
            markup,
            target_prefix,
        )
        if target_prefix and not isinstance(text, str):
            raise LinnetError.local(
                "target_prefix begins the translation of one text: call translate for each text",
                field="target_prefix",
            )
        plan = Plan.of(text, joins=joins_lines(settings), whole=is_whole(settings))

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.TranslateRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._connection.unary(self._text.Translate, request, timeout, request_id)
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
        """Summarises a request, or a text or a list of texts in a line each. A text that is longer
        than the model's limit is summarised in chunks. A summary has at most so many `words`, and
        at least three quarters of them, or so many `sentences`. `style` is "title", "sentence" or
        "paragraph", if the model has it; by default the model's first."""
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
        """Scores a request, or a pair of a source and a target or a list of pairs: the probability
        that the model gives to each target. Pairs are sent in as many calls as they need."""
        if isinstance(pairs, api.ScoreRequest):
            check_request_alone(source=source, to=to, model=model, style=style, options=options)
            return await self._connection.unary(self._text.Score, pairs, timeout, request_id)
        request = scoring(source, to, model, style, options)
        batches = scores(pairs)
        while batch := batches.next():
            del request.pairs[:]
            for text, target in batch.items:
                request.pairs.add(source_text=text, target_text=target)
            try:
                reply = await self._connection.unary(self._text.Score, request, timeout, request_id)
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
        """Detects the languages of a request, or of a text or a list of texts; for white space the
        detection is empty. Texts are sent in as many calls as they need."""
        method = self._text.DetectLanguage
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
        """Yields the number and the result of each line; a line may fail while the others succeed.
        Flow control holds the lines back until the server and the caller keep up; leaving the loop
        cancels the rest. `settings` has no contents. If the connection is lost, the document
        continues on the next from the first line without a result. There is no deadline, but a lost
        server is tried for the timeout of the options."""
        first = document_start(api.TranslateDocumentRequest, settings, keep_order)
        document = AsyncDocument(first, lines, "lines")
        results = self._connection.results(self._text.TranslateDocument, document, request_id)
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
        """Summarises each text, as translate_document translates lines."""
        first = document_start(api.SummarizeDocumentRequest, settings, keep_order)
        document = AsyncDocument(first, texts, "texts")
        results = self._connection.results(self._text.SummarizeDocument, document, request_id)
        async for result in results:
            yield result

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """True if the server, or the service of that name ("linnet.v1.TextService"), reports
        SERVING. Raises LinnetError if it does not answer."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        answer = await self._connection.unary(self._connection.check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING
