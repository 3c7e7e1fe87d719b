"""The application: the faces, the page, and what holds for every request."""

from __future__ import annotations

import importlib.resources
import json
import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from . import metrics, openapi, server_metrics
from .documents import Documents
from .faces.answers import Answers
from .faces.base import FACE, Face
from .faces.deepl import DeepL
from .faces.deepl_glossaries import DeepLGlossaries
from .faces.dialects import Dialects
from .faces.files import DeepLDocuments, LibreTranslateFiles
from .faces.google import Google
from .faces.libretranslate import LibreTranslate
from .faces.native import METHODS, Native
from .glossaries import Glossaries
from .options import Options
from .problem import Problem
from .translator import Translator

log = logging.getLogger("linnet_http")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_OPTIONS = web.AppKey("options", Options)
_TRANSLATOR = web.AppKey("translator", Translator)
_FACES = web.AppKey("faces", dict[str, Face])  # by the first part of their paths
_PREFLIGHT_SECONDS = 3600
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_PAGES = {"/": "index.html", "/status": "status.html"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# Headers that scripts of other origins may read.
_EXPOSED = "Content-Location, ETag, Retry-After, X-Linnet-Ignored"


def make(options: Options, glossaries: Glossaries) -> web.Application:
    """The application of one process. It connects to the server with its first request."""
    translator = Translator(options)
    documents = Documents(options.documents, translator)
    libretranslate = LibreTranslate(translator, options)
    dialects = Dialects(libretranslate)
    native, google = Native(translator, options), Google(translator, options)
    deepl = DeepLGlossaries(translator, options, glossaries)
    faces = [
        libretranslate,
        dialects,
        DeepL(translator, options, glossaries),
        deepl,
        DeepLDocuments(translator, options, glossaries, documents),
        LibreTranslateFiles(translator, options, documents),
        google,
        native,
        Answers(translator, options),
    ]
    app = web.Application(client_max_size=options.max_body_bytes, middlewares=[_guard])
    app[_OPTIONS], app[_TRANSLATOR] = options, translator
    app[_FACES] = {"v1": native, "server-metrics": native, "v2": deepl, "v3": deepl}
    app[_FACES] |= {"language": google, "": dialects}

    async def stop(_: web.Application) -> None:
        await documents.close()
        await translator.close()

    async def end(_: web.Application) -> None:
        metrics.RECORDER.write()
        glossaries.close()

    app.on_shutdown.append(stop)  # ends streams; aiohttp would wait for them
    app.on_cleanup.append(end)
    app.on_response_prepare.append(_finish_headers)
    for face in faces:
        app.add_routes(face.routes())
    app.add_routes([web.get("/health", _health), web.get("/metrics", _metrics)])
    app.add_routes([web.get("/server-metrics", _server_metrics)])
    app.add_routes([web.get("/openapi.json", _openapi())])
    app.add_routes([web.get(path, _file(name)) for path, name in _PAGES.items()])
    folder = importlib.resources.files(__package__) / "page"
    for asset in folder.iterdir():
        if not asset.name.endswith(".html"):
            app.router.add_get(f"/page/{asset.name}", _file(asset.name))
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Counts and logs a request, answers preflights, and makes every error a response in the form
    of the request's face. Texts and tokens are not logged, so neither is the query string."""
    started = time.monotonic()
    metrics.RECORDER.began()
    status = 499  # the client hung up
    try:
        response = await _answered(request, handler)
        status = response.status
        return response
    finally:
        path = request.match_info.route.resource
        metrics.RECORDER.ended(
            metrics.Ended(
                request.method,
                path.canonical if path else "unknown",
                getattr(request.get(FACE), "name", "other"),
                status,
                time.monotonic() - started,
            )
        )


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        return web.Response(status=204)
    try:
        _check_encoding(request)
        return await handler(request)
    except Problem as problem:
        return _face(request).refusal(problem)
    except web.RequestPayloadError:
        packed = request.headers.get("Content-Encoding", "")[:40]
        said = f"it is not what its Content-Encoding says, {packed}" if packed else "it is cut"
        wrong = Problem(400, f"the body cannot be read: {said}", "MALFORMED")
        return _face(request).refusal(wrong)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _face(request).refusal(_problem_of(request, error))
    except ConnectionResetError:
        raise  # the client hung up while a stream was written
    except Exception:
        log.exception("a request failed")
        failed = Problem(500, "the front end failed; its log has the cause", "INTERNAL")
        return _face(request).refusal(failed)


def _check_encoding(request: web.Request) -> None:
    """aiohttp unpacks two encodings and passes others on as they are."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise Problem(
            415,
            f"the Content-Encoding {encoding[:40]} is not supported: use gzip or deflate, or none",
            "BAD_TYPE",
        )


def _face(request: web.Request) -> Face:
    """The face of a request; of one whose path has no route, that of similar paths."""
    faces = request.app[_FACES]
    first = request.path.partition("/")[2].partition("/")[0]
    named: Face = request.get(FACE) or faces.get(first, faces[""])
    return named


def _problem_of(request: web.Request, error: web.HTTPException) -> Problem:
    if error.status == 404:
        path, hint = request.path, ""
        if "//" in path or (path.endswith("/") and path != "/"):
            hint = " (is there a slash too many in your program's address of this server?)"
        said = f'there is no such path, "{path[:80]}"{hint}; docs/HTTP.md lists them'
        return Problem(404, said, "NOT_FOUND")
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return Problem(405, f"{request.method} is not allowed here: use {allowed}", "BAD_METHOD")
    return Problem(error.status, error.reason, "MALFORMED")


async def _finish_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Sets the headers of every response. A cache may keep what says nothing, so all say it."""
    headers = response.headers
    headers.setdefault("Cache-Control", "no-store")
    headers["X-Content-Type-Options"] = "nosniff"
    headers.pop("Server", None)
    allowed, origin = request.app[_OPTIONS].cors_origins, request.headers.get("Origin", "")
    if not allowed:
        return
    if "*" not in allowed:
        headers["Vary"] = "Origin"  # whoever asks: a cache may give the response to another
        if origin not in allowed:
            return
    headers["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
    headers["Access-Control-Expose-Headers"] = _EXPOSED
    if request.method == "OPTIONS":
        headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE"
        asked = request.headers.get("Access-Control-Request-Headers", "")
        headers["Access-Control-Allow-Headers"] = asked or "Content-Type"
        headers["Access-Control-Max-Age"] = str(_PREFLIGHT_SECONDS)


async def _health(request: web.Request) -> web.Response:
    """200 while the server serves: for load balancers, and as LibreTranslate and NeMo Curator have
    it."""
    translator = request.app[_TRANSLATOR]
    try:
        serving = await translator.client.is_serving(timeout=5)
    except Exception:  # whatever it is, the server is not usable
        serving = False
    if serving:
        return web.json_response({"status": "ok"})
    return web.json_response({"status": "unavailable"}, status=503, headers={"Retry-After": "1"})


async def _metrics(request: web.Request) -> web.Response:
    body, kind = metrics.page()
    return web.Response(body=body, headers={"Content-Type": kind})


def _openapi() -> Handler:
    text = json.dumps(openapi.document(METHODS))

    async def handler(_: web.Request) -> web.Response:
        return web.json_response(text=text)

    return handler


async def _server_metrics(request: web.Request) -> web.Response:
    """The metrics page of the server, for the page /status, which may read this origin alone. Only
    for callers whom the server knows: clients and models are its labels."""
    await request.app[_TRANSLATOR].pairs(_face(request).caller(request, {}))
    page = await server_metrics.read(request.app[_OPTIONS])
    return web.Response(text=page, content_type="text/plain")


def _file(name: str) -> Handler:
    body = (importlib.resources.files(__package__) / "page" / name).read_bytes()
    headers = {
        "Content-Type": f"{_TYPES['.' + name.rsplit('.', 1)[1]]}; charset=utf-8",
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, headers=headers)

    return handler
