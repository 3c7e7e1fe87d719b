"""What all faces have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from aiohttp import web

from ..body import Fields, read_fields
from ..caller import address_of, token_of
from ..options import Options
from ..problem import Problem
from ..translator import Answer, Caller, Translator

HTML = "text/html"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_FIELDS = re.compile(r"\b(?:contents|(?:source|target)_language_code)\b")


class Face:
    """An HTTP API: its paths, and the form of its answers and errors."""

    name: ClassVar[str] = ""  # the label of its metrics
    # The statuses that clients of this API expect instead.
    statuses: ClassVar[Mapping[int, int]] = {}
    # What this API calls the fields of the native one, which the server's messages name.
    names: ClassVar[Mapping[str, str]] = {}

    def __init__(self, translator: Translator, options: Options):
        self.translator = translator
        self.options = options

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    def error(self, problem: Problem, status: int) -> Any:
        """The JSON of an error."""
        raise NotImplementedError

    def refusal(self, problem: Problem) -> web.Response:
        """The response to a request that fails."""
        status = self.statuses.get(problem.status, problem.status)
        problem.message = renamed(problem.message, self.names)
        return answer(self.error(problem, status), status, problem.headers())

    def route(self, method: str, path: str, handler: Handler) -> web.RouteDef:
        """A route whose errors have the form of this face."""

        async def named(request: web.Request) -> web.StreamResponse:
            request[FACE] = self
            return await handler(request)

        return web.route(method, path, named)

    async def fields(self, request: web.Request) -> Fields:
        return await read_fields(request, self.options.max_body_bytes)

    def caller(self, request: web.Request, fields: Mapping[str, object]) -> Caller:
        return Caller(token_of(request, fields, self.options), address_of(request, self.options))

    async def detect(self, caller: Caller, texts: list[str]) -> list[Any]:
        """The LanguageDetection of each text."""
        detect = self.translator.client.detect_language
        found: list[Any] = await self.translator.call(caller, detect, texts)
        return found

    def warned(self, said: dict[str, Any], one: Answer) -> dict[str, Any]:
        """The JSON of a translation with its warnings, if there are any: clients that do not know
        the name ignore it."""
        if one.warnings:
            said["warnings"] = [
                {"reason": reason, "message": renamed(message, self.names)}
                for reason, message in one.warnings
            ]
        return said


def renamed(message: str, names: Mapping[str, str]) -> str:
    """A message about fields of the native API, with the names that another API has for them."""
    return _FIELDS.sub(lambda found: names.get(found[0], found[0]), message)


FACE = web.RequestKey("face", Face)  # of a request, once its route is known


encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(text=encode(body), status=status, headers=headers)
