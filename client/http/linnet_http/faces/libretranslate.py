"""LibreTranslate's API (1.9.6): https://github.com/LibreTranslate/LibreTranslate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from aiohttp import web
from linnet_files import FORMATS

from ..body import Fields
from ..languages import from_libre, name_of
from ..problem import Problem, missing
from ..translator import Answer, Job
from .base import HTML, Face, answer

MAX_ALTERNATIVES = 7  # so that beams stay small


class LibreTranslate(Face):
    name = "libretranslate"
    # 404 is for paths; a key that is wrong or missing is 403.
    statuses: ClassVar[Mapping[int, int]] = {401: 403, 404: 400}
    names: ClassVar[Mapping[str, str]] = {
        "contents": "q",
        "source_language_code": "source",
        "target_language_code": "target",
    }

    def routes(self) -> list[web.RouteDef]:
        # POST /translate is shared with other faces, see dialects.py.
        return [
            self.route("POST", "/detect", self._detect),
            self.route("GET", "/languages", self._languages),
            self.route("GET", "/frontend/settings", self._settings),
            self.route("GET", "/spec", self._spec),
        ]

    def error(self, problem: Problem, status: int) -> Any:
        return {"error": problem.message}

    async def translate(self, request: web.Request, fields: Fields) -> web.Response:
        """POST /translate with q, source and target."""
        texts = fields.texts("q", self.options.max_texts)
        is_list = not isinstance(fields["q"], str)
        if not is_list and not texts[0]:
            raise missing("q")
        source, target = from_libre(fields.text("source")), from_libre(fields.text("target"))
        if not target:
            raise Problem(
                400, "target is missing: it must be a language", "MISSING", field="target"
            )
        is_html = fields.choice("format", ("text", "html", ""), "text") == "html"
        count = fields.number("alternatives", 0, 0, MAX_ALTERNATIVES)
        job = Job(
            tuple(texts), source, target, alternatives=count, mime_type=HTML if is_html else ""
        )
        answers = await self.translator.translate(self.caller(request, fields), job)
        said: dict[str, list[Any]] = {
            "translatedText": [one.text for one in answers],
            "detectedLanguage": [_detected(one) for one in answers],
        }
        if count:
            said["alternatives"] = [list(one.alternatives) for one in answers]
        if is_list:
            if any(one.warnings for one in answers):
                said["warnings"] = [self.warned({}, one).get("warnings", []) for one in answers]
            return answer(said)
        return answer(self.warned({name: values[0] for name, values in said.items()}, answers[0]))

    async def _detect(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        text = fields.text("q")
        if not text:
            raise missing("q")
        if text.isspace():
            return answer([])
        found = await self.detect(self.caller(request, fields), [text])
        return answer(
            [
                {"confidence": round(100 * it.confidence, 1), "language": it.language_code}
                for it in found[0].languages
            ]
        )

    async def _languages(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        pairs = await self.translator.pairs(self.caller(request, fields))
        return answer(
            [
                {"code": code, "name": name_of(code), "targets": pairs.reachable(code)}
                for code in pairs.sources()
            ]
        )

    async def _settings(self, request: web.Request) -> web.Response:
        pairs = await self.translator.pairs(self.caller(request, {}))
        source = min(pairs.targets, default="auto")
        first = {"source": source, "target": min(pairs.targets.get(source, ()), default="en")}
        return answer(
            {
                "apiKeys": self.options.key_required,
                "charLimit": -1,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": self.options.key_required,
                "language": {
                    side: {"code": code, "name": name_of(code)} for side, code in first.items()
                },
                "suggestions": False,
                "supportedFilesFormat": sorted(it for one in FORMATS for it in one.extensions),
            }
        )

    async def _spec(self, request: web.Request) -> web.Response:
        return answer(_SPEC)


_FORMS = ("application/json", "application/x-www-form-urlencoded")
_TYPES = {"alternatives": "integer", "file": "file"}  # of fields that are no strings


def _operation(
    fields: str, schema: dict[str, Any], method: str = "post", consumes: Sequence[str] = _FORMS
) -> dict[str, Any]:
    """An operation of Swagger 2.0 whose form has these fields; "*" marks those it needs."""
    return {
        method: {
            "produces": ["application/json"],
            "consumes": list(consumes),
            "parameters": [
                {
                    "name": name.rstrip("*"),
                    "in": "formData",
                    "type": _TYPES.get(name.rstrip("*"), "string"),
                    "required": name.endswith("*"),
                }
                for name in fields.split()
            ],
            "responses": {
                "200": {"description": "The answer", "schema": schema},
                **{
                    status: {"description": said, "schema": _ERROR}
                    for status, said in _PROBLEMS.items()
                },
            },
        }
    }


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_STRING, _NUMBER = {"type": "string"}, {"type": "number"}
_ERROR = _object(error=_STRING)
_PROBLEMS = {
    "400": "The request is wrong, or no model translates these languages",
    "403": "The API key is missing or unknown",
    "413": "The request is too large",
    "429": "The server is busy: retry after Retry-After seconds",
    "503": "The server cannot be reached",
}
_DETECTED = _object(confidence=_NUMBER, language=_STRING)
_TRANSLATED = _object(
    translatedText=_STRING,
    detectedLanguage=_DETECTED,
    alternatives=_array(_STRING),
    warnings=_array(_object(reason=_STRING, message=_STRING)),
)
_LANGUAGE = _object(code=_STRING, name=_STRING, targets=_array(_STRING))
_SPEC = {
    "swagger": "2.0",
    "info": {"title": "LibreTranslate", "version": "1.9.6", "description": "Served by Linnet"},
    "basePath": "/",
    "paths": {
        "/translate": _operation("q* source* target* format alternatives api_key", _TRANSLATED),
        "/translate_file": _operation(
            "file* source* target* api_key",
            _object(translatedFileUrl=_STRING),
            consumes=["multipart/form-data"],
        ),
        "/detect": _operation("q* api_key", _array(_DETECTED)),
        "/languages": _operation("", _array(_LANGUAGE), "get"),
        "/frontend/settings": _operation("", _object(), "get"),
        "/health": _operation("", _object(status=_STRING), "get"),
    },
}


def _detected(one: Answer) -> dict[str, Any]:
    """Always present: some clients read it without looking whether it is there."""
    return {"confidence": round(100 * one.confidence), "language": one.source or "en"}
