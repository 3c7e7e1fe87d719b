"""Translations that caches may keep: GET with the text in the URL.

/v1/translate is asked for again each time, and compared by its ETag. /v1/answers/DIGEST/translate
is valid for ever: the digest names all that determines an answer beside the text and the languages,
that is the model (its file, version, options, compute type and device) and the server's version.
"""

from __future__ import annotations

import hashlib
import time
from urllib.parse import urlencode

from aiohttp import web
from linnet.v1 import text_service_pb2 as api

from .. import server_metrics
from ..body import query_fields
from ..options import Options
from ..problem import Problem, missing
from ..translator import LANGUAGES_SECONDS, Caller, Job, Translator
from .base import answer
from .native import Native

FOREVER = "public, max-age=31536000, immutable"
# Devices and compute types whose answers do not depend on what else is in the batch. Others do so
# with the setting batch-invariant, which the API does not tell.
_INVARIANT = {("cpu", "float32"), ("cpu", "int8")}
_TOKEN_NAMES = {"key", "token"}


def digest_of(model: api.Model, server_version: str) -> str:
    """What determines the answers of a model, as 32 hexadecimal digits."""
    same = api.Model()
    same.CopyFrom(model)
    same.ClearField("state")  # where the weights are at the moment
    said = same.SerializeToString(deterministic=True) + server_version.encode()
    return hashlib.sha256(said).hexdigest()[:32]


class Answers(Native):
    def __init__(self, translator: Translator, options: Options):
        super().__init__(translator, options)
        self._last: tuple[float, dict[str, api.Model]] = (-LANGUAGES_SECONDS, {})

    def routes(self) -> list[web.RouteDef]:
        return [
            self.route("GET", "/v1/translate", self._current),
            self.route("GET", "/v1/answers/{digest}/translate", self._immutable),
        ]

    def _query(self, request: web.Request, known: set[str]) -> dict[str, str]:
        """The fields of the URL. A field that has no effect is refused: caches would keep an answer
        for each of its values."""
        query = query_fields(request)
        if twice := [name for name, value in query.items() if isinstance(value, list)]:
            raise Problem(400, f"the URL has {twice[0][:40]} twice: send it once", "MALFORMED")
        allowed = known | _TOKEN_NAMES if self.options.url_tokens else known
        if unknown := sorted(set(query) - allowed):
            raise Problem(
                400, f"the URL takes {', '.join(sorted(known))}, not {unknown[0][:40]}", "BAD_FIELD"
            )
        for name in ("q", "target"):
            if not query.get(name):
                raise missing(name)
        return query

    async def _current(self, request: web.Request) -> web.Response:
        """q, target, and optionally source and model. With a source, Content-Location is the URL at
        which this answer stays."""
        query = self._query(request, {"q", "source", "target", "model"})
        caller = self.caller(request, {})
        job = Job((query["q"],), query.get("source", ""), query["target"], query.get("model", ""))
        said, model = await self._translate(caller, job)
        if caller.token and not self.options.shared_cache:
            return said
        if job.source and (digest := await self._digest(caller, model, job)):
            same = urlencode({"q": query["q"], "source": job.source, "target": job.target})
            said.headers["Content-Location"] = f"/v1/answers/{digest}/translate?{same}"
        return _tagged(request, said, "public, no-cache")

    async def _immutable(self, request: web.Request) -> web.Response:
        """q, source and target, for the model that has the digest before and after the call."""
        query = self._query(request, {"q", "source", "target"})
        if not query.get("source"):
            raise missing("source")
        caller = self.caller(request, {})
        if caller.token and not self.options.shared_cache:
            raise Problem(
                403,
                "answers to callers with a token are not for caches: use POST /v1/translate, or "
                "start linnet-http with --shared-cache",
                "PERMISSION_DENIED",
            )
        digest = request.match_info["digest"]
        model = _with(digest, await self._known(caller))
        job = Job((query["q"],), query["source"], query["target"], model.name)
        said, _ = await self._translate(caller, job)
        _with(digest, await self._read(caller))
        return _tagged(request, said, FOREVER)

    async def _translate(self, caller: Caller, job: Job) -> tuple[web.Response, str]:
        """The answer without timings, so that equal requests have equal bytes, and its model."""
        (one,) = await self.translator.translate(caller, job)
        body = {
            "text": one.text,
            "detected_language": "" if job.source else one.source,
            "model": one.model,
        }
        return answer(self.warned(body, one)), one.model

    async def _read(self, caller: Caller) -> dict[str, api.Model]:
        """The models that are served at this moment and answer equally each time, by digest."""
        version = await server_metrics.version(self.options)
        reply = await self.translator.call(caller, self.translator.client.list_models)
        digests = {
            digest_of(model, version): model
            for model in reply.models
            if (model.device, model.compute_type) in _INVARIANT
        }
        self._last = time.monotonic(), digests
        return digests

    async def _known(self, caller: Caller) -> dict[str, api.Model]:
        """Those of a moment ago."""
        read, digests = self._last
        return digests if time.monotonic() - read < LANGUAGES_SECONDS else await self._read(caller)

    async def _digest(self, caller: Caller, name: str, job: Job) -> str:
        """The digest of the model that answered; "" if two did, or if it cannot be told."""
        try:
            digests = await self._known(caller)
        except Problem:
            return ""
        for digest, model in digests.items():
            pairs = [
                (it.source_language_code, it.target_language_code) for it in model.language_pairs
            ]
            if model.name == name and (job.source, job.target) in pairs:
                return digest
        return ""


def _with(digest: str, digests: dict[str, api.Model]) -> api.Model:
    if digest not in digests:
        raise Problem(
            404,
            "no model that is served has this digest: Content-Location of GET /v1/translate names "
            "the current one",
            "MODEL_NOT_FOUND",
        )
    return digests[digest]


def _tagged(request: web.Request, response: web.Response, kept: str) -> web.Response:
    """The response with a strong ETag of its bytes, or 304 if the client has them."""
    assert isinstance(response.body, bytes)
    tag = hashlib.sha256(response.body).hexdigest()[:32]
    if any(it.value in (tag, "*") for it in request.if_none_match or ()):
        location = response.headers.get("Content-Location")
        response = web.Response(status=304)
        if location:
            response.headers["Content-Location"] = location
    response.etag = tag
    response.headers["Cache-Control"] = kept
    return response
