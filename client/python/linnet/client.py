"""The blocking client, for programs with threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import overload

from grpc_health.v1 import health_pb2

from .batches import Pair, detections, scores, scoring
from .connection import Connection
from .document import Document
from .errors import LinnetError
from .options import Options
from .stream import Stream
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


def _run_plan(
    plan: Plan, answers: Callable[[list[str]], Collection[TextAnswer]]
) -> str | list[str]:
    """Runs the calls of a plan one after the other, and one that is too large in smaller ones."""
    for call in plan.calls():
        left = [call]
        while left:
            parts = left.pop()
            try:
                with plan.naming(parts) as contents:
                    plan.answer(parts, answers(contents))
            except LinnetError as error:
                smaller = plan.smaller(parts, error)
                if not smaller:
                    raise
                left += reversed(smaller)
    return plan.answers()


class Client:
    """A connection to one or several servers. The first call connects, and gRPC reconnects when the
    connection breaks. Thread-safe; `close`, or the end of `with`, ends it.

    `translate` and `summarize` take strings and return strings, or take a request of the API and
    return its response, as the other methods do. `timeout` in seconds replaces that of the options;
    `request_id` identifies the call in the server's log. All methods raise LinnetError. Ctrl-C
    during a call cancels it on the server as well.
    """

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._connection = Connection(self.options)
        self._text = self._connection.text

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the calls in flight and closes the connection."""
        self._connection.close()

    def cancel(self) -> None:
        """Cancels every call, in flight or future. Thread-safe."""
        self._connection.cancel()

    @overload
    def translate(
        self, text: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.TranslateResponse: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
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
    def translate(
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
    def translate(
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
        """Translates a request, or a text or a list of texts to the language `to`. Texts are sent
        in as many calls as they need; the timeout applies to each call. `glossary` maps terms to
        their translations. Where no model translates the pair, two do through a third language,
        unless `direct_only`. With
        `line_breaks="join_paragraphs"` the lines of a paragraph that was wrapped are joined."""
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
            return self._connection.unary(self._text.Translate, text, timeout, request_id)
        request = translation(to, source, model, glossary, options, direct_only, line_breaks)
        plan = Plan.of(text, joins=joins_lines(request))

        def answers(contents: list[str]) -> Collection[TextAnswer]:
            del request.contents[:]
            request.contents.extend(contents)
            reply = self._connection.unary(self._text.Translate, request, timeout, request_id)
            keep_language(plan, request, reply)
            return reply.translations

        return _run_plan(plan, answers)

    @overload
    def summarize(
        self, text: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.SummarizeResponse: ...
    @overload
    def summarize(  # type: ignore[overload-overlap]
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
    def summarize(
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
    def summarize(
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
            return self._connection.unary(self._text.Summarize, text, timeout, request_id)
        request = summary(language, model, words, sentences, style)

        def answers(contents: list[str]) -> Collection[TextAnswer]:
            del request.contents[:]
            request.contents.extend(contents)
            reply = self._connection.unary(self._text.Summarize, request, timeout, request_id)
            return reply.summaries

        return _run_plan(Plan.of(text, whole=True), answers)

    @overload
    def score(
        self, pairs: api.ScoreRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ScoreResponse: ...
    @overload
    def score(
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
    def score(
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
    def score(
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
            return self._connection.unary(self._text.Score, pairs, timeout, request_id)
        request = scoring(source, to, model, style, options)
        batches = scores(pairs)
        while batch := batches.next():
            del request.pairs[:]
            for text, target in batch.items:
                request.pairs.add(source_text=text, target_text=target)
            try:
                reply = self._connection.unary(self._text.Score, request, timeout, request_id)
            except LinnetError as error:
                batches.refused(batch, error)
            else:
                batches.answer(batch, reply.scores)
        return batches.answers()

    @overload
    def detect_language(
        self, text: api.DetectLanguageRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.DetectLanguageResponse: ...
    @overload
    def detect_language(  # type: ignore[overload-overlap]
        self, text: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.LanguageDetection: ...
    @overload
    def detect_language(
        self, text: Iterable[str], *, timeout: float | None = None, request_id: str = ""
    ) -> list[api.LanguageDetection]: ...
    def detect_language(
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
            return self._connection.unary(method, text, timeout, request_id)
        batches = detections(text)
        while batch := batches.next():
            request = api.DetectLanguageRequest(contents=batch.items)
            try:
                reply = self._connection.unary(method, request, timeout, request_id)
            except LinnetError as error:
                batches.refused(batch, error)
            else:
                batches.answer(batch, reply.detections)
        return batches.answers()

    def list_models(
        self, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ListModelsResponse:
        return self._connection.unary(
            self._text.ListModels, api.ListModelsRequest(), timeout, request_id
        )

    def get_model(
        self, name: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.GetModelResponse:
        request = api.GetModelRequest()
        set_field(request, "name", name)
        return self._connection.unary(self._text.GetModel, request, timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.TranslateResponse]:
        check_message(request, api.TranslateRequest, "request")
        message = api.StreamTranslateRequest(request=request)
        return Stream(self._connection, self._text.StreamTranslate, message, timeout, request_id)

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.SummarizeResponse]:
        check_message(request, api.SummarizeRequest, "request")
        message = api.StreamSummarizeRequest(request=request)
        return Stream(self._connection, self._text.StreamSummarize, message, timeout, request_id)

    def translate_document(
        self,
        settings: api.TranslateRequest,
        lines: Iterable[str],
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> Iterator[tuple[int, api.TranslateResponse | LinnetError]]:
        """Yields the number and the result of each line; a line may fail while the others succeed.
        Flow control holds the lines back until the server and the caller keep up; leaving the loop
        cancels the rest. `settings` has no contents. If the connection is lost, the document
        continues on the next from the first line without a result. There is no deadline, but a lost
        server is tried for the timeout of the options."""
        first = document_start(api.TranslateDocumentRequest, settings, keep_order, lines, "lines")
        document = Document(first, lines)
        yield from self._connection.results(self._text.TranslateDocument, document, request_id)

    def summarize_document(
        self,
        settings: api.SummarizeRequest,
        texts: Iterable[str],
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> Iterator[tuple[int, api.SummarizeResponse | LinnetError]]:
        """Summarises each text, as translate_document translates lines."""
        first = document_start(api.SummarizeDocumentRequest, settings, keep_order, texts, "texts")
        document = Document(first, texts)
        yield from self._connection.results(self._text.SummarizeDocument, document, request_id)

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """True if the server, or the service of that name ("linnet.v1.TextService"), reports
        SERVING. Raises LinnetError if it does not answer."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        answer = self._connection.unary(self._connection.check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING
