"""Decodes with linnet-decode in child processes, over pipes."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .rows import Answer, Came, CorpusError, Row, ignore

_IN_FLIGHT = 256  # rows of a child; answers come in order, so a long row holds others back
_ATTEMPTS = 2  # of a row that is alone in a child
_MAX_ENDS = 40  # of children in a row, without an answer between them
_INSTRUCTIONS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_bf16",
    "amx_int8",
)
_FATAL = (2, 3)  # exit statuses of linnet-decode: wrong flags; bundle or device cannot be used


def find_decode(named: Path | str | None = None) -> str:
    """`named`, else LINNET_DECODE, else linnet-decode in the path. Raises CorpusError."""
    given = str(named or os.environ.get("LINNET_DECODE", ""))
    found = shutil.which(given or "linnet-decode")
    if found is None:
        raise CorpusError(
            f"there is no program {given or 'linnet-decode'}: install the package linnet-server, "
            "or name the program with LINNET_DECODE"
        )
    return found


class Embedded:
    """Back end that decodes on this machine, without a server or a port.

    Texts are split, protected and checked as a server does; a target to score is read whole.
    `children` share the mapped weights; each has `threads`. A child that ends, or gives no answer
    for `stall_timeout` seconds, is replaced, and its unfinished rows are sent again. A row is an
    error value if a child ends twice with it alone. Children end with their parent. Not
    thread-safe.

    `options` are fields of linnet.v1.DecodingOptions, such as {"beam_size": 5}."""

    name = "embedded"

    def __init__(
        self,
        bundle: Path | str,
        *,
        compute: str = "int8",
        options: Mapping[str, int | float | bool] | None = None,
        children: int = 1,
        threads: int = 1,
        batch: int = 32,
        target_language: str = "",
        decode: Path | str | None = None,
        stall_timeout: float = 300.0,
    ):
        self.bundle, self.compute = model_sha256(Path(bundle)), compute
        self.processor = processor()
        self._target_language, self._stall_timeout = target_language, stall_timeout
        flags = {"bundle": bundle, "compute": compute, "threads": threads, "batch": batch}
        self._command = [find_decode(decode), "--split"]
        for name, value in {**flags, **(options or {})}.items():
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            self._command.append(f"--{name.replace('_', '-')}={shown}")
        self._count, self._children = children, list[_Child]()  # they start with the first row

    def close(self) -> None:
        for child in self._children:
            child.kill()
        self._children = []

    def answers(self, rows: Sequence[Row], came: Came = ignore) -> list[Answer]:
        lines = [self._line(row) for row in rows]
        for child in [it for it in self._children if it.is_gone()]:  # while there were no rows
            child.kill()
            self._children.remove(child)
        if rows:
            missing = self._count - len(self._children)
            self._children += [_Child(self._command) for _ in range(missing)]
        found: dict[int, Answer] = {}
        for number, said in self._decode(lines):
            found[number] = self._answer(rows[number], said)
            came(found[number])
        return [found[number] for number in range(len(rows))]

    def _line(self, row: Row) -> bytes:
        line: dict[str, Any] = {"text": row.text}
        if row.target is not None:
            line["target"] = row.target
        if row.language:
            line["source_language"] = row.language
        if self._target_language:
            line["target_language"] = self._target_language
        if row.seed is not None:
            line["options"] = {"seed": row.seed}
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"

    def _answer(self, row: Row, said: bytes | str) -> Answer:
        if isinstance(said, str):
            return Answer(error=said)
        answer = json.loads(said)
        if "error" in answer:
            error = answer["error"]
            return Answer(error=f"{error['code']}: {error['message']}")
        if row.target is not None:
            best = answer["hypotheses"][0]
            return Answer(score=best["score"], tokens=len(best["ids"]))
        best = answer["translation"]
        return Answer(
            translation=best["text"],
            score=best["score"],
            finish_reason=best["finish_reason"],
            warnings=tuple(best["warnings"]),
            tokens=best["tokens"],
        )

    def _decode(self, lines: Sequence[bytes]) -> Iterator[tuple[int, bytes | str]]:
        """Yields the number of each line with its answer, or with the error of one that ends the
        child."""
        work = _Work(lines)
        left, ends = len(lines), 0
        while left:
            for child in self._children:
                child.feed(work)
            for child in _ready(self._children, self._stall_timeout):
                for answered in child.read():
                    yield answered
                    left, ends = left - 1, 0
                if not child.has_ended:
                    continue
                ends += 1
                status, errors = child.end()
                self._children.remove(child)
                if status in _FATAL or ends > _MAX_ENDS:
                    raise CorpusError(f"linnet-decode ended with status {status}: {errors}")
                for number in work.give_back(child):
                    name = hashlib.blake2b(lines[number], digest_size=6).hexdigest()
                    said = f"ended {_ATTEMPTS} times with this row alone, with status {status}"
                    yield number, f"INTERNAL: linnet-decode {said} (request {name})"
                    left -= 1
                self._children.append(_Child(self._command))


class _Work:
    """The rows that are still to be sent. Those that were in a child when it ended go as a group,
    which halves each time that a child ends with it."""

    def __init__(self, lines: Sequence[bytes]):
        self.lines = lines
        self.waiting = deque(range(len(lines)))
        self.groups: deque[list[int]] = deque()
        self._ends: dict[int, int] = {}  # of children in which the row was alone

    def give_back(self, child: _Child) -> list[int]:
        """Takes the unfinished rows of a child that has ended. Returns those that are given up."""
        rows = list(child.in_flight)
        if not child.has_group:
            self.groups.append(rows)
        elif len(rows) > 1:
            self.groups += [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        elif rows:
            self._ends[rows[0]] = self._ends.get(rows[0], 0) + 1
            if self._ends[rows[0]] >= _ATTEMPTS:
                return rows
            self.groups.append(rows)
        return []


class _Child:
    """A running linnet-decode. Both pipes are read and written without blocking."""

    def __init__(self, command: list[str]):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        os.set_blocking(self.stdout.fileno(), False)
        self.in_flight: deque[int] = deque()
        self.has_group = False  # of rows that were in a child when it ended
        self.has_ended = False
        self.unsent = b""
        self.last_answer = time.monotonic()
        self._partial = b""

    def feed(self, work: _Work) -> None:
        """Takes rows and writes what the pipe holds."""
        if not self.in_flight:
            self.last_answer = time.monotonic()
            self.has_group = bool(work.groups)
            if self.has_group:
                self._take(work.groups.popleft(), work)
        if not self.has_group and not work.groups:
            count = min(len(work.waiting), _IN_FLIGHT - len(self.in_flight))
            self._take([work.waiting.popleft() for _ in range(count)], work)
        with suppress(BlockingIOError, BrokenPipeError):  # the end of the output tells of the end
            while self.unsent:
                self.unsent = self.unsent[os.write(self.stdin.fileno(), self.unsent) :]

    def _take(self, numbers: Sequence[int], work: _Work) -> None:
        self.in_flight.extend(numbers)
        self.unsent += b"".join(work.lines[number] for number in numbers)

    def read(self) -> list[tuple[int, bytes]]:
        """The rows that were answered, with their lines."""
        try:
            data = os.read(self.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return []
        self.has_ended = not data
        *lines, self._partial = (self._partial + data).split(b"\n")
        if lines:
            self.last_answer = time.monotonic()
        return [(self.in_flight.popleft(), line) for line in lines]

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self.stop()
        self.end()

    def end(self) -> tuple[int, str]:
        """The exit status and the end of the messages of a child whose output has ended."""
        self.stdin.close()
        self.stdout.close()
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-500:].decode(errors="replace").strip()
        self._errors.close()
        return status, said

    def stop(self) -> None:
        """Ends the process; its output then ends too."""
        self._process.kill()


def _ready(children: Sequence[_Child], stall_timeout: float) -> list[_Child]:
    """Waits for children that can be read or written. Ends those that have stalled."""
    now = time.monotonic()
    busy = [child for child in children if child.in_flight]
    left = min(child.last_answer + stall_timeout - now for child in busy)
    with selectors.DefaultSelector() as selector:
        for child in busy:
            selector.register(child.stdout, selectors.EVENT_READ, child)
            if child.unsent:
                selector.register(child.stdin, selectors.EVENT_WRITE, child)
        ready = {id(key.data): key.data for key, _ in selector.select(max(left, 0))}
    if not ready:
        for child in busy:
            if child.last_answer + stall_timeout <= time.monotonic():
                child.stop()
    return list(ready.values())


def model_sha256(bundle: Path) -> str:
    """The digest of the weights, which a server reports for the model as well."""
    try:
        manifest = json.loads((bundle / "manifest.json").read_text())
        model = manifest.get("model_file", "model.pt")
        (found,) = [file["sha256"] for file in manifest["files"] if file["name"] == model]
    except (OSError, ValueError, KeyError) as error:
        raise CorpusError(f"{bundle} is no bundle: {error}") from None
    return str(found)


def processor() -> str:
    """The instruction sets of this machine that change how a model is computed. Between equal ones
    answers are equal, bit for bit."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return " ".join(name for name in _INSTRUCTIONS if name in flags)
