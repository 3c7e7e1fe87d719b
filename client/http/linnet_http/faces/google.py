"""Google's Cloud Translation API, version 2 (basic)."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..body import Fields, query_fields
from ..languages import name_of
from ..problem import Problem, invalid
from ..translator import Job
from .base import HTML, Face, answer
from .libretranslate import LibreTranslate

MAX_TEXTS = 128
_PATH = "/language/translate/v2"


class Google(Face):
    name = "google"
    names = LibreTranslate.names

    def routes(self) -> list[web.RouteDef]:
        return [
            route
            for method in ("GET", "POST")
            for route in (
                self.route(method, _PATH, self._translate),
                self.route(method, _PATH + "/detect", self._detect),
                self.route(method, _PATH + "/languages", self._languages),
            )
        ]

    def error(self, problem: Problem, status: int) -> Any:
        reason = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "notFound"}
        reason |= {413: "uploadTooLarge", 429: "rateLimitExceeded"}
        detail = {
            "message": problem.message,
            "domain": "global",
            "reason": reason.get(status, "backendError" if status >= 500 else "invalid"),
        }
        return {"error": {"code": status, "message": problem.message, "errors": [detail]}}

    async def fields(self, request: web.Request) -> Fields:
        """Those of the URL and of the body, as Google has it."""
        named, fields = query_fields(request), await super().fields(request)
        for name in named:
            if named[name] != fields.get(name, named[name]):
                raise invalid(name, "is in the URL and in the body, with two values: send one")
        return Fields({**named, **fields})

    def _texts(self, fields: Fields) -> list[str]:
        return fields.texts("q", min(MAX_TEXTS, self.options.max_texts))

    async def _translate(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        texts = self._texts(fields)
        is_html = fields.choice("format", ("html", "text"), "html") == "html"
        source = fields.text("source", "")
        job = Job(tuple(texts), source, fields.text("target"), mime_type=HTML if is_html else "")
        said: list[dict[str, Any]] = []
        for one in await self.translator.translate(self.caller(request, fields), job):
            said.append(self.warned({"translatedText": one.text}, one))
            if not source:
                said[-1]["detectedSourceLanguage"] = one.source or "und"
        return answer({"data": {"translations": said}})

    async def _detect(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        found = await self.detect(self.caller(request, fields), self._texts(fields))
        said = []
        for one in found:
            first = one.languages[0] if one.languages else None
            said.append(
                [
                    {
                        "language": first.language_code if first else "und",
                        "isReliable": one.reliable,
                        "confidence": first.confidence if first else 0.0,
                    }
                ]
            )
        return answer({"data": {"detections": said}})

    async def _languages(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        pairs = await self.translator.pairs(self.caller(request, fields))
        with_names = "target" in fields
        codes = sorted({*pairs.sources(), *pairs.all_targets()})
        said = [{"language": it, **({"name": name_of(it)} if with_names else {})} for it in codes]
        return answer({"data": {"languages": said}})
