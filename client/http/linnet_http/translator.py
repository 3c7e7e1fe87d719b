"""Calls of linnet-server for the faces."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import linnet

from .caller import metadata_of
from .languages import Pairs, are_variants
from .options import Options
from .problem import NO_MODEL, Problem

_SAME = (
    "ALREADY_IN_TARGET_LANGUAGE",
    "the source and target languages are the same, so the text is returned unchanged",
)
_VARIANTS = (
    "ALREADY_IN_TARGET_LANGUAGE",
    "the source and target languages are variants of one language, between which no model "
    "translates, so the text is returned unchanged",
)
# A text of white space is its own translation; the server refuses it, also after a byte order mark.
_BLANK = re.compile(r"\ufeff?\s*")
LANGUAGES_SECONDS = 5.0  # the list of languages is read again after this time


@dataclass(frozen=True)
class Caller:
    token: str
    address: str


@dataclass(frozen=True)
class Job:
    """Texts to translate. Codes are BCP-47; an empty source is detected, text by text."""

    texts: tuple[str, ...]
    source: str
    target: str
    model: str = ""
    alternatives: int = 0  # further translations of each text
    glossary: tuple[tuple[str, str], ...] = ()
    mime_type: str = ""
    markup: tuple[tuple[str, tuple[str, ...]], ...] = ()  # lists of MarkupOptions with their names


@dataclass(frozen=True)
class Answer:
    """One text, translated."""

    text: str
    source: str  # language that it was translated from; "" if that is not known
    confidence: float  # 0 to 1, of `source`: 1 if it was given, 0 if only the model tells it
    model: str
    alternatives: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()  # reason and message, with names of the native API


class Translator:
    """The calls of all faces to one server. Belongs to one event loop."""

    def __init__(self, options: Options):
        self._timeout = options.timeout
        tls = None
        if options.ca_file:
            tls = linnet.Tls(ca_file=options.ca_file, server_name=options.tls_server_name)

        def connect(retry: linnet.Retry) -> linnet.AsyncClient:
            return linnet.AsyncClient(
                linnet.Options(server=options.server, tls=tls, timeout=options.timeout, retry=retry)
            )

        # One attempt: an HTTP client is told to retry by the status and by Retry-After.
        self.client = connect(linnet.Retry(max_attempts=1))
        self.for_files = connect(linnet.Retry())  # whose clients wait and cannot retry a part
        self._running: dict[tuple[Caller, Job], _Shared] = {}
        self._pairs: dict[str, tuple[float, Pairs]] = {}

    async def close(self) -> None:
        for shared in self._running.values():
            shared.task.cancel()
        await self.client.close()
        await self.for_files.close()

    async def call(self, caller: Caller, method: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        """Calls a method of the client for this caller. Raises Problem for its errors."""
        try:
            with linnet.call_metadata(*metadata_of(caller.token, caller.address)):
                return await method(*given)
        except linnet.LinnetError as error:
            raise Problem.of(error, self._timeout) from error

    async def check(self, caller: Caller, settings: linnet.TranslateRequest) -> None:
        """Raises Problem if the server does not know the caller, or cannot translate a document
        with these settings. It is asked for a document of an empty line."""

        async def ask() -> None:
            async with asyncio.timeout(self._timeout):
                async for _ in self.client.translate_document(settings, ("",)):
                    pass

        try:
            await self.call(caller, ask)
        except TimeoutError:
            said = f"the server did not answer within the {self._timeout:g} s of this front end"
            raise Problem(504, f"{said}: try again later", "DEADLINE_TOO_CLOSE") from None

    async def pairs(self, caller: Caller) -> Pairs:
        """The languages that are served, read again now and then."""
        now = time.monotonic()
        read, pairs = self._pairs.get(caller.token, (0.0, None))
        if pairs is None or now - read > LANGUAGES_SECONDS:
            pairs = Pairs.of(await self.call(caller, self.client.list_models))
            self._pairs = {
                token: entry
                for token, entry in self._pairs.items()
                if now - entry[0] <= LANGUAGES_SECONDS
            }
            self._pairs[caller.token] = now, pairs
        return pairs

    async def translate(self, caller: Caller, job: Job, keep_seconds: float = 0.0) -> list[Answer]:
        """Translates the texts of a job. With `keep_seconds`, a caller who repeats a request that
        still runs waits for that one, and one that its last caller has left is cancelled after
        that time: some clients leave and ask again at once (deepl 1.32.0: after 10 s)."""
        if not keep_seconds:
            return await self._translate(caller, job)
        key = caller, job
        shared = self._running.get(key)
        if shared is None:
            shared = self._running[key] = _Shared(asyncio.create_task(self._translate(*key)))
            shared.task.add_done_callback(lambda _: self._running.pop(key, None))
        return await shared.join(keep_seconds)

    async def _translate(self, caller: Caller, job: Job) -> list[Answer]:
        if job.source and job.source.lower() == job.target.lower():  # a program of many languages
            await self.pairs(caller)  # is the caller known?
            return [Answer(text, job.source, 1.0, "", warnings=(_SAME,)) for text in job.texts]
        asked = [number for number, text in enumerate(job.texts) if not _BLANK.fullmatch(text)]
        answers = [Answer(text, job.source, 1.0 if job.source else 0.0, "") for text in job.texts]
        if asked:
            for number, answer in (await self._ask(caller, job, asked)).items():
                answers[number] = answer
        return answers

    async def _ask(self, caller: Caller, job: Job, numbers: list[int]) -> dict[int, Answer]:
        """The answers to the texts with these numbers. A text in a language from which no model
        translates is returned unchanged, unless all are: LibreTranslate and DeepL fail for none of
        them either."""
        texts = [job.texts[number] for number in numbers]
        try:
            reply = await self.call(caller, self.client.translate, self._request(job, texts))
        except Problem as problem:
            if problem.reason == NO_MODEL and are_variants(job.source, job.target):
                return {
                    number: Answer(text, job.source, 1.0, "", warnings=(_VARIANTS,))
                    for number, text in zip(numbers, texts, strict=True)
                }
            problem.renumber(numbers)
            if problem.language and len(texts) == 1 < len(job.texts):
                problem.message = f"contents[{numbers[0]}]: {problem.message}"
            if job.source or problem.reason != NO_MODEL or len(texts) == 1:
                raise
            language, unserved = problem.language, set[int]()
            found = await self.call(caller, self.client.detect_language, texts)
            for number, one in zip(numbers, found, strict=True):
                if one.languages and one.languages[0].language_code == language:
                    unserved.add(number)
            others = [number for number in numbers if number not in unserved]
            if not unserved or not others:
                raise
            answers = await self._ask(caller, job, others)
            for number in unserved:
                message = (
                    f'contents[{number}] seems to be in "{language}", from which no model '
                    f'translates to "{job.target}"'
                )
                warnings = ((NO_MODEL, message),)
                answers[number] = Answer(job.texts[number], language, 1.0, "", warnings=warnings)
            return answers
        return {
            number: await self._answer(caller, job, reply, translation)
            for number, translation in zip(numbers, reply.translations, strict=True)
        }

    async def _answer(
        self, caller: Caller, job: Job, reply: linnet.TranslateResponse, translation: Any
    ) -> Answer:
        detected = translation.detected_language
        by = translation if translation.model else reply  # it names the model
        source, confidence = job.source, 1.0
        if not source:
            source, confidence = detected.language_code, detected.confidence
        if not source:
            source = await self._source_of(caller, job, reply, by)
        return Answer(
            text=translation.text,
            source=source,
            confidence=confidence,
            model=by.model,
            alternatives=_alternatives(translation, job.alternatives),
            warnings=tuple((it.reason, it.message) for it in translation.warnings),
        )

    async def _source_of(
        self, caller: Caller, job: Job, reply: linnet.TranslateResponse, by: Any
    ) -> str:
        """The language of a text for which the server could tell none: the one that the model
        reads, or that of most other texts."""
        model, target = by.model, job.target
        if by.HasField("pivot"):
            model, target = by.pivot.model, by.pivot.language_code
        try:
            sources = (await self.pairs(caller)).sources_of(model, target)
        except Problem:  # the translation is there all the same
            return ""
        if len(sources) == 1:
            return sources.pop()
        others = Counter(it.detected_language.language_code for it in reply.translations)
        return next((it for it, _ in others.most_common() if it in sources), "")

    @staticmethod
    def _request(job: Job, texts: list[str]) -> linnet.TranslateRequest:
        request = linnet.TranslateRequest(
            contents=texts,
            source_language_code=job.source,
            target_language_code=job.target,
            model=job.model,
            mime_type=job.mime_type,
        )
        if job.alternatives:
            request.options.n_best = job.alternatives + 1
            request.options.beam_size = max(5, job.alternatives + 1)
        for name, tags in job.markup:
            getattr(request.markup, name).extend(tags)
        for source, target in job.glossary:
            request.glossary.entries.add(source_text=source, target_text=target)
        return request


def _alternatives(translation: Any, count: int) -> tuple[str, ...]:
    """Further translations of a text: its n-th has the n-th hypothesis of each segment, or the last
    one of a segment that has fewer."""
    found: list[str] = []
    said = translation.text.encode()
    for rank in range(1, count + 1):
        parts, end = [], 0
        for segment in translation.segments:
            parts.append(said[end : segment.target_begin])
            texts = [hypothesis.text for hypothesis in segment.hypotheses]
            parts.append(texts[min(rank, len(texts) - 1)].encode() if texts else b"")
            end = segment.target_end
        text = b"".join([*parts, said[end:]]).decode()
        if text != translation.text and text not in found:
            found.append(text)
    return tuple(found)


class _Shared:
    """A call that several requests may wait for."""

    def __init__(self, task: asyncio.Task[list[Answer]]):
        self.task = task
        self._waiting = 0

    async def join(self, keep_seconds: float) -> list[Answer]:
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if self._waiting == 0 and not self.task.done():
                asyncio.get_running_loop().call_later(keep_seconds, self._cancel_if_left)

    def _cancel_if_left(self) -> None:
        if self._waiting == 0:
            self.task.cancel()
