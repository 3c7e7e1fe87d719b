"""Linnet's own API as JSON: the messages of proto/linnet/v1/text_service.proto, with their field
names; streams are server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import linnet
from aiohttp import web
from google.protobuf import json_format
from google.protobuf.message import Message
from linnet.v1 import text_service_pb2 as api

from ..body import parse_json, read_bytes
from ..caller import metadata_of
from ..problem import Problem, invalid
from ..translator import Caller
from .base import Face, answer, encode

# Proxies close a connection that is silent for long; a comment is no event.
PING_SECONDS = 15.0


def to_json(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


@dataclass(frozen=True)
class Method:
    """A method of TextService: the last part of its path, its messages, and how it is called."""

    path: str
    request: type[Message]
    response: type[Message]  # of one answer; the last event of a stream
    call: str  # of linnet.AsyncClient
    kind: Literal["unary", "stream", "document"] = "unary"


_TRANSLATE = api.TranslateRequest, api.TranslateResponse
_SUMMARIZE = api.SummarizeRequest, api.SummarizeResponse
_DETECT = api.DetectLanguageRequest, api.DetectLanguageResponse
METHODS = (
    Method("translate", *_TRANSLATE, "translate"),
    Method("summarize", *_SUMMARIZE, "summarize"),
    Method("score", api.ScoreRequest, api.ScoreResponse, "score"),
    Method("detect-language", *_DETECT, "detect_language"),
    Method("translate/stream", *_TRANSLATE, "stream_translate", "stream"),
    Method("summarize/stream", *_SUMMARIZE, "stream_summarize", "stream"),
    Method("translate/document", *_TRANSLATE, "translate_document", "document"),
    Method("summarize/document", *_SUMMARIZE, "summarize_document", "document"),
)


class Native(Face):
    name = "native"

    def routes(self) -> list[web.RouteDef]:
        serve = {"unary": self._unary, "stream": self._stream, "document": self._document}
        return [
            *(
                self.route(
                    "POST",
                    f"/v1/{it.path}",
                    serve[it.kind](it.request, getattr(self.translator.client, it.call)),
                )
                for it in METHODS
            ),
            self.route("GET", "/v1/models", self._models),
            self.route("GET", "/v1/models/{name}", self._model),
        ]

    def error(self, problem: Problem, status: int) -> Any:
        said = {"code": status, "message": problem.message, "reason": problem.reason}
        return {"error": {**said, "field": problem.field} if problem.field else said}

    async def _json(self, request: web.Request) -> Any:
        if request.content_type != "application/json":
            raise Problem(415, "send the Content-Type application/json", "BAD_TYPE")
        return parse_json(await read_bytes(request, self.options.max_body_bytes))

    async def _message(self, request: web.Request, kind: type[Message]) -> tuple[Any, Caller]:
        """The body as a message, and the caller."""
        return _parsed(await self._json(request), kind), self.caller(request, {})

    def _unary(self, kind: type[Message], method: Callable[[Any], Awaitable[Message]]) -> Any:
        async def handler(request: web.Request) -> web.Response:
            message, caller = await self._message(request, kind)
            return answer(to_json(await self.translator.call(caller, method, message)))

        return handler

    def _stream(self, kind: type[Message], method: Callable[[Any], Any]) -> Any:
        async def handler(request: web.Request) -> web.StreamResponse:
            message, caller = await self._message(request, kind)
            with linnet.call_metadata(*metadata_of(caller.token, caller.address)):
                stream = method(message)

                async def events() -> Any:
                    async for part in stream:
                        yield "part", to_json(part)
                    yield "response", to_json(await stream.response())

                return await self._send(request, events())

        return handler

    def _document(self, kind: type[Message], method: Callable[..., Any]) -> Any:
        async def handler(request: web.Request) -> web.StreamResponse:
            body = await self._json(request)
            if not isinstance(body, dict) or not set(body) <= {"settings", "lines", "keep_order"}:
                raise Problem(
                    400, "the body must be an object of settings, lines and keep_order", "MALFORMED"
                )
            lines = body.get("lines")
            if not isinstance(lines, list) or not all(isinstance(it, str) for it in lines):
                raise Problem(400, "lines must be a list of strings", "BAD_FIELD", field="lines")
            keep_order = body.get("keep_order", True)
            if not isinstance(keep_order, bool):
                raise invalid("keep_order", "must be true or false")
            settings = _parsed(body.get("settings", {}), kind)
            caller = self.caller(request, {})
            with linnet.call_metadata(*metadata_of(caller.token, caller.address)):
                results = method(settings, lines, keep_order=keep_order)

                async def events() -> Any:
                    async for number, result in results:
                        if isinstance(result, linnet.LinnetError):
                            problem = Problem.of(result, self.options.timeout)
                            said = self.error(problem, problem.status)
                            yield "line", {"sequence_id": number, **said}
                        else:
                            yield "line", {"sequence_id": number, "response": to_json(result)}
                    yield "end", {"lines": len(lines)}

                return await self._send(request, events())

        return handler

    async def _send(self, request: web.Request, events: Any) -> web.StreamResponse:
        """Sends events (name, JSON) as they come. An error before the first is a status, a later
        one the event "error". The last event is always "response", "end" or "error": a stream
        that stops without one was cut."""
        # One task reads the stream: a context variable and grpc.aio belong to it.
        queue: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(1)

        async def read() -> None:
            try:
                async for event in events:
                    await queue.put(event)
            except linnet.LinnetError as error:
                await queue.put(("error", Problem.of(error, self.options.timeout)))

        reader = asyncio.create_task(read())
        try:
            name, data = await queue.get()
            if isinstance(data, Problem):
                raise data
            response = web.StreamResponse(
                headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
            )
            response.headers["X-Accel-Buffering"] = "no"  # nginx
            await response.prepare(request)
            while True:
                if isinstance(data, Problem):
                    data = self.error(data, data.status)["error"]
                await response.write(f"event: {name}\ndata: {encode(data)}\n\n".encode())
                if name in ("response", "end", "error"):
                    break
                while True:
                    try:
                        async with asyncio.timeout(PING_SECONDS):
                            name, data = await queue.get()
                        break
                    except TimeoutError:
                        await response.write(b": waiting\n\n")
            await response.write_eof()
            return response
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _models(self, request: web.Request) -> web.Response:
        call = self.translator.call
        models = await call(self.caller(request, {}), self.translator.client.list_models)
        return answer(to_json(models))

    async def _model(self, request: web.Request) -> web.Response:
        name, call = request.match_info["name"], self.translator.call
        model = await call(self.caller(request, {}), self.translator.client.get_model, name)
        return answer(to_json(model))


def _parsed(body: Any, kind: type[Message]) -> Any:
    if not isinstance(body, dict):
        raise Problem(400, "the message must be an object", "MALFORMED")
    _check_names(body, kind.DESCRIPTOR, "")
    try:
        return json_format.ParseDict(body, kind())
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise Problem(400, f"the message is wrong: {error}"[:400], "MALFORMED") from None


def _check_names(body: Mapping[str, Any], kind: Any, path: str) -> None:
    """Raises Problem with the path of a field that the message of the descriptor `kind` lacks."""
    fields = {**kind.fields_by_name, **kind.fields_by_camelcase_name}
    for name, value in body.items():
        if name not in fields:
            known = ", ".join(kind.fields_by_name)
            raise Problem(
                400,
                f"{path}{name[:80]} is not known: {kind.name} has the fields {known}",
                "UNKNOWN_FIELD",
                field=f"{path}{name[:80]}",
            )
        inner = fields[name].message_type
        if inner is None or inner.GetOptions().map_entry or inner.file.package != "linnet.v1":
            continue
        name = fields[name].name
        for number, one in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(one, dict):
                at = f"[{number}]" if isinstance(value, list) else ""
                _check_names(one, inner, f"{path}{name}{at}.")
