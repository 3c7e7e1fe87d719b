"""DeepL's API, version 2 of texts: https://developers.deepl.com/api-reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from ..body import Fields
from ..glossaries import MAX_ENTRIES, Glossaries
from ..languages import name_of
from ..problem import Problem, invalid
from ..translator import Caller, Job
from .base import HTML, Face, answer

# deepl 1.32.0 leaves a request after 10 s and sends it again at once: what runs is kept for it.
KEEP_SECONDS = 5.0
# Targets that DeepL's clients refuse without a variant.
_VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT")}
# What DeepL's clients send and a model cannot follow; the answer says so in X-Linnet-Ignored.
_IGNORED = (
    "context",
    "custom_instructions",
    "formality",
    "model_type",
    "outline_detection",
    "preserve_formatting",
    "split_sentences",
    "style_id",
    "tag_handling_version",
    "translation_memory_id",
    "translation_memory_threshold",
)
# Lists of MarkupOptions, which have no effect without tag_handling.
_TAG_LISTS = ("ignore_tags", "splitting_tags", "non_splitting_tags")
_MAX_NAMES = 256  # in a list
_MAX_GLOSSARIES = 5  # of a request
_MIME_TYPES = {"": "", "html": HTML, "xml": "application/xml"}  # by tag_handling
Terms = tuple[tuple[str, str], ...]
_NO_CHOICE = ("default", "prefer_more", "prefer_less", "", None)


def variants(code: str) -> tuple[str, ...]:
    """The codes of a target language as DeepL's clients name it."""
    return _VARIANTS.get(code, (code.upper(),))


class DeepL(Face):
    name = "deepl"
    # An unknown language is a bad request there; a wrong token is forbidden.
    statuses: ClassVar[Mapping[int, int]] = {401: 403, 404: 400}
    names: ClassVar[Mapping[str, str]] = {
        "contents": "text",
        "source_language_code": "source_lang",
        "target_language_code": "target_lang",
    }

    def __init__(self, translator: Any, options: Any, glossaries: Glossaries):
        super().__init__(translator, options)
        self.glossaries = glossaries

    def routes(self) -> list[web.RouteDef]:
        return [
            self.route("POST", "/v2/translate", self._translate),
            self.route("GET", "/v2/languages", self._languages),
            self.route("POST", "/v2/languages", self._languages),
            self.route("GET", "/v2/usage", self._usage),
            self.route("POST", "/v2/usage", self._usage),
        ]

    def error(self, problem: Problem, status: int) -> Any:
        return {"message": problem.message}

    def terms(self, caller: Caller, fields: Fields, source: str, target: str) -> Terms:
        """The terms of the glossaries that a request names. If several have a term, that of the
        first one counts."""
        names = _names(fields, "glossary_ids") if fields.get("glossary_ids") else ()
        if one := fields.text("glossary_id", ""):
            names = (one, *names)
        if not names:
            return ()
        if not source:
            raise invalid("source_lang", "is missing: a glossary needs it")
        if len(names) > _MAX_GLOSSARIES:
            raise invalid("glossary_ids", f"names {len(names)}, at most {_MAX_GLOSSARIES} are read")
        found: dict[str, str] = {}
        for name in names:
            for term, wanted in self.glossaries.terms(caller.token, name, source, target):
                found.setdefault(term, wanted)
        if len(found) > MAX_ENTRIES:
            said = f"has {len(found)} terms in all, at most {MAX_ENTRIES} are read: name fewer"
            raise invalid("glossary_ids", said)
        return tuple(found.items())

    async def _translate(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        caller = self.caller(request, fields)
        texts = fields.texts("text", self.options.max_texts)
        source, target = fields.text("source_lang", ""), fields.text("target_lang")
        check_formality(fields)
        tags = fields.choice("tag_handling", ("xml", "html", ""), "")
        lists = _TAG_LISTS if tags else ()
        markup = tuple((name, _names(fields, name)) for name in lists if fields.get(name))
        job = Job(
            tuple(texts),
            source,
            target,
            glossary=self.terms(caller, fields, source, target),
            mime_type=_MIME_TYPES[tags],
            markup=markup,
        )
        answers = await self.translator.translate(caller, job, KEEP_SECONDS)
        said = [
            self.warned(
                {
                    "detected_source_language": one.source.upper(),
                    "text": one.text,
                    "billed_characters": len(text),
                },
                one,
            )
            for text, one in zip(texts, answers, strict=True)
        ]
        return answer({"translations": said}, headers=ignored(fields, with_tags=bool(tags)))

    async def _languages(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        kind = fields.choice("type", ("source", "target"), "source")
        pairs = await self.translator.pairs(self.caller(request, fields))
        said: list[dict[str, Any]]
        if kind == "source":
            said = [{"language": it.upper(), "name": name_of(it)} for it in pairs.sources()]
        else:
            said = [
                {
                    "language": code,
                    "name": name_of(language) + _variant_name(code),
                    "supports_formality": False,
                }
                for language in pairs.all_targets()
                for code in variants(language)
            ]
        return answer(said)

    async def _usage(self, request: web.Request) -> web.Response:
        """The server counts no characters over time, so there is no limit that could be reached."""
        await self.translator.pairs(self.caller(request, await self.fields(request)))
        return answer({"character_count": 0, "character_limit": 1_000_000_000_000})


def _variant_name(code: str) -> str:
    names = {"EN-GB": "British", "EN-US": "American", "PT-BR": "Brazilian", "PT-PT": "European"}
    return f" ({names[code]})" if code in names else ""


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    """The names in a field that holds a list of them, or one text with commas between them."""
    names = ",".join(fields.texts(name, _MAX_NAMES)).split(",")
    return tuple(stripped for it in names if (stripped := it.strip()))


def check_formality(fields: Fields) -> None:
    """Raises Problem for a formality that the caller wants in any case."""
    if fields.text("formality", "default") not in _NO_CHOICE:
        raise invalid(
            "formality",
            f'"{fields.text("formality")[:20]}" is not supported for this language: leave it out, '
            'or use "prefer_more" or "prefer_less"',
        )


def ignored(fields: Fields, with_tags: bool = True) -> dict[str, str]:
    """The header that names fields without an effect."""
    names = _IGNORED if with_tags else (*_IGNORED, *_TAG_LISTS)
    used = [name for name in names if fields.get(name) not in _NO_CHOICE]
    return {"X-Linnet-Ignored": ", ".join(used)} if used else {}
