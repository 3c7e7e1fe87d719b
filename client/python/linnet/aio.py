"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar, cast, overload

import grpc
from grpc_health.v1 import health_pb2

from . import channel as shared
from .errors import LinnetError, no_response
from .options import Options
from .texts import (
    Part,
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
Lines = Iterable[str] | AsyncIterable[str]
MAX_CALLS_IN_FLIGHT = 4
# Reasons for which a server has no room now for a call that it would take alone: docs/ERRORS.md.
BUSY = {"SHARE_USED", "TOO_MUCH_WORK", "TOO_MANY_BYTES", "WAITED_TOO_LONG", "OUT_OF_MEMORY"}


class _IteratorError:
    """Keeps the error of the caller's iterator, which grpc.aio would replace by its own."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    async def watch(self, lines: Lines) -> AsyncIterator[api.DocumentLine]:
        number = 0
        try:
            if isinstance(lines, AsyncIterable):
                async for text in lines:
                    yield self._line(number, text)
                    number += 1
                return
            for text in lines:
                yield self._line(number, text)
                number += 1
        except Exception as error:
            self.error = error
            raise

    def _line(self, number: int, text: str) -> api.DocumentLine:
        check_text(text, f"line {number}")
        return api.DocumentLine(sequence_id=number, text=text)


@asynccontextmanager
async def _in_flight(
    call: Any,
    options: Options,
    timeout: float | None = None,
    failure: _IteratorError | None = None,
) -> AsyncIterator[None]:
    """Cancels a call that is abandoned before its end, and converts grpc's errors to ours."""
    task = asyncio.current_task()
    # In Python 3.11, the end of a TaskGroup that fails leaves the task's cancellation counted.
    before = task.cancelling() if task else 0
    try:
        yield
    except (grpc.RpcError, asyncio.CancelledError) as error:
        if failure is not None and failure.error is not None:
            raise failure.error from None
        if not isinstance(error, asyncio.CancelledError):
            raise LinnetError.of(error, options, timeout) from error
        task = asyncio.current_task()
        if task is None or task.cancelling() > before:
            raise
        # Only the call was cancelled, by `close` or with a stream that is left early. To the task,
        # CancelledError would say that the task itself is to end.
        raise LinnetError.local("cancelled", grpc.StatusCode.CANCELLED) from error
    finally:
        call.cancel()  # no effect after its end


class AsyncStream(Generic[Response]):
    """The asynchronous Stream: `async for part in stream`, then `await stream.response()`."""

    def __init__(self, client: AsyncClient, begin: Callable[[float | None], Any], timeout: float):
        self._client, self._begin, self._timeout = client, begin, timeout
        self._call: Any = None
        self._response: Response | None = None
        if client._has_waited():
            self._start()

    def _start(self) -> None:
        self._end = time.monotonic() + self._timeout
        self._call = self._begin(self._timeout)

    async def __aiter__(self) -> AsyncIterator[api.TextPart]:
        if self._call is None:
            await self._client._wait()
            self._start()
        try:
            async for part in self._parts():
                yield part
            return
        except LinnetError as error:  # DEADLINE_TOO_CLOSE arrives before the first part
            left = shared.time_for_another_server(self._client.options, error, self._end)
            if not left:
                raise
        self._call = self._begin(left)
        async for part in self._parts():
            yield part

    async def _parts(self) -> AsyncIterator[api.TextPart]:
        async with _in_flight(self._call, self._client.options, self._timeout):
            async for message in self._call:
                if message.HasField("response"):
                    self._response = message.response
                elif message.HasField("part"):
                    yield message.part

    async def response(self) -> Response:
        """Returns the whole response. Reads the remaining parts first. Leaving the loop over the
        parts early cancels the call, and this then raises LinnetError."""
        if self._response is None:
            async for _ in self:
                pass
        if self._response is None:
            raise no_response()
        return self._response


class _Slots:
    """Lets at most so many calls of a plan run at once."""

    def __init__(self) -> None:
        self._most, self._running = MAX_CALLS_IN_FLIGHT, 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> int:
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self._most)
            self._running += 1
        return self._most

    async def __aexit__(self, *error: object) -> None:
        self._running -= 1
        async with self._changed:
            self._changed.notify_all()

    def lower(self) -> None:
        """From now on, as many as run beside the caller."""
        self._most = max(1, min(self._most, self._running) - 1)


