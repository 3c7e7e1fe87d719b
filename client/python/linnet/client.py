"""The blocking client, for programs with threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

import grpc
from grpc_health.v1 import health_pb2

from . import channel as shared
from .errors import LinnetError, no_response
from .options import Options
from .texts import (
    Plan,
    Terms,
    TextAnswer,
    check_message,
    check_request_alone,
    check_text,
    document_start,
    keep_language,
    set_field,
    summary,
    translation,
)
from .v1 import text_service_pb2 as api
from .v1.text_service_pb2_grpc import TextServiceStub

Response = TypeVar("Response", covariant=True)
Answer = TypeVar("Answer")


class _IteratorError:
    """Keeps the error that the caller's iterator raised in gRPC's thread, which would drop it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        try:
            for number, text in enumerate(lines):
                check_text(text, f"line {number}")
                yield text
        except GeneratorExit:
            raise
        except Exception as error:
            self.error = error
            raise
        except BaseException as error:  # KeyboardInterrupt, SystemExit
            self.error = error
            # gRPC's thread catches only Exception: another error would end the thread and leave the
            # call without an end.
            raise RuntimeError("iterator ended") from error


class Stream(Generic[Response]):
    """Iterates over the parts of a text as they become stable: the concatenated parts of a content
    are its text. `response()` returns the whole response. After an error, discard the parts."""

    def __init__(self, client: Client, begin: Callable[[float | None], Any], timeout: float):
        self._client = client
        self._begin, self._timeout, self._end = begin, timeout, time.monotonic() + timeout
        self._call = begin(timeout)
        self._response: Response | None = None

    def __iter__(self) -> Iterator[api.TextPart]:
        try:
            yield from self._parts()
            return
        except LinnetError as error:  # DEADLINE_TOO_CLOSE arrives before the first part
            left = shared.time_for_another_server(self._client.options, error, self._end)
            if not left:
                raise
        self._call = self._begin(left)
        yield from self._parts()

    def _parts(self) -> Iterator[api.TextPart]:
        with self._client._in_flight(self._call, self._timeout):
            for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part

    def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response


class _CallInFlight:
    """Cancels a call that is abandoned before its end, and converts grpc's errors to ours."""

    def __init__(
        self,
        client: Client,
        call: Any,
        timeout: float | None = None,
        failure: _IteratorError | None = None,
    ):
        self._client, self._call, self._timeout, self._failure = client, call, timeout, failure

    def __enter__(self) -> None:
        with self._client._lock:
            self._client._calls[id(self._call)] = self._call
            if self._client._cancelled:
                self._call.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._client._lock:
            self._client._calls.pop(id(self._call), None)
        if kind is not None:
            self._call.cancel()
        if isinstance(error, grpc.RpcError) and self._failure and self._failure.error:
            raise self._failure.error from None
        if isinstance(error, grpc.RpcError):
            raise LinnetError.of(error, self._client.options, self._timeout) from error
        if isinstance(error, grpc.FutureCancelledError):
            raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error


