"""Translates a file on disk into another one."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import linnet

from .document import File, FileError
from .formats import Options, read
from .fragment import Fragment, Part
from .translate import Answer, Client, Memory, Outcome, translate

MAX_BYTES = 64 << 20  # of a file


@dataclass
class Report:
    """What was done with a file."""

    words: int
    fragments: list[Fragment]
    answers: list[Answer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def counts(self) -> Counter[Outcome]:
        return Counter(answer.outcome for answer in self.answers)

    def lines(self) -> list[str]:
        """What a person should look at."""
        said = []
        for fragment, answer in zip(self.fragments, self.answers, strict=False):
            told = list(answer.warnings)
            if answer.outcome in (Outcome.FORCED, Outcome.FAILED):
                told.insert(0, answer.error or answer.outcome.value)
            said += [f"{fragment.place}: {it}" for it in told]
        return [*said, *self.notes]


def load(path: Path, options: Options) -> File:
    """Reads a file. Raises FileError if it is too large, damaged, or of no known format."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FileError(f"the file has {size} bytes, at most {MAX_BYTES} are read: split it")
        return read(path.name, path.read_bytes(), options)
    except OSError as error:
        raise FileError(str(error.strerror)) from None


def words(document: File) -> int:
    return sum(len(fragment.text.split()) for fragment in document.fragments if fragment.has_words)


async def translate_document(
    client: Client,
    settings: linnet.TranslateRequest,
    document: File,
    memory: Memory | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[bytes, Report]:
    """The bytes of the translated file. Raises LinnetError, or FileError if the server refused
    every text."""
    fragments = document.fragments
    answers = await translate(client, settings, fragments, memory, progress)
    report = Report(words(document), fragments, answers)
    failed = [answer for answer in answers if answer.outcome == Outcome.FAILED]
    if failed and len(failed) + report.counts()[Outcome.KEPT] == len(answers):
        raise FileError(f"the server refused every text: {failed[0].error}")
    data = document.write(parts(answers))
    report.notes = document.notes
    return data, report


def parts(answers: Sequence[Answer]) -> list[tuple[Part, ...] | None]:
    return [answer.parts for answer in answers]


async def translate_file(
    client: Client,
    settings: linnet.TranslateRequest,
    source: Path,
    target: Path,
    options: Options,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Report:
    """Writes `target`, whole or not at all. Answers are kept beside it until then, so that the same
    call goes on where an earlier one was interrupted."""
    document = load(source, options)
    memory = Memory(settings, target.with_name(f".{target.name}.partial"))
    total = len(document.fragments)
    try:
        data, report = await translate_document(
            client, settings, document, memory, lambda done: progress(done, total)
        )
        write_whole(target, data)
        memory.forget()
    finally:
        memory.close()
    return report


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file under another name and renames it. Raises FileError."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
