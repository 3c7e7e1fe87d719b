"""Files to translate and their results, in a folder that all workers share."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import linnet
from linnet_files import FileError, Options, find, read
from linnet_files.job import translate_document, write_whole

from .caller import metadata_of
from .problem import Problem
from .translator import Caller, Translator

MAX_RUNNING = 2  # of a worker; others wait
MAX_DOCUMENTS = 256  # in the folder
MAX_BYTES = 1 << 30  # of all documents in the folder
MAX_WARNINGS = 100  # of a document
KEPT_SECONDS = 3600.0
# The state of a document that is translated is written this often. One that was not written for
# LOST_SECONDS belongs to a worker that is gone.
_WRITE_SECONDS = 1.0
LOST_SECONDS = 30.0


@dataclass(frozen=True)
class State:
    """What is known of a document. `status` has DeepL's words."""

    name: str  # of the file that is answered
    media_type: str
    status: str = "queued"  # then translating, and done or error
    done: int = 0  # texts
    total: int = 0
    characters: int = 0
    error: str = ""
    failure: int = 400  # the HTTP status of the error
    key: str = ""  # SHA-256 of the key that reads the document
    warnings: Sequence[str] = ()  # what a person should look at, with its place


class Documents:
    """The documents in a folder, and the translations of this process. Belongs to one event loop.
    Documents are removed an hour after their last change."""

    def __init__(self, folder: Path, translator: Translator):
        self._folder, self._translator = folder, translator
        self._running: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_RUNNING)

    async def start(
        self, caller: Caller, name: str, data: bytes, settings: linnet.TranslateRequest
    ) -> tuple[str, str]:
        """Begins to translate a file; returns its id and the key that reads it. Raises Problem if
        the file has no known format or is damaged, if there are too many documents, or if the
        server refuses the caller or the settings."""
        await self._check(caller, settings)
        language, _, region = settings.target_language_code.lower().partition("-")
        target = f"{language}-{region.upper()}" if region else language
        options = Options(settings.source_language_code.lower(), target)
        try:
            format_ = find(name)
            document = await asyncio.to_thread(read, name, data, options)
        except FileError as error:
            raise Problem(400, f"{name[:80]}: {error}", "UNSUPPORTED_FILE", field="file") from None
        self._make_room(len(data))
        identity, key = secrets.token_hex(16), secrets.token_hex(32)
        state = State(
            name=f"{Path(name).stem}_{target}{Path(name).suffix}",
            media_type=format_.media_type,
            total=len(document.fragments),
            characters=sum(len(fragment.text) for fragment in document.fragments),
            key=_hash(key),
        )
        (self._folder / identity).mkdir(parents=True)
        self._write(identity, state)
        task = asyncio.create_task(self._translate(identity, state, caller, document, settings))
        self._running[identity] = task
        task.add_done_callback(lambda _: self._running.pop(identity))
        return identity, key

    async def _check(self, caller: Caller, settings: linnet.TranslateRequest) -> None:
        """Raises Problem for what would fail, and for strangers, who could fill the folder. A busy
        server is no reason: the translation waits for it."""
        try:
            await self._translator.check(caller, settings)
        except Problem as problem:
            if problem.status in (429, 503) and problem.reason:
                return
            if problem.status == 404:
                problem.status = 400  # 404 is for documents
            problem.message = problem.message.replace("settings.", "")
            raise

    def state(self, identity: str, key: str) -> State:
        """Raises Problem if there is no such document, or the key is another one's."""
        path = self._folder / identity / "state.json"
        try:
            if len(identity) != 32 or not identity.isalnum():
                raise FileNotFoundError
            state = State(**json.loads(path.read_text(encoding="utf-8")))
            age = time.time() - path.stat().st_mtime
        except (OSError, ValueError):
            raise _unknown() from None
        if not hmac.compare_digest(state.key, _hash(key)):
            raise _unknown()
        if state.status in ("queued", "translating") and age > LOST_SECONDS:
            said = "the translation was lost: send it again"
            return replace(state, status="error", error=said, failure=503)
        return state

    def result(self, identity: str, key: str) -> tuple[State, bytes]:
        state = self.state(identity, key)
        if state.status == "error":
            raise failed(state)
        if state.status != "done":
            raise Problem(503, f"the document is {state.status}: ask again later", "NOT_READY")
        try:
            return state, (self._folder / identity / "result").read_bytes()
        except OSError:
            raise _unknown() from None

    def remove(self, identity: str) -> None:
        shutil.rmtree(self._folder / identity, ignore_errors=True)

    async def wait(self, identity: str, key: str) -> State:
        """Waits until a document of this process is done or has failed. If this is cancelled, so is
        the translation, and the document is removed."""
        try:
            while (state := self.state(identity, key)).status in ("queued", "translating"):
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            if task := self._running.get(identity):
                task.cancel()
            self.remove(identity)
            raise
        return state

    async def close(self) -> None:
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _translate(
        self,
        identity: str,
        state: State,
        caller: Caller,
        document: Any,
        settings: linnet.TranslateRequest,
    ) -> None:
        now = state

        def progress(done: int) -> None:
            nonlocal now
            now = replace(now, status="translating", done=done)

        async def report() -> None:
            while True:
                await asyncio.sleep(_WRITE_SECONDS)
                self._write(identity, now)

        reporter = asyncio.create_task(report())
        try:
            async with self._slots:
                progress(0)
                with linnet.call_metadata(*metadata_of(caller.token, caller.address)):
                    data, translated = await translate_document(
                        self._translator.for_files, settings, document, progress=progress
                    )
            write_whole(self._folder / identity / "result", data)
            warnings = translated.lines()[:MAX_WARNINGS]
            now = replace(now, status="done", done=now.total, warnings=warnings)
        except linnet.LinnetError as error:
            problem = Problem.of(error)
            status = 400 if problem.status == 404 else problem.status  # 404 is for documents
            now = replace(now, status="error", error=problem.message, failure=status)
        except FileError as error:
            now = replace(now, status="error", error=str(error))
        except asyncio.CancelledError:
            said = "the server was stopped: send it again"
            now = replace(now, status="error", error=said, failure=503)
            raise
        except Exception:
            said = "the front end failed; its log has the cause"
            now = replace(now, status="error", error=said, failure=500)
            raise
        finally:
            reporter.cancel()
            with contextlib.suppress(FileError):  # removed meanwhile
                self._write(identity, now)

    def _write(self, identity: str, state: State) -> None:
        data = json.dumps(asdict(state), ensure_ascii=False).encode()
        write_whole(self._folder / identity / "state.json", data)

    def _make_room(self, size: int) -> None:
        """Removes old documents. Raises Problem if the folder is full."""
        self._folder.mkdir(parents=True, exist_ok=True)
        now, count, held = time.time(), 0, size
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):
                files = list(os.scandir(entry.path))
                changed = max((it.stat().st_mtime for it in files), default=0.0)
                if now - changed > KEPT_SECONDS and now - entry.stat().st_mtime > KEPT_SECONDS:
                    self.remove(entry.name)
                    continue
                count += 1
                held += sum(it.stat().st_size for it in files)
        if count >= MAX_DOCUMENTS or held > MAX_BYTES:
            raise Problem(
                429,
                f"{count} documents with {held} bytes are kept, at most {MAX_DOCUMENTS} with "
                f"{MAX_BYTES} bytes: send it again later",
                "TOO_MANY_DOCUMENTS",
                retry_after=60.0,
            )


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def failed(state: State) -> Problem:
    """The error of a document that has failed."""
    retry_after = 1.0 if state.failure in (429, 503) else None
    return Problem(state.failure, state.error, "FILE_FAILED", field="file", retry_after=retry_after)


def _unknown() -> Problem:
    return Problem(404, "there is no document with this id and key", "NOT_FOUND")
