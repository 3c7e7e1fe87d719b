"""DeepL's API of glossaries, versions 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from aiohttp import web

from ..body import Fields, query_fields
from ..glossaries import Glossary, format_tsv, language, parse
from ..problem import Problem, invalid
from .base import answer
from .deepl import DeepL

Pair = tuple[str, str]
Terms = list[tuple[str, str]]


class DeepLGlossaries(DeepL):
    statuses: ClassVar[Mapping[int, int]] = {401: 403}

    def routes(self) -> list[web.RouteDef]:
        one = "/v3/glossaries/{id}"
        return [
            self.route("GET", "/v2/glossary-language-pairs", self._pairs),
            self.route("POST", "/v2/glossaries", self._create_v2),
            self.route("GET", "/v2/glossaries", self._list_v2),
            self.route("GET", "/v2/glossaries/{id}", self._get_v2),
            self.route("GET", "/v2/glossaries/{id}/entries", self._entries_v2),
            self.route("DELETE", "/v2/glossaries/{id}", self._delete),
            self.route("POST", "/v3/glossaries", self._create_v3),
            self.route("GET", "/v3/glossaries", self._list_v3),
            self.route("GET", one, self._get_v3),
            self.route("PATCH", one, self._patch_v3),
            self.route("DELETE", one, self._delete),
            self.route("GET", one + "/entries", self._entries_v3),
            self.route("PUT", one + "/dictionaries", self._put_v3),
            self.route("DELETE", one + "/dictionaries", self._delete_v3),
        ]

    async def _owner(self, request: web.Request, fields: Mapping[str, object]) -> str:
        """The token of a caller whom the server knows: else anybody could fill the store."""
        caller = self.caller(request, fields)
        await self.translator.pairs(caller)
        return caller.token

    async def _check(self, request: web.Request, fields: Fields, wanted: Iterable[Pair]) -> None:
        """Raises Problem for languages for which no model can use a glossary."""
        served = (await self.translator.pairs(self.caller(request, fields))).targets
        known = {(language(it), language(target)) for it in served for target in served[it]}
        for source, target in wanted:
            if (source, target) not in known:
                raise Problem(
                    400,
                    f"no model translates {source[:20]} to {target[:20]} directly, as a glossary "
                    "needs it: /v2/glossary-language-pairs lists what there is",
                    "BAD_FIELD",
                )

    async def _pairs(self, request: web.Request) -> web.Response:
        pairs = await self.translator.pairs(self.caller(request, await self.fields(request)))
        said = [
            {"source_lang": source, "target_lang": target}
            for source in pairs.sources()
            for target in sorted(pairs.targets[source])
        ]
        return answer({"supported_languages": said})

    async def _create_v2(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        token = await self._owner(request, fields)
        pair, terms = _dictionary(fields)
        await self._check(request, fields, [pair])
        made = self.glossaries.create(token, fields.text("name"), {pair: terms})
        return answer(_v2(made), 201)

    async def _list_v2(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        found = [it for it in self.glossaries.of(token) if len(it.dictionaries) == 1]
        return answer({"glossaries": [_v2(it) for it in found]})

    async def _get_v2(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        return answer(_v2(self.glossaries.get(token, request.match_info["id"])))

    async def _entries_v2(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        glossary = self.glossaries.get(token, request.match_info["id"])
        source, target, _ = _only(glossary)
        terms = self.glossaries.terms(token, glossary.id, source, target)
        return web.Response(text=format_tsv(list(terms)), content_type="text/tab-separated-values")

    async def _delete(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        self.glossaries.delete(token, request.match_info["id"])
        return web.Response(status=204)

    async def _create_v3(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        token = await self._owner(request, fields)
        dictionaries = _dictionaries(fields)
        await self._check(request, fields, dictionaries)
        made = self.glossaries.create(token, fields.text("name"), dictionaries)
        return answer(_v3(made), 201)

    async def _list_v3(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        return answer({"glossaries": [_v3(it) for it in self.glossaries.of(token)]})

    async def _get_v3(self, request: web.Request) -> web.Response:
        token = await self._owner(request, await self.fields(request))
        return answer(_v3(self.glossaries.get(token, request.match_info["id"])))

    async def _patch_v3(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        token, glossary = await self._owner(request, fields), request.match_info["id"]
        self.glossaries.get(token, glossary)
        dictionaries = _dictionaries(fields) if "dictionaries" in fields else {}
        await self._check(request, fields, dictionaries)
        if "name" in fields:
            self.glossaries.rename(token, glossary, fields.text("name"))
        for pair, terms in dictionaries.items():
            self.glossaries.merge(token, glossary, pair, terms)
        return answer(_v3(self.glossaries.get(token, glossary)))

    async def _entries_v3(self, request: web.Request) -> web.Response:
        token, glossary = await self._owner(request, {}), request.match_info["id"]
        source, target = _pair(Fields(query_fields(request)))
        terms = self.glossaries.terms(token, glossary, source, target)
        said = {
            "source_lang": source,
            "target_lang": target,
            "entries": format_tsv(list(terms)),
            "entries_format": "tsv",
        }
        return answer({"dictionaries": [said]})

    async def _put_v3(self, request: web.Request) -> web.Response:
        fields = await self.fields(request)
        token, glossary = await self._owner(request, fields), request.match_info["id"]
        pair, terms = _dictionary(fields)
        await self._check(request, fields, [pair])
        self.glossaries.put(token, glossary, pair, terms)
        return answer({"source_lang": pair[0], "target_lang": pair[1], "entry_count": len(terms)})

    async def _delete_v3(self, request: web.Request) -> web.Response:
        token, glossary = await self._owner(request, {}), request.match_info["id"]
        self.glossaries.delete_dictionary(token, glossary, _pair(Fields(query_fields(request))))
        return web.Response(status=204)


def _pair(fields: Fields) -> Pair:
    return language(fields.text("source_lang")), language(fields.text("target_lang"))


def _dictionary(fields: Fields) -> tuple[Pair, Terms]:
    return _pair(fields), parse(fields.text("entries"), fields.text("entries_format", "tsv"))


def _dictionaries(fields: Fields) -> dict[Pair, Terms]:
    given = fields.get("dictionaries")
    if not isinstance(given, list) or not given:
        raise invalid("dictionaries", "must be a list with at least one dictionary")
    found: dict[Pair, Terms] = {}
    for number, one in enumerate(given):
        if not isinstance(one, dict):
            raise invalid(f"dictionaries[{number}]", "must be an object")
        pair, terms = _dictionary(Fields(one))
        if pair in found:
            raise invalid(f"dictionaries[{number}]", f"is for {pair[0]} to {pair[1]} once more")
        found[pair] = terms
    return found


def _only(glossary: Glossary) -> tuple[str, str, int]:
    if len(glossary.dictionaries) != 1:
        raise Problem(
            400,
            f"the glossary has {len(glossary.dictionaries)} dictionaries: use version 3 of the API",
            "BAD_FIELD",
        )
    return glossary.dictionaries[0]


def _v2(glossary: Glossary) -> dict[str, Any]:
    source, target, count = _only(glossary)
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        "source_lang": source,
        "target_lang": target,
        "creation_time": glossary.created,
        "entry_count": count,
    }


def _v3(glossary: Glossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "creation_time": glossary.created,
        "dictionaries": [
            {"source_lang": source, "target_lang": target, "entry_count": count}
            for source, target, count in glossary.dictionaries
        ],
    }
