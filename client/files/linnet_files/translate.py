"""Sends fragments to a server and checks that every code comes back."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol, TextIO

import grpc
import linnet
from linnet.v1 import text_service_pb2 as api

from .document import FileError
from .fragment import SPLITTING_TAG, Fragment, Part, from_xml, placed, to_xml

_XML = "application/xml"
_DETECTED_CHARACTERS = 10_000
_XML_CODE = re.compile(r"<x\b[^>]*>\d+</x>|<[^>]*>")
# Characters that XML cannot have; a model may write them.
_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Outcome(Enum):
    """What became of a fragment."""

    TRANSLATED = "translated"
    FORCED = "codes placed by their share of the text"  # the answer had lost or crossed codes
    KEPT = "no words"  # nothing to translate
    FAILED = "refused by the server"


@dataclass(frozen=True)
class Answer:
    parts: tuple[Part, ...] | None  # None: the fragment stays as it is
    outcome: Outcome
    error: str = ""
    warnings: tuple[str, ...] = ()  # of the server, in words


class Client(Protocol):
    """What `translate` needs of linnet.AsyncClient."""

    def translate_document(
        self, settings: linnet.TranslateRequest, lines: Iterable[str]
    ) -> AsyncIterator[tuple[int, linnet.TranslateResponse | linnet.LinnetError]]: ...

    async def detect_language(self, text: str) -> linnet.LanguageDetection: ...


class Memory:
    """The answers of earlier calls, by what was asked. With a path, a file keeps them until
    `forget`, so that a translation that was interrupted goes on where it was."""

    def __init__(self, settings: linnet.TranslateRequest, path: Path | None = None):
        self._path = path
        self._answers: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}  # with warnings
        self._asked = settings.SerializeToString(deterministic=True).hex()
        self._file: TextIO | None = None
        if path and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                asked, kind, text, said, warnings = json.loads(line)
            except ValueError:
                continue  # the line that was being written
            if asked == self._asked:
                self._answers[kind, text] = said, tuple(warnings)

    def get(self, kind: str, text: str) -> str | None:
        known = self._answers.get((kind, text))
        return None if known is None else known[0]

    def warnings(self, kind: str, text: str) -> tuple[str, ...]:
        return self._answers.get((kind, text), ("", ()))[1]

    def put(self, kind: str, text: str, said: str, warnings: tuple[str, ...]) -> None:
        self._answers[kind, text] = said, warnings
        if self._path is None:
            return
        line = json.dumps([self._asked, kind, text, said, warnings], ensure_ascii=False)
        try:
            self._file = self._file or self._path.open("a", encoding="utf-8")
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise FileError(f"cannot write {self._path}: {error.strerror}") from None

    def close(self) -> None:
        if self._file:
            self._file.close()

    def forget(self) -> None:
        """Removes the file: the translation is complete."""
        self.close()
        if self._path:
            self._path.unlink(missing_ok=True)


async def translate(
    client: Client,
    settings: linnet.TranslateRequest,
    fragments: Sequence[Fragment],
    memory: Memory | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Answer]:
    """Translates fragments; equal ones once. `progress` gets the number of fragments that are done.
    A fragment that the server refuses is left as it is, with its error; every other error is
    raised as LinnetError."""
    memory = memory or Memory(settings)
    answers: list[Answer | None] = [
        None if fragment.has_words else Answer(None, Outcome.KEPT) for fragment in fragments
    ]
    settings = await _with_language(client, settings, fragments)
    done = sum(map(bool, answers))

    def came(count: int) -> None:
        nonlocal done
        done = min(done + count, len(fragments))
        progress(done)

    asker = _Asker(client, settings, memory, came)

    def pending(coded: bool) -> list[int]:
        return [
            number
            for number, fragment in enumerate(fragments)
            if answers[number] is None and bool(fragment.codes) == coded
        ]

    # Fragments with codes as XML; an answer that lost a code is asked for again without them.
    forms = {number: to_xml(fragments[number].parts) for number in pending(True)}
    try:
        said = await asker.ask(_XML, [text for text, _ in forms.values()])
    except linnet.LinnetError as error:
        if not error.field.endswith("mime_type"):
            raise
        said = {}  # a server that reads no markup
    for number, (text, codes) in forms.items():
        answer = said.get(text)
        parts = from_xml(answer, codes) if isinstance(answer, str) else None
        if parts is not None:
            warnings = memory.warnings(_XML, text)
            answers[number] = Answer(parts, Outcome.TRANSLATED, warnings=warnings)
    rest = sorted(pending(True) + pending(False))
    said = await asker.ask("", [fragments[number].text for number in rest])
    for number in rest:
        fragment = fragments[number]
        answer = said[fragment.text]
        warnings = memory.warnings("", fragment.text)
        if isinstance(answer, linnet.LinnetError):
            answers[number] = Answer(None, Outcome.FAILED, str(answer))
        elif fragment.codes:
            parts = placed(fragment.parts, answer)
            answers[number] = Answer(parts, Outcome.FORCED, warnings=warnings)
        else:
            answers[number] = Answer((answer,), Outcome.TRANSLATED, warnings=warnings)
    return [answer for answer in answers if answer is not None]


def _told(warning: api.Warning, source: str, answer: str) -> str:
    """A warning in words, with the parts of the two texts that it is about; "" if those are codes,
    which `from_xml` checks."""
    lost = _cut(source, warning.metadata.get("sourceRanges", ""))
    added = _cut(answer, warning.metadata.get("targetRanges", ""))
    if warning.reason == "FACTS_DIFFER":
        both = (("source", lost), ("translation", added))
        return ", ".join(f"only the {text} has {parts}" for text, parts in both if parts)
    if warning.reason == "UNREAD_TEXT":
        return lost and f"the model cannot read {lost}"
    if warning.reason == "SPAN_FORCED":
        return lost and f"{lost} may stand in the wrong place"
    return warning.message


def _cut(text: str, ranges: str) -> str:
    """The parts of a text at ranges of bytes, such as "3-8 12-15", in quotes; without codes."""
    data, found = text.encode(), []
    for each in ranges.split():
        begin, end = map(int, each.split("-"))
        part = data[begin:end].decode(errors="replace")
        found.append(html.unescape(_XML_CODE.sub("", part)))
    return ", ".join(f'"{part}"' for part in found if part.strip())


async def _with_language(
    client: Client, settings: linnet.TranslateRequest, fragments: Sequence[Fragment]
) -> linnet.TranslateRequest:
    """The settings with the language of the whole file, if they have none: a short text alone says
    little about its language."""
    if settings.source_language_code or settings.model:
        return settings
    text = "\n".join(fragment.text for fragment in fragments if fragment.has_words)
    if not text:
        return settings
    found = await client.detect_language(text[:_DETECTED_CHARACTERS])
    copy = linnet.TranslateRequest()
    copy.CopyFrom(settings)
    if found.languages:
        copy.source_language_code = found.languages[0].language_code
    return copy


@dataclass
class _Asker:
    client: Client
    settings: linnet.TranslateRequest
    memory: Memory
    came: Callable[[int], None]  # so many fragments have an answer

    async def ask(self, kind: str, texts: Sequence[str]) -> dict[str, str | linnet.LinnetError]:
        """The answers to texts of the MIME type `kind`; "" is plain text."""
        said: dict[str, str | linnet.LinnetError] = {}
        count = Counter(texts)
        for text in count:
            if (known := self.memory.get(kind, text)) is not None:
                said[text] = known
                self.came(count[text])
        asked = [text for text in count if text not in said]
        if not asked:
            return said
        settings = linnet.TranslateRequest()
        settings.CopyFrom(self.settings)
        if kind:
            settings.mime_type = kind
            settings.markup.splitting_tags.append(SPLITTING_TAG)
            settings.markup.non_splitting_tags.append("x")  # a bookmark may be in a word
        else:
            settings.line_breaks = api.LINE_BREAKS_JOIN_PARAGRAPHS
        async for number, result in self.client.translate_document(settings, asked):
            if isinstance(result, linnet.LinnetError):
                if result.code != grpc.StatusCode.INVALID_ARGUMENT:
                    raise result
                said[asked[number]] = result
            else:
                one = result.translations[0]
                said[asked[number]] = text = _CONTROLS.sub("", one.text)
                told = [_told(it, asked[number], one.text) for it in one.warnings]
                self.memory.put(kind, asked[number], text, tuple(filter(None, told)))
            self.came(count[asked[number]])
        return said
