"""A job: its inputs, its chunks, and the manifests that say which are done.

An output folder has `job.json`, and for each chunk of rows a Parquet file with its manifest:

    000000010000-000000020000.parquet
    000000010000-000000020000.json

Chunks are ranges of the rows of all inputs together, so any number of workers makes the same ones.
A chunk is done when its manifest is there, which is renamed into place after its file. The same
chunk has the same bytes whoever makes it: doing it twice, at once or after a crash, is harmless.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .files import Input, Place, Reader
from .rows import SCHEMA, Answer, Backend, Came, CorpusError, Memory, digest, ignore
from .table import Columns, translate_table
from .version import __version__

FORMAT = 2  # 1: rows were not split into sentences
_DIGEST = 8  # bytes of a row


@dataclass(frozen=True)
class Chunk:
    begin: int  # rows of the job
    end: int

    @property
    def name(self) -> str:
        return f"{self.begin:012d}-{self.end:012d}"


@dataclass(frozen=True)
class Job:
    """What is done to which rows. Equal jobs have equal outputs."""

    inputs: tuple[Input, ...]
    columns: Columns
    keep: tuple[str, ...]  # columns of the input that the output has; empty: all
    chunk_rows: int
    backend: str  # "embedded" or "fleet"
    bundle: str
    compute: str
    options: dict[str, Any] = field(default_factory=dict)

    arrow_schema: str = ""  # of the rows that are read: Arrow's serialisation in Base64

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.arrow_schema)))

    def with_inputs(self, names: Sequence[str]) -> Job:
        """The job with its inputs counted. Raises CorpusError if they differ in their columns, or
        do not have those that the job reads and keeps."""
        inputs = tuple(Input.count(name, self.chunk_rows) for name in names)
        schemas = {it.name: it.schema() for it in inputs if it.rows}
        if not schemas:
            raise CorpusError(f"there are no rows in {', '.join(names)}")
        first = next(iter(schemas.values()))
        kept_names = self.keep or tuple(first.names)
        if twice := [name for name in kept_names if first.names.count(name) > 1]:
            raise CorpusError(f"there are several columns {twice[0]!r}: rename all but one")
        for name, schema in schemas.items():
            if not self.keep and not schema.equals(first):
                raise CorpusError(
                    f"{name} has other columns than {next(iter(schemas))}: name common columns "
                    f"with --keep, or translate them apart\n{schema}"
                )
            for column in self.keep:
                if column not in schema.names or schema.field(column) != first.field(column):
                    raise CorpusError(f"{name} has no column {column!r} of the type of the others")
        kept = pa.schema([first.field(name) for name in kept_names], metadata=first.metadata)
        self.columns.output(kept)
        serialised = base64.b64encode(kept.serialize().to_pybytes()).decode()
        return replace(self, inputs=inputs, arrow_schema=serialised)

    @cached_property
    def _readers(self) -> dict[str, Reader]:
        return {it.name: Reader(it) for it in self.inputs}

    @property
    def rows(self) -> int:
        return sum(it.rows for it in self.inputs)

    def chunks(self) -> list[Chunk]:
        ends = [*range(self.chunk_rows, self.rows, self.chunk_rows), self.rows]
        return [Chunk(begin, end) for begin, end in zip([0, *ends], ends, strict=False) if end]

    def shard(self, index: int, count: int) -> list[Chunk]:
        """The chunks of worker `index` of `count`: a range of rows."""
        chunks = self.chunks()
        return chunks[len(chunks) * index // count : len(chunks) * (index + 1) // count]

    def read(self, chunk: Chunk) -> tuple[pa.Table, dict[int, str]]:
        """The rows of a chunk, and the errors of those that cannot be read."""
        tables, errors, first, done = [], dict[int, str](), 0, 0
        for it in self.inputs:
            begin, end = max(chunk.begin - first, 0), min(chunk.end - first, it.rows)
            if begin < end:
                table, wrong = self._readers[it.name].read(
                    begin, end, self.schema, all_keys=not self.keep
                )
                tables.append(table)
                errors |= {number + done: error for number, error in wrong.items()}
                done += end - begin
            first += it.rows
        return pa.concat_tables(tables), errors

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Job:
        if found.get("format") != FORMAT:
            raise CorpusError(f"job.json has the format {found.get('format')}, not {FORMAT}")
        given = {key: value for key, value in found.items() if key != "format"}
        inputs = [{**it, "offsets": tuple(it["offsets"])} for it in given["inputs"]]
        columns = {**given["columns"], "texts": tuple(given["columns"]["texts"])}
        return cls(
            **{
                **given,
                "inputs": tuple(Input(**it) for it in inputs),
                "columns": Columns(**columns),
                "keep": tuple(given["keep"]),
            }
        )


class Output:
    """The folder of a job. Any number of processes may use it at once."""

    def __init__(self, name: str):
        self.name, self.place = name, Place.of(name)

    def find(self) -> Job | None:
        if (self.place / "job.json").size() is None:
            return None
        return Job.from_json(json.loads((self.place / "job.json").read()))

    def job(self) -> Job:
        found = self.find()
        if found is None:
            raise CorpusError(f"{self.name} has no job.json: it is no output of linnet-corpus")
        return found

    def begin(self, wanted: Job, names: Sequence[str]) -> Job:
        """The job of the folder, which the first worker writes: `wanted` with the inputs of these
        names counted. Raises CorpusError if the folder has another job or an input has changed."""
        found = self.find()
        if found is None:
            found = wanted.with_inputs(names)
            (self.place / "job.json").write(_json(found.to_json()))
            return found
        theirs = found.to_json() | {"inputs": [it.name for it in found.inputs]}
        given = wanted.to_json() | {"inputs": names, "arrow_schema": found.arrow_schema}
        ours = json.loads(_json(given))
        for key, value in json.loads(_json(theirs)).items():
            if value != ours[key]:
                raise CorpusError(
                    f"{self.name} is the output of another job: its {key} is {value}, not "
                    f"{ours[key]}; name another folder, with --only-changed {self.name} to keep "
                    "what has not changed"
                )
        for it in found.inputs:
            it.check()
        return found

    def is_done(self, chunk: Chunk) -> bool:
        return (self.place / f"{chunk.name}.json").size() is not None

    def manifest(self, chunk: Chunk) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place / f"{chunk.name}.json").read())
        return found

    def data(self, chunk: Chunk) -> bytes:
        return (self.place / f"{chunk.name}.parquet").read()

    def table(self, chunk: Chunk) -> pa.Table:
        # Not read_table: its threads hold Python objects beyond the last line of a program, and the
        # process may then end with SIGABRT (pyarrow 26.0.1).
        file = pq.ParquetFile(pa.BufferReader(self.data(chunk)))
        return file.read(use_threads=False)

    def done(self) -> list[Chunk]:
        """The chunks with a manifest, sorted."""
        names = [name[:-5] for name in self.place.names() if name.endswith(".json")]
        ranges = [name.split("-") for name in names if name.replace("-", "").isdigit()]
        return [Chunk(int(begin), int(end)) for begin, end in ranges]

    def commit(self, job: Job, chunk: Chunk, table: pa.Table, processor: str) -> None:
        """Writes the file of a chunk, and then its manifest. `processor`: what decoded it."""
        out = io.BytesIO()
        pq.write_table(table, out, compression="zstd")
        manifest = {
            "format": FORMAT,
            "rows": [chunk.begin, chunk.end],
            "source": source_digest(job.columns, table),
            "bundle": job.bundle,
            "compute": job.compute,
            "processor": processor,
            "backend": job.backend,
            "options": job.options,
            "versions": {"linnet-corpus": __version__, "pyarrow": pa.__version__},
            "sha256": hashlib.sha256(out.getvalue()).hexdigest(),
            "answers": base64.b64encode(b"".join(answer_digests(job.columns, table))).decode(),
        }
        (self.place / f"{chunk.name}.parquet").write(out.getvalue())
        (self.place / f"{chunk.name}.json").write(_json(manifest))

    def remove_unfinished(self) -> None:
        """Removes the unfinished files of chunks that are done, as killed writers leave them. Those
        of other chunks stay: their writers may still run, here or on another machine. A writer
        whose file is removed finds its chunk done."""
        for path, name in self.place.unfinished():
            if (self.place / f"{name.partition('.')[0]}.json").size() is not None:
                path.unlink(missing_ok=True)


class Done(NamedTuple):
    """A chunk that is committed."""

    chunk: Chunk
    decoded: int  # rows; the others were equal to earlier ones, blank or kept
    tokens: int  # of the decoded rows


class Worker:
    """Translates chunks of a job, one after the other. Has a back end, which close() ends.

    `earlier` names the output whose answers are kept; "": none. Names of files are relative to
    `folder`, which becomes that of the process: an engine starts its workers elsewhere."""

    def __init__(self, output: str, make: Callable[[], Backend], earlier: str, folder: str):
        os.chdir(folder)
        self._output = Output(output)
        self._job = self._output.job()
        self._memory = Memory(kept=kept_answers(Output(earlier), self._job) if earlier else None)
        self._backend = make()
        found, wanted = (
            f"the bundle {it.bundle} in {it.compute}" for it in (self._backend, self._job)
        )
        if found != wanted:
            raise CorpusError(f"the job needs {wanted}, this worker has {found}")

    def translate(self, chunk: Chunk, came: Came = ignore) -> tuple[Done, pa.Table]:
        """Reads, translates and commits a chunk. Returns its rows as well."""
        answers: list[Answer] = []

        def counted(answer: Answer) -> None:
            answers.append(answer)
            came(answer)

        table, errors = self._job.read(chunk)
        table = translate_table(
            table,
            self._backend,
            self._job.columns,
            memory=self._memory,
            errors=errors,
            came=counted,
        ).combine_chunks()
        self._output.commit(self._job, chunk, table, self._backend.processor)
        return Done(chunk, len(answers), sum(answer.tokens for answer in answers)), table

    def close(self) -> None:
        self._backend.close()


def source_digest(columns: Columns, table: pa.Table) -> str:
    """The digest of all rows that were asked about."""
    keys = [
        [row.key().hex() if row else None for row in columns.rows(table, text)]
        for text in columns.texts
    ]
    return digest(keys).hex()


def answer_digests(columns: Columns, table: pa.Table) -> Iterator[bytes]:
    """The digest of each row's answers, 8 bytes."""
    names = [it.name for it in columns.answer_fields()]
    for row in table.select(names).to_pylist():
        yield digest(list(row.values()))[:_DIGEST]


def kept_answers(output: Output, job: Job) -> dict[bytes, Answer]:
    """The answers of an earlier job that hold for `job`: those of rows with the same text, if the
    options are the same. Errors are not kept. About half a kilobyte of memory a row."""
    earlier = output.job()
    if (earlier.options, earlier.backend, earlier.columns.expect) != (
        job.options,
        job.backend,
        job.columns.expect,
    ):
        return {}
    kept: dict[bytes, Answer] = {}
    for chunk in output.done():
        table = output.table(chunk)
        for text, suffix in earlier.columns.suffixes():
            answers = table.select([it.name + suffix for it in SCHEMA]).rename_columns(SCHEMA.names)
            rows = earlier.columns.rows(table, text)
            for row, values in zip(rows, answers.to_pylist(), strict=True):
                if row and values["error"] is None:
                    values["warnings"] = tuple(values["warnings"])
                    kept[row.key()] = Answer(**values)
    return kept


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"
