"""POST /translate: one path on which six APIs differ by their fields.

LibreTranslate      q, source, target
DeepLX              text, source_lang, target_lang            → data, alternatives
MTranServer, KISS   text, from, to, html                      → result; text, src
KISS (lists)        texts, from, to                           → translations [text, src]
nllb-serve          source, src_lang, tgt_lang (FLORES-200)   → translation
NeMo Curator        texts, src_lang, tgt_lang                 → translations
Immersive Translate text_list, source_lang, target_lang       → translations [text, detected…]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from aiohttp import web

from ..body import Fields
from ..languages import from_flores
from ..problem import NO_MODEL, Problem, invalid
from ..translator import Answer, Job
from .base import FACE, HTML, Face, answer, renamed
from .libretranslate import LibreTranslate

DEEPLX_ALTERNATIVES = 3


def _automatic(code: str) -> str:
    return "" if code.lower() in ("auto", "auto-detect", "detect") else code


class Dialects(Face):
    name = "dialects"
    statuses: ClassVar[Mapping[int, int]] = {401: 403}

    def __init__(self, libretranslate: LibreTranslate):
        super().__init__(libretranslate.translator, libretranslate.options)
        self._libretranslate = libretranslate

    def routes(self) -> list[web.RouteDef]:
        return [
            self.route("POST", "/translate", self._translate),
            self.route("POST", "/translate/batch", self._batch),  # MTranServer's
            # Addresses that the pages of these clients give as examples.
            self.route("POST", "/imme", self._translate),
            self.route("POST", "/kiss", self._translate),
            self.route("POST", "/deeplx", self._translate),
        ]

    def error(self, problem: Problem, status: int) -> Any:
        # `error` is LibreTranslate's, `code` and `message` are DeepLX's and MTranServer's.
        return {"code": status, "error": problem.message, "message": problem.message}

    async def _translate(self, request: web.Request) -> web.StreamResponse:
        fields = await self.fields(request)
        if "q" in fields:
            return await self._as_libretranslate(request, fields)
        for names, dialect in _DIALECTS.items():
            if all(name in fields for name in names):
                response: web.Response = await dialect(self, request, fields)
                return response
        known = ["q, source and target", *(" and ".join(names) for names in _DIALECTS)]
        raise Problem(
            400,
            f"the request has the fields {', '.join(sorted(fields))[:200] or 'none'}; this path "
            f"takes {'; or '.join(known)}",
            "MISSING",
        )

    async def _as_libretranslate(self, request: web.Request, fields: Fields) -> web.Response:
        request[FACE] = self._libretranslate
        return await self._libretranslate.translate(request, fields)

    async def _answers(
        self,
        request: web.Request,
        fields: Fields,
        texts: str,
        source: str,
        target: str,
        alternatives: int = 0,
        convert: Callable[[str], str] = str,
    ) -> list[Answer]:
        """Translates the texts in the field `texts` with the codes in the other two. Messages name
        these fields."""
        is_html = fields.get("html", False)
        if is_html not in (True, False, None, "true", "false"):
            raise invalid("html", "must be true or false")
        job = Job(
            tuple(fields.texts(texts, self.options.max_texts)),
            convert(_automatic(fields.text(source, ""))),
            convert(fields.text(target)),
            alternatives=alternatives,
            mime_type=HTML if is_html in (True, "true") else "",
        )
        names = {"contents": texts, "source_language_code": source, "target_language_code": target}
        try:
            answers = await self.translator.translate(self.caller(request, fields), job)
        except Problem as problem:
            problem.message = renamed(problem.message, names)
            raise
        return [
            replace(one, warnings=tuple((why, renamed(it, names)) for why, it in one.warnings))
            if one.warnings
            else one
            for one in answers
        ]

    async def _deeplx(self, request: web.Request, fields: Fields) -> web.Response:
        fields.text("text")  # not a list
        (one,) = await self._answers(
            request, fields, "text", "source_lang", "target_lang", DEEPLX_ALTERNATIVES
        )
        said = {
            "code": 200,
            "id": 0,
            "method": "Free",
            "data": one.text,
            "alternatives": list(one.alternatives),
            "source_lang": one.source.upper(),
            "target_lang": fields.text("target_lang").upper(),
        }
        return answer(self.warned(said, one))

    async def _one(self, request: web.Request, fields: Fields) -> web.Response:
        fields.text("text")
        (one,) = await self._answers(request, fields, "text", "from", "to")
        return answer(self.warned({"result": one.text, "text": one.text, "src": one.source}, one))

    async def _batch(self, request: web.Request) -> web.Response:
        answers = await self._answers(request, await self.fields(request), "texts", "from", "to")
        return answer({"results": _plain(answers)})

    async def _kiss_list(self, request: web.Request, fields: Fields) -> web.Response:
        answers = await self._answers(request, fields, "texts", "from", "to")
        said = [self.warned({"text": one.text, "src": one.source}, one) for one in answers]
        return answer({"translations": said})

    async def _nllb_serve(self, request: web.Request, fields: Fields) -> web.Response:
        answers = await self._answers(
            request, fields, "source", "src_lang", "tgt_lang", convert=from_flores
        )
        texts = _plain(answers)
        is_list = not isinstance(fields["source"], str)
        return answer({"translation": texts if is_list else texts[0]})

    async def _curator(self, request: web.Request, fields: Fields) -> web.Response:
        answers = await self._answers(
            request, fields, "texts", "src_lang", "tgt_lang", convert=from_flores
        )
        return answer({"translations": _plain(answers)})

    async def _immersive(self, request: web.Request, fields: Fields) -> web.Response:
        answers = await self._answers(request, fields, "text_list", "source_lang", "target_lang")
        said = [
            self.warned({"detected_source_lang": one.source, "text": one.text}, one)
            for one in answers
        ]
        return answer({"translations": said})


def _plain(answers: list[Answer]) -> list[str]:
    """The translations for an API that has no place for warnings. Raises Problem for a text that no
    model translates: nobody would see that it is unchanged."""
    for one in answers:
        for reason, message in one.warnings:
            if reason == NO_MODEL:
                raise Problem(404, message, NO_MODEL)
    return [one.text for one in answers]


# In this order: the fields that tell an API.
_DIALECTS: dict[tuple[str, ...], Callable[..., Any]] = {
    ("text_list", "target_lang"): Dialects._immersive,
    ("text", "target_lang"): Dialects._deeplx,
    ("texts", "tgt_lang"): Dialects._curator,
    ("source", "tgt_lang"): Dialects._nllb_serve,
    ("texts", "to"): Dialects._kiss_list,
    ("text", "to"): Dialects._one,
}
