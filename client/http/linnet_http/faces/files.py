"""Files to translate: DeepL's documents (v2), and LibreTranslate's /translate_file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

import linnet
from aiohttp import BodyPartReader, web

from ..body import Fields, in_time
from ..caller import origin_of
from ..documents import Documents, State, failed
from ..glossaries import Glossaries
from ..languages import from_libre
from ..problem import Problem, invalid, missing
from .base import answer
from .deepl import DeepL, check_formality, ignored
from .libretranslate import LibreTranslate

MAX_FIELD_BYTES = 64 << 10  # of a field beside the file
_SECONDS_PER_TEXT = 0.05  # a first guess of seconds_remaining


@dataclass
class Upload:
    """A form with a file."""

    name: str = ""
    data: bytes = b""
    fields: dict[str, str] = field(default_factory=dict)


async def read_upload(request: web.Request, maximum: int) -> Upload:
    """Reads multipart/form-data with one file. Raises Problem as soon as the file is longer than
    `maximum` bytes, or the body takes too long."""
    if request.content_type != "multipart/form-data":
        raise Problem(415, "send the file as multipart/form-data", "BAD_TYPE")
    upload, has_file = Upload(), False
    try:
        async with in_time():
            async for part in await request.multipart():
                if not isinstance(part, BodyPartReader):
                    raise Problem(400, "the form is nested", "MALFORMED")
                is_file = part.name == "file"
                data = await _part(part, maximum if is_file else MAX_FIELD_BYTES)
                if is_file:
                    has_file = True
                    upload.name, upload.data = part.filename or "", data
                elif part.name:
                    upload.fields[part.name] = data.decode()
    except (ValueError, AssertionError) as error:
        raise Problem(400, f"the form cannot be read: {error}"[:200], "MALFORMED") from None
    if not has_file:
        raise missing("file")
    if not upload.data:
        raise Problem(400, "file is empty: send a file that has text", "EMPTY", field="file")
    upload.name = upload.fields.get("filename") or upload.name
    upload.name = upload.name.replace("\\", "/").rpartition("/")[2]
    return upload


async def _part(part: BodyPartReader, maximum: int) -> bytes:
    found = bytearray()
    while chunk := await part.read_chunk(64 << 10):
        found += chunk
        if len(found) > maximum:
            message = f"{part.name} has more than {maximum} bytes: split the file"
            raise Problem(413, message, "FILE_TOO_LARGE", field=part.name or "")
    return bytes(found)


class DeepLDocuments(DeepL):
    """https://developers.deepl.com/api-reference/document."""

    statuses: ClassVar[Mapping[int, int]] = {401: 403}

    def __init__(self, translator: Any, options: Any, glossaries: Glossaries, documents: Documents):
        super().__init__(translator, options, glossaries)
        self._documents = documents

    def routes(self) -> list[web.RouteDef]:
        return [
            self.route("POST", "/v2/document", self._upload),
            self.route("POST", "/v2/document/{id}", self._status),
            self.route("POST", "/v2/document/{id}/result", self._result),
        ]

    async def _upload(self, request: web.Request) -> web.Response:
        upload = await read_upload(request, self.options.max_file_bytes)
        fields = Fields(upload.fields)
        caller = self.caller(request, fields)
        source, target = fields.text("source_lang", ""), fields.text("target_lang")
        output = fields.text("output_format", "").lower()
        if output and not upload.name.lower().endswith(f".{output}"):
            raise invalid("output_format", f'is "{output[:20]}", it must be the format of the file')
        check_formality(fields)
        settings = linnet.TranslateRequest(source_language_code=source, target_language_code=target)
        for term, wanted in self.terms(caller, fields, source, target):
            settings.glossary.entries.add(source_text=term, target_text=wanted)
        identity, key = await self._documents.start(caller, upload.name, upload.data, settings)
        said = {"document_id": identity, "document_key": key}
        return answer(said, headers=ignored(fields))

    async def _key(self, request: web.Request) -> tuple[str, str]:
        fields = await self.fields(request)
        return request.match_info["id"], fields.text("document_key")

    async def _status(self, request: web.Request) -> web.Response:
        identity, key = await self._key(request)
        return answer(_said(identity, self._documents.state(identity, key)))

    async def _result(self, request: web.Request) -> web.Response:
        identity, key = await self._key(request)
        return _file(*self._documents.result(identity, key))


def _said(identity: str, state: State) -> dict[str, Any]:
    said: dict[str, Any] = {"document_id": identity, "status": state.status}
    if state.status in ("queued", "translating"):
        said["seconds_remaining"] = round(1 + (state.total - state.done) * _SECONDS_PER_TEXT)
        said["progress"] = round(state.done / max(state.total, 1), 3)  # ours
    elif state.status == "done":
        said["billed_characters"] = state.characters
        if state.warnings:
            said["warnings"] = state.warnings
    else:
        said["error_message"] = said["message"] = state.error
    return said


def _file(state: State, data: bytes) -> web.Response:
    name = quote(state.name)
    return web.Response(
        body=data,
        content_type=state.media_type,
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


class LibreTranslateFiles(LibreTranslate):
    """https://docs.libretranslate.com: a file is answered with the address of its translation."""

    statuses: ClassVar[Mapping[int, int]] = {401: 403}

    def __init__(self, translator: Any, options: Any, documents: Documents):
        super().__init__(translator, options)
        self._documents = documents

    def routes(self) -> list[web.RouteDef]:
        return [
            self.route("POST", "/translate_file", self._translate),
            self.route("GET", "/download_file/{name}", self._download),
        ]

    async def _translate(self, request: web.Request) -> web.Response:
        upload = await read_upload(request, self.options.max_file_bytes)
        fields = Fields(upload.fields)
        caller = self.caller(request, fields)
        source, target = from_libre(fields.text("source")), from_libre(fields.text("target"))
        settings = linnet.TranslateRequest(source_language_code=source, target_language_code=target)
        identity, key = await self._documents.start(caller, upload.name, upload.data, settings)
        state = await self._documents.wait(identity, key)
        if state.status == "error":
            self._documents.remove(identity)
            raise failed(state)
        name = f"{identity}.{key}.{state.name}"
        origin = origin_of(request, self.options)
        said: dict[str, Any] = {"translatedFileUrl": f"{origin}/download_file/{quote(name)}"}
        if state.warnings:
            said["warnings"] = state.warnings
        return answer(said)

    async def _download(self, request: web.Request) -> web.Response:
        identity, _, rest = request.match_info["name"].partition(".")
        return _file(*self._documents.result(identity, rest.partition(".")[0]))
