"""The client for threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

import grpc
from grpc_health.v1 import health_pb2

from . import channel as shared
from .errors import LinnetError, no_response
from .options import Options
from .texts import Plan, Terms, check_text, summary, translation
from .v1 import text_service_pb2 as api
from .v1.text_service_pb2_grpc import TextServiceStub

Response = TypeVar("Response", covariant=True)
Answer = TypeVar("Answer")


class _Failure:
    """What the caller's own iterator raised in gRPC's thread, which would lose it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        try:
            for number, text in enumerate(lines):
                check_text(text, f"line {number}")
                yield text
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                self.error = error
            raise


class Stream(Generic[Response]):
    """The parts of a text as they become certain: put together, those of a content are its text.
    `response()` is there when they have ended. After an error they are the start of nothing."""

    def __init__(self, client: Client, begin: Callable[[float | None], Any], timeout: float):
        self._client = client
        self._begin, self._end = begin, time.monotonic() + timeout
        self._call = begin(timeout)
        self._response: Response | None = None

    def __iter__(self) -> Iterator[api.TextPart]:
        try:
            yield from self._parts()
            return
        except LinnetError as error:  # it comes before the first part
            left = shared.left_for_another(self._client.options, error, self._end)
            if not left:
                raise
        self._call = self._begin(left)
        yield from self._parts()

    def _parts(self) -> Iterator[api.TextPart]:
        with self._client._under_way(self._call):
            for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part

    def response(self) -> Response:
        """The whole answer. Reads the parts that were not read."""
        if self._response is None:
            for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response


class _UnderWay:
    """Cancels a call that is left before its end, and puts our errors in the place of grpc's."""

    def __init__(self, client: Client, call: Any, failure: _Failure | None = None):
        self._client, self._call, self._failure = client, call, failure

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
            raise LinnetError.of(error) from error
        if isinstance(error, grpc.FutureCancelledError):
            raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error