class _Connection:
    """The future of a connection; gRPC's own fails if it is cancelled twice."""

    def __init__(self, channel: grpc.Channel):
        self._future = grpc.channel_ready_future(channel)
        self._lock = threading.Lock()

    def cancel(self) -> None:
        with self._lock:
            if not self._future.done():
                self._future.cancel()

    def result(self, timeout: float) -> None:
        self._future.result(timeout)


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
        self._headers = shared.Headers(self.options)
        self._channel = self._connect(health=True)
        self._text = TextServiceStub(self._channel)
        # A balanced channel skips servers that are not serving, so health checks need another one.
        balanced = self.options.is_balanced()
        self._health_channel = self._connect(health=False) if balanced else self._channel
        self._check = self._health_channel.unary_unary(
            shared.HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        self._lock = threading.Lock()
        self._calls: dict[int, Any] = {}
        self._cancelled = False
        self._waiting = threading.Lock()
        self._waited = self.options.wait == 0

    def _connect(self, health: bool) -> grpc.Channel:
        name, arguments = shared.target(self.options), shared.arguments(self.options, health)
        secret = shared.credentials(self.options)
        if secret is None:
            return grpc.insecure_channel(name, options=arguments)
        return grpc.secure_channel(name, secret, options=arguments)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the calls in flight and closes the connection."""
        self.cancel()
        self._channel.close()
        self._health_channel.close()

    def cancel(self) -> None:
        """Cancels every call, in flight or future. Thread-safe."""
        with self._lock:
            self._cancelled = True
            calls = list(self._calls.values())
        for call in calls:
            call.cancel()

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
        reranking: api.Reranking | None = None,
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
        reranking: api.Reranking | None = None,
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
        reranking: api.Reranking | None = None,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.TranslateResponse | str | list[str]:
        """Translates a request, or a text or a list of texts to the language `to`. Texts are sent
        in as many calls as they need; the timeout applies to each call. `glossary` maps terms to
        their translations. Where no model translates the pair, two do through a third language,
        unless `direct_only`. With `reranking`, a model of the other direction chooses."""
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
            return self._unary(self._text.Translate, text, timeout, request_id)
        request = translation(to, source, model, glossary, options, direct_only, reranking)
        plan = Plan.of(text)

        def answers(contents: list[str]) -> Collection[TextAnswer]:
            del request.contents[:]
            request.contents.extend(contents)
            reply = self._unary(self._text.Translate, request, timeout, request_id)
            keep_language(request, reply)
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
            return self._unary(self._text.Summarize, text, timeout, request_id)
        request = summary(language, model, words, sentences, style)

        def answers(contents: list[str]) -> Collection[TextAnswer]:
            del request.contents[:]
            request.contents.extend(contents)
            reply = self._unary(self._text.Summarize, request, timeout, request_id)
            keep_language(request, reply)
            return reply.summaries

        return _run_plan(Plan.of(text, whole=True), answers)

    def score(
        self, request: api.ScoreRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ScoreResponse:
        return self._unary(self._text.Score, request, timeout, request_id)

    def detect_language(
        self,
        request: api.DetectLanguageRequest,
        *,
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.DetectLanguageResponse:
        return self._unary(self._text.DetectLanguage, request, timeout, request_id)

    def list_models(
        self, *, timeout: float | None = None, request_id: str = ""
    ) -> api.ListModelsResponse:
        return self._unary(self._text.ListModels, api.ListModelsRequest(), timeout, request_id)

    def get_model(
        self, name: str, *, timeout: float | None = None, request_id: str = ""
    ) -> api.GetModelResponse:
        request = api.GetModelRequest()
        set_field(request, "name", name)
        return self._unary(self._text.GetModel, request, timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.TranslateResponse]:
        check_message(request, api.TranslateRequest, "request")
        message = api.StreamTranslateRequest(request=request)
        begin = self._starter(self._text.StreamTranslate, message, request_id)
        return Stream(self, begin, self._limit(timeout))

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.SummarizeResponse]:
        check_message(request, api.SummarizeRequest, "request")
        message = api.StreamSummarizeRequest(request=request)
        begin = self._starter(self._text.StreamSummarize, message, request_id)
        return Stream(self, begin, self._limit(timeout))

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
        cancels the rest. `settings` has no contents. The call is not retried and has no
        deadline."""

        first = document_start(api.TranslateDocumentRequest, settings, keep_order, lines, "lines")
        failure = _IteratorError()

        def messages() -> Iterator[api.TranslateDocumentRequest]:
            yield first
            for number, text in enumerate(failure.watch(lines)):
                line = api.DocumentLine(sequence_id=number, text=text)
                yield api.TranslateDocumentRequest(lines=[line])

        yield from self._results(self._text.TranslateDocument, messages(), failure, request_id)

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
        failure = _IteratorError()

        def messages() -> Iterator[api.SummarizeDocumentRequest]:
            yield first
            for number, text in enumerate(failure.watch(texts)):
                line = api.DocumentLine(sequence_id=number, text=text)
                yield api.SummarizeDocumentRequest(lines=[line])

        yield from self._results(self._text.SummarizeDocument, messages(), failure, request_id)

    def _results(
        self,
        method: Callable[..., Any],
        messages: Iterator[Any],
        failure: _IteratorError,
        request_id: str,
    ) -> Iterator[tuple[int, Any]]:
        call = self._started(method, messages, None, request_id)
        with self._in_flight(call, failure=failure):
            for result in call:
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """True if the server, or the service of that name ("linnet.v1.TextService"), reports
        SERVING. Raises LinnetError if it does not answer."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        answer = self._unary(self._check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def _in_flight(
        self, call: Any, timeout: float | None = None, failure: _IteratorError | None = None
    ) -> _CallInFlight:
        return _CallInFlight(self, call, timeout, failure)

    def _wait(self) -> None:
        """Waits once, all first calls together, for a server that is starting; the call itself
        then reports any error."""
        if self._waited:
            return
        with self._waiting:
            if self._waited or self._cancelled:
                return
            end = time.monotonic() + self.options.wait
            ready = _Connection(self._channel)
            with suppress(grpc.FutureTimeoutError, LinnetError):  # LinnetError: it was cancelled
                with self._in_flight(ready):
                    ready.result(timeout=self.options.wait)
                self._wait_behind_proxy(end)
            self._waited = True

    def _wait_behind_proxy(self, end: float) -> None:
        """Checks the health until it is not a proxy that answers, for a server that is starting."""
        request = health_pb2.HealthCheckRequest()
        while not self._cancelled:
            left = end - time.monotonic()
            call = self._check.future(request, timeout=left, metadata=self._headers.of(""))
            try:
                self._answer(call, left)
                return
            except LinnetError as error:
                if not shared.is_starting(error) or left < shared.WAIT_INTERVAL:
                    return
            time.sleep(shared.WAIT_INTERVAL)

    def _limit(self, timeout: float | None) -> float:
        return shared.check_timeout(self.options.timeout if timeout is None else timeout)

    def _starter(
        self, method: Callable[..., Any], request: Any, request_id: str
    ) -> Callable[[float | None], Any]:
        """Returns a function that starts the call with a timeout; a retry calls it again."""
        own_id = request_id or shared.new_request_id()
        return lambda limit: self._started(method, request, limit, own_id)

    def _started(
        self, method: Callable[..., Any], request: Any, limit: float | None, request_id: str
    ) -> Any:
        metadata = self._headers.of(request_id)
        try:
            self._wait()
            return method(request, timeout=limit, metadata=metadata)
        except grpc.RpcError as error:  # a message of another type
            raise LinnetError.of(error, self.options) from error
        except ValueError as error:  # the channel is closed
            raise LinnetError.local(str(error), grpc.StatusCode.FAILED_PRECONDITION) from error

    def _unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        limit = self._limit(timeout)
        end = time.monotonic() + limit
        begin = self._starter(method.future, request, request_id)
        try:
            answer: Answer = self._answer(begin(limit), limit)
            return answer
        except LinnetError as error:
            left = shared.time_for_another_server(self.options, error, end)
            if not left:
                raise
        answer = self._answer(begin(left), limit)
        return answer

    def _answer(self, call: Any, timeout: float) -> Any:
        with self._in_flight(call, timeout):
            return call.result()
