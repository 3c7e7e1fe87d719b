"""Proves an output: that it is complete, and that sampled rows are what the model answers."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from .files import write_tables
from .job import Chunk, Job, Output, answer_digests, source_digest
from .rows import SCHEMA, Backend, CorpusError, Row, digest


@dataclass
class Report:
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what could not be compared
    chunks: int = 0
    rows: int = 0
    compared: int = 0  # rows that were decoded again


def verify(output: Output, backend: Backend | None, sample: float = 1e-4, seed: int = 0) -> Report:
    """Checks every manifest against its file and the inputs, and decodes a random share of the rows
    again. Without a back end no row is decoded."""
    job, report = output.job(), Report()
    report.faults += _gaps(job, output.done())
    if backend and (backend.bundle, backend.compute) != (job.bundle, job.compute):
        raise CorpusError(
            f"the job was done with the bundle {job.bundle} in {job.compute}, this is "
            f"{backend.bundle} in {backend.compute}: name that bundle"
        )
    chosen = random.Random(seed)
    for chunk in output.done():
        try:
            table, unread = _checked(output, job, chunk, report)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            report.faults.append(f"{chunk.name}: cannot be read: {error}")
            continue
        report.chunks, report.rows = report.chunks + 1, report.rows + len(table)
        numbers = [
            number
            for number in range(len(table))
            if chosen.random() < sample and number not in unread
        ]
        if backend and numbers:
            _decode_again(output, job, chunk, table.take(numbers), numbers, backend, report)
    return report


def _gaps(job: Job, done: Sequence[Chunk]) -> list[str]:
    wanted = {chunk.name for chunk in job.chunks()}
    names = {chunk.name for chunk in done}
    faults = [f"{name}: missing" for name in sorted(wanted - names)]
    return faults + [f"{name}: no chunk of this job" for name in sorted(names - wanted)]


def _checked(
    output: Output, job: Job, chunk: Chunk, report: Report
) -> tuple[pa.Table, Collection[int]]:
    """The table of a chunk, compared with its manifest and the inputs, and the rows that were not
    translated, since they could not be read; without the input all that have an error."""
    manifest = output.manifest(chunk)
    table = output.table(chunk)
    expected = {
        "rows": [chunk.begin, chunk.end],
        "bundle": job.bundle,
        "compute": job.compute,
        "backend": job.backend,
        "options": job.options,
        "sha256": hashlib.sha256(output.data(chunk)).hexdigest(),
        "source": source_digest(job.columns, table),
        "answers": base64.b64encode(b"".join(answer_digests(job.columns, table))).decode(),
    }
    wrong = [key for key, value in expected.items() if manifest.get(key) != value]
    if wrong:
        report.faults.append(f"{chunk.name}: {', '.join(wrong)} of the manifest differ")
    try:
        source, unread = job.read(chunk)
    except CorpusError as error:
        report.notes.append(f"{chunk.name}: not compared with its input: {error}")
        errors = [table["error" + suffix].to_pylist() for _, suffix in job.columns.suffixes()]
        return table, {number for each in errors for number, it in enumerate(each) if it}
    if source_digest(job.columns, source) != expected["source"]:
        report.faults.append(f"{chunk.name}: its texts are not those of the input")
    return table, unread


def _decode_again(
    output: Output,
    job: Job,
    chunk: Chunk,
    table: pa.Table,
    numbers: Sequence[int],
    backend: Backend,
    report: Report,
) -> None:
    processor = output.manifest(chunk)["processor"]
    if processor != backend.processor:
        report.notes.append(
            f"{chunk.name}: {len(table)} rows not decoded again: they come from a processor with "
            f"{processor or 'unknown instructions'}, this one has {backend.processor or 'unknown'}"
        )
        return
    for text, suffix in job.columns.suffixes():
        said = table.select([it.name + suffix for it in SCHEMA]).rename_columns(SCHEMA.names)
        asked: list[tuple[int, Row, dict[str, object]]] = []
        rows = job.columns.rows(table, text)
        for number, row, values in zip(numbers, rows, said.to_pylist(), strict=True):
            if row is None or not row.text.strip() or values["bundle"] != job.bundle:
                continue  # was not decoded, or by an earlier job
            if wrong := job.columns.refusal(row):
                if values["error"] != wrong:
                    report.faults.append(f"row {chunk.begin + number}: its error is not: {wrong}")
                continue
            asked.append((chunk.begin + number, row, values))
        again = backend.answers([row for _, row, _ in asked])
        report.compared += len(asked)
        for (number, _, values), answer in zip(asked, again, strict=True):
            differ = [
                name
                for name in ("translation", "score", "finish_reason", "error")
                if values[name] != _as_stored(getattr(answer, name))
            ]
            if differ:
                report.faults.append(f"row {number}: {', '.join(differ)} differ when decoded again")


def _as_stored(value: object) -> object:
    return pa.scalar(value, pa.float32()).as_py() if isinstance(value, float) else value


def merge(outputs: Sequence[Output], name: str, distinct: bool = False) -> int:
    """Writes the rows of a job to one file, in their order, and returns their number. The chunks
    may be in several folders; a chunk in two of them must be the same. Raises CorpusError for gaps
    and chunks that do not belong there. `distinct`: of rows that ask the same, the first alone
    (rows without a text are kept); each takes about a hundred bytes of memory."""
    jobs = [output.job() for output in outputs]
    for output, job in zip(outputs, jobs, strict=True):
        if job != jobs[0]:
            raise CorpusError(f"{output.name} is the output of another job than {outputs[0].name}")
    job = jobs[0]
    where: dict[Chunk, Output] = {}
    for output in outputs:
        for chunk in output.done():
            other = where.setdefault(chunk, output)
            answers = [it.manifest(chunk)["answers"] for it in (other, output)]
            if answers[0] != answers[1]:
                raise CorpusError(
                    f"{chunk.name} is in {other.name} and {output.name} with different answers: "
                    "verify both and remove the wrong one"
                )
    faults = _gaps(job, list(where))
    if faults:
        shown = "\n".join(faults[:10])
        raise CorpusError(f"{len(faults)} chunks are missing or do not belong there:\n{shown}")

    written, seen = 0, set[bytes]()

    def is_new(asked: tuple[Row | None, ...]) -> bool:
        key = digest([row.key().hex() for row in asked if row])
        if None not in asked and key in seen:
            return False
        seen.add(key)
        return True

    def tables() -> Iterator[pa.Table]:
        nonlocal written
        for chunk in job.chunks():
            output = where[chunk]
            if hashlib.sha256(output.data(chunk)).hexdigest() != output.manifest(chunk)["sha256"]:
                raise CorpusError(f"{chunk.name} of {output.name} differs from its manifest")
            table = output.table(chunk)
            if distinct:
                asked = zip(*(job.columns.rows(table, it) for it in job.columns.texts), strict=True)
                table = table.filter(pa.array(map(is_new, asked), pa.bool_()))
            written += len(table)
            yield table

    write_tables(tables(), job.columns.output(job.schema), name)
    return written