async def _run_plan(
    plan: Plan,
    answers: Callable[[list[str]], Awaitable[list[TextAnswer]]],
    first_alone: bool = False,
) -> str | list[str]:
    """Runs the calls of a plan, a few at once to keep the server busy, and one that is too large in
    smaller ones; the first error ends all. Where the server has no room for so many, the calls of
    the plan may be the reason: then fewer are made at once. With `first_alone` the first one ends
    before the others begin."""
    slots = _Slots()

    async def run(parts: list[Part]) -> None:
        while True:
            async with slots as most:
                try:
                    with plan.naming(parts) as contents:
                        plan.answer(parts, await answers(contents))
                    return
                except LinnetError as error:
                    smaller = plan.smaller(parts, error)
                    if not smaller and (error.reason not in BUSY or most == 1):
                        raise
                    if not smaller:
                        slots.lower()
            if smaller:
                for call in smaller:
                    await run(call)
                return

    calls = plan.calls()
    if first_alone and (first := next(calls, None)):
        await run(first)
    tasks = [asyncio.ensure_future(run(call)) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return plan.answers()


class AsyncClient:
    """The asynchronous Client: its methods are awaited, and a list of strings is sent in concurrent
    calls. Create and use it in one event loop. Cancelling the task that awaits a call cancels the
    call on the server as well."""

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
        self._ready: asyncio.Future[None] | None = None

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
        """Cancels the calls in flight and closes the connection."""
        await self._channel.close(None)
        await self._health_channel.close(None)

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
            return await self._unary(self._text.Translate, text, timeout, request_id)
        settings = translation(to, source, model, glossary, options, direct_only, reranking)
        plan = Plan.of(text)

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.TranslateRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._unary(self._text.Translate, request, timeout, request_id)
            keep_language(settings, reply)
            return list(reply.translations)

        return await _run_plan(plan, answers, first_alone=not source)

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
            return await self._unary(self._text.Summarize, text, timeout, request_id)
        settings = summary(language, model, words, sentences, style)

        async def answers(contents: list[str]) -> list[TextAnswer]:
            request = api.SummarizeRequest()
            request.CopyFrom(settings)
            request.contents.extend(contents)
            reply = await self._unary(self._text.Summarize, request, timeout, request_id)
            keep_language(settings, reply)
            return list(reply.summaries)

        return await _run_plan(Plan.of(text, whole=True), answers, first_alone=not language)

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
        request = api.GetModelRequest()
        set_field(request, "name", name)
        return await self._unary(self._text.GetModel, request, timeout, request_id)

    def stream_translate(
        self, request: api.TranslateRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.TranslateResponse]:
        check_message(request, api.TranslateRequest, "request")
        message = api.StreamTranslateRequest(request=request)
        begin = self._starter(self._text.StreamTranslate, message, request_id)
        return AsyncStream(self, begin, self._limit(timeout))

    def stream_summarize(
        self, request: api.SummarizeRequest, *, timeout: float | None = None, request_id: str = ""
    ) -> AsyncStream[api.SummarizeResponse]:
        check_message(request, api.SummarizeRequest, "request")
        message = api.StreamSummarizeRequest(request=request)
        begin = self._starter(self._text.StreamSummarize, message, request_id)
        return AsyncStream(self, begin, self._limit(timeout))

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
        failure = _IteratorError()

        async def messages() -> AsyncIterator[api.TranslateDocumentRequest]:
            yield first
            async for line in failure.watch(lines):
                yield api.TranslateDocumentRequest(lines=[line])

        results = self._results(self._text.TranslateDocument, messages(), failure, request_id)
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
        failure = _IteratorError()

        async def messages() -> AsyncIterator[api.SummarizeDocumentRequest]:
            yield first
            async for line in failure.watch(texts):
                yield api.SummarizeDocumentRequest(lines=[line])

        results = self._results(self._text.SummarizeDocument, messages(), failure, request_id)
        async for result in results:
            yield result

    async def _results(
        self,
        method: Callable[..., Any],
        messages: AsyncIterator[Any],
        failure: _IteratorError,
        request_id: str,
    ) -> AsyncIterator[tuple[int, Any]]:
        await self._wait()
        call = self._started(method, messages, None, request_id)
        async with _in_flight(call, self.options, failure=failure):
            async for result in call:
                failed = result.HasField("error")
                yield result.sequence_id, LinnetError(result.error) if failed else result.response

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Same as Client.is_serving."""
        request = health_pb2.HealthCheckRequest()
        set_field(request, "service", service)
        check: grpc.UnaryUnaryMultiCallable[Any, health_pb2.HealthCheckResponse]
        check = cast(Any, self._check)
        answer = await self._unary(check, request, timeout, "")
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def _has_waited(self) -> bool:
        return self.options.wait == 0 or (self._ready is not None and self._ready.done())

    async def _wait(self) -> None:
        """Waits once, all first calls together, for a server that is starting; the call itself
        then reports any error."""
        if self._has_waited():
            return
        if self._ready is None:
            self._ready = asyncio.ensure_future(self._wait_until_ready())
        await asyncio.shield(self._ready)  # cancelling one call leaves the others waiting

    async def _wait_until_ready(self) -> None:
        with suppress(TimeoutError, grpc.aio.UsageError):  # UsageError: the channel is closed
            async with asyncio.timeout(self.options.wait):
                await self._channel.channel_ready()
                await self._wait_behind_proxy()

    async def _wait_behind_proxy(self) -> None:
        """Checks the health until it is not a proxy that answers, for a server that is starting."""
        request = health_pb2.HealthCheckRequest()
        while True:
            try:
                await self._answer(cast(Any, self._check)(request, metadata=self._headers.of("")))
                return
            except LinnetError as error:
                if not shared.is_starting(error):
                    return
            await asyncio.sleep(shared.WAIT_INTERVAL)

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
            return method(request, timeout=limit, metadata=metadata)
        except grpc.RpcError as error:
            raise LinnetError.of(error, self.options) from error
        except (grpc.aio.UsageError, ValueError) as error:  # the channel is closed
            raise LinnetError.local(str(error), grpc.StatusCode.FAILED_PRECONDITION) from error

    async def _unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        timeout: float | None,
        request_id: str,
    ) -> Answer:
        await self._wait()
        limit = self._limit(timeout)
        end = time.monotonic() + limit
        begin = self._starter(method, request, request_id)
        try:
            answer: Answer = await self._answer(begin(limit), limit)
            return answer
        except LinnetError as error:
            left = shared.time_for_another_server(self.options, error, end)
            if not left:
                raise
        answer = await self._answer(begin(left), limit)
        return answer

    async def _answer(self, call: Any, timeout: float | None = None) -> Any:
        async with _in_flight(call, self.options, timeout):
            return await call