class Client:
    """A connection to a server, or to several. It is made with the first call and made anew when it
    breaks. Any number of threads may call at once; `close`, or the end of `with`, ends it.

    `translate` and `summarize` take strings and return strings, or take a request of the API and
    return its response, as the other methods do; `timeout` in seconds stands in place of that of
    the options, and by `request_id` the server's log has the call. All raise LinnetError. Ctrl-C in
    a call cancels it on the server as well.
    """

    def __init__(self, server: str | Options = "127.0.0.1:50051"):
        self.options = server if isinstance(server, Options) else Options(server=server)
        self._headers = shared.Headers(self.options)
        self._channel = self._connect(health=True)
        self._text = TextServiceStub(self._channel)
        # A balanced channel leaves out servers that take no calls: to ask for just that, another.
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
        """Cancels what is under way, and closes the connection."""
        self.cancel()
        self._channel.close()
        self._health_channel.close()

    def cancel(self) -> None:
        """Ends every call that is under way, and each one to come, with CANCELLED. May be called
        from any thread."""
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
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.TranslateResponse | str | list[str]:
        """A request, or a text or a list of them in the language `to`: these are sent in as many
        calls as they need, and the timeout is that of each. `glossary` maps terms to what becomes
        of them."""
        if isinstance(text, api.TranslateRequest):
            return self._unary(self._text.Translate, text, timeout, request_id)
        request = translation(to, source, model, glossary, options)
        plan = Plan.of(text)
        for places in plan.calls():
            del request.contents[:]
            request.contents.extend(plan.contents(places))
            with plan.naming(places):
                reply = self._unary(self._text.Translate, request, timeout, request_id)
            plan.answer(places, reply.translations)
        return plan.answers()

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
        timeout: float | None = None,
        request_id: str = "",
    ) -> list[str]: ...
    def summarize(
        self,
        text: api.SummarizeRequest | str | Iterable[str],
        *,
        language: str = "",
        model: str = "",
        timeout: float | None = None,
        request_id: str = "",
    ) -> api.SummarizeResponse | str | list[str]:
        """A request, or a text or a list of them in a line each; what is longer than the model
        reads is summarised in chunks."""
        if isinstance(text, api.SummarizeRequest):
            return self._unary(self._text.Summarize, text, timeout, request_id)
        request = summary(language, model)
        plan = Plan.of(text, whole=True)
        for places in plan.calls():
            del request.contents[:]
            request.contents.extend(plan.contents(places))
            with plan.naming(places):
                reply = self._unary(self._text.Summarize, request, timeout, request_id)
            plan.answer(places, reply.summaries)
        return plan.answers()

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
        return self._unary(self._text.GetModel, api.GetModelRequest(name=name), timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.TranslateResponse]:
        message = api.StreamTranslateRequest(request=request)
        begin = self._beginner(self._text.StreamTranslate, message, request_id)
        return Stream(self, begin, self._limit(timeout))

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> Stream[api.SummarizeResponse]:
        message = api.StreamSummarizeRequest(request=request)
        begin = self._beginner(self._text.StreamSummarize, message, request_id)
        return Stream(self, begin, self._limit(timeout))

    def translate_document(
        self,
        settings: api.TranslateRequest,
        lines: Iterable[str],
        *,
        keep_order: bool = True,
        request_id: str = "",
    ) -> Iterator[tuple[int, api.TranslateResponse | LinnetError]]:
        """Number and result of each line: it may fail for itself. Lines are taken as fast as the
        server takes them and their results are taken here; leaving the loop cancels the rest.
        `settings` has no contents. It is not made again by itself, and has no deadline."""

        failure = _Failure()

        def messages() -> Iterator[api.TranslateDocumentRequest]:
            yield api.TranslateDocumentRequest(settings=settings, keep_order=keep_order)
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
        """As translate_document, of texts to be summarised."""

        failure = _Failure()

        def messages() -> Iterator[api.SummarizeDocumentRequest]:
            yield api.SummarizeDocumentRequest(settings=settings, keep_order=keep_order)
            for number, text in enumerate(failure.watch(texts)):
                line = api.DocumentLine(sequence_id=number, text=text)
                yield api.SummarizeDocumentRequest(lines=[line])

        yield from self._results(self._text.SummarizeDocument, messages(), failure, request_id)

    def _results(
        self,
        method: Callable[..., Any],
        messages: Iterator[Any],
        failure: _Failure,
        request_id: str,
    ) -> Iterator[tuple[int, Any]]:
        call = self._started(method, messages, None, request_id)
        with self._under_way(call, failure):
            for result in call:
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """What the server, or the service of that name ("linnet.v1.TextService"), says of itself;
        LinnetError if it says nothing."""
        request = health_pb2.HealthCheckRequest(service=service)
        answer = self._unary(self._check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def _under_way(self, call: Any, failure: _Failure | None = None) -> _UnderWay:
        return _UnderWay(self, call, failure)

    def _wait(self) -> None:
        """Once, for a server that is just starting; the call says why it is not there."""
        if self._waited:
            return
        self._waited = True
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=self.options.wait)
        except grpc.FutureTimeoutError:
            ready.cancel()

    def _limit(self, timeout: float | None) -> float:
        return shared.check_timeout(self.options.timeout if timeout is None else timeout)

    def _beginner(
        self, method: Callable[..., Any], request: Any, request_id: str
    ) -> Callable[[float | None], Any]:
        """What begins the call with so many seconds: once, or once more."""
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
            raise LinnetError.of(error) from error
        except ValueError as error:  # a channel that is closed
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
        begin = self._beginner(method.future, request, request_id)
        try:
            answer: Answer = self._answer(begin(limit))
            return answer
        except LinnetError as error:
            left = shared.left_for_another(self.options, error, end)
            if not left:
                raise
        answer = self._answer(begin(left))
        return answer

    def _answer(self, call: Any) -> Any:
        with self._under_way(call):
            return call.result()
