"""Corpora in files: Parquet, JSON lines, tab-separated values and plain lines, in and out.

| ending | rows | columns |
|---|---|---|
| .parquet | of the row groups | those of the file |
| .jsonl | a JSON object in a line | its keys |
| .tsv | a line | c1, c2, … |
| .txt | a line | text |

The last three may be compressed: .jsonl.zst, .tsv.zst, .txt.zst. A path is local or an address that
pyarrow.fs knows, such as s3://bucket/folder/part.parquet; a local path may be a glob.
"""

from __future__ import annotations

import glob
import io
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pyarrow import fs

from .rows import CorpusError, lasting

_MARK = "\ufeff".encode()  # programs of Windows begin files with it
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{32}")  # the name of a file while it is written
FORMATS = ("parquet", "jsonl", "tsv", "txt")
_WRONG_VALUES = (pa.ArrowException, TypeError, ValueError, OverflowError)
SAMPLE_ROWS = 1000  # of JSON lines, which give the columns and their types


@dataclass(frozen=True)
class Place:
    """A file or folder on a file system."""

    files: fs.FileSystem
    path: str

    @classmethod
    def of(cls, name: Path | str) -> Place:
        try:
            if "://" in str(name):
                address = str(name)
                if address.startswith("s3://"):
                    # A small object then takes one request in place of three.
                    address += f"{'&' if '?' in address else '?'}allow_delayed_open=true"
                return cls(*fs.FileSystem.from_uri(address))
        except (OSError, ValueError) as error:
            raise CorpusError(f"{name}: {error}") from None
        return cls(fs.LocalFileSystem(), os.path.abspath(name))

    def __truediv__(self, name: str) -> Place:
        return Place(self.files, f"{self.path}/{name}")

    @property
    def is_local(self) -> bool:
        return isinstance(self.files, fs.LocalFileSystem)

    def size(self) -> int | None:
        """Bytes; None if there is no such file."""
        found = self.files.get_file_info(self.path)
        return found.size if found.type == fs.FileType.File else None

    def names(self) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        select = fs.FileSelector(self.path, allow_not_found=True)
        return sorted(found.base_name for found in self.files.get_file_info(select))

    def read(self) -> bytes:
        with self.files.open_input_file(self.path) as file:
            return bytes(file.read())

    def write(self, data: bytes) -> None:
        with self.writing() as file:
            file.write(data)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """A file that is there, whole, when the block ends, and not at all if it raises. It
        replaces one of its name. A local file is then on the disk; a store keeps objects whole."""
        if not self.is_local:
            with self.files.open_output_stream(self.path) as stream:
                yield stream
            return
        path = Path(self.path)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            try:
                os.replace(temporary, path)
            except FileNotFoundError:  # Output.remove_unfinished: another one has written it
                if not path.exists():
                    raise
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise CorpusError(f"cannot write {path}: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)

    def unfinished(self) -> Iterator[tuple[Path, str]]:
        """The files in a local folder that are being written, or were when their writer was killed,
        with the names that they are to get."""
        for name in self.names() if self.is_local else ():
            if found := _UNFINISHED.fullmatch(name):
                yield Path(self.path, name), found[1]


def find_inputs(names: Sequence[Path | str]) -> list[str]:
    """The paths, with globs expanded; those of a glob are sorted."""
    found: list[str] = []
    for name in map(str, names):
        if "://" in name or not glob.has_magic(name):
            found.append(name if "://" in name else os.path.abspath(name))
            continue
        matching = sorted(glob.glob(name, recursive=True))
        if not matching:
            raise CorpusError(f"no file matches {name}")
        found += map(os.path.abspath, matching)
    return found


def format_of(name: Path | str) -> tuple[str, bool]:
    """Format, and whether it is compressed with zstd."""
    path = str(name).partition("?")[0] if "://" in str(name) else str(name)
    stem = path.removesuffix(".zst")
    compressed = stem != path
    ending = stem.rpartition(".")[2]
    if ending not in FORMATS or (compressed and ending == "parquet"):
        raise CorpusError(
            f"{name} has an unknown ending: there are .parquet, .jsonl, .tsv and .txt, the last "
            "three also with .zst"
        )
    return ending, compressed


@dataclass(frozen=True)
class Input:
    """One input of a job. `offsets[i]` is the byte at which row i * `stride` begins, of a file with
    uncompressed lines; others have none and are read from their beginning."""

    name: str
    size: int
    rows: int
    stride: int
    offsets: tuple[int, ...] = ()

    @classmethod
    def count(cls, name: str, stride: int) -> Input:
        """Reads the file once, of Parquet only the footer."""
        format_of(name)  # is it known?
        size = Place.of(name).size()
        if size is None:
            raise CorpusError(f"there is no file {name}")
        with _reading(name):
            return cls._count(name, size, stride)

    @classmethod
    def _count(cls, name: str, size: int, stride: int) -> Input:
        place, (kind, compressed) = Place.of(name), format_of(name)
        if kind == "parquet":
            with place.files.open_input_file(place.path) as file:
                return cls(name, size, pq.read_metadata(file).num_rows, stride)
        rows, at, offsets = 0, 0, []
        with _lines(place, compressed) as file:
            for line in file:
                if rows % stride == 0:
                    offsets.append(at)
                rows, at = rows + 1, at + len(line)
        return cls(name, size, rows, stride, () if compressed else tuple(offsets))

    def check(self) -> None:
        """Raises CorpusError if the file has another size than when it was counted."""
        size = Place.of(self.name).size()
        if size != self.size:
            raise CorpusError(
                f"{self.name} has {'no' if size is None else size} bytes, it had {self.size} when "
                "the job began: restore it, or begin another job"
            )

    def schema(self) -> pa.Schema:
        with _reading(self.name):
            return self._schema()

    def _schema(self) -> pa.Schema:
        place, (kind, compressed) = Place.of(self.name), format_of(self.name)
        if kind == "parquet":
            with place.files.open_input_file(place.path) as file:
                schema = pq.read_schema(file)
                return schema.with_metadata(lasting(schema))
        if kind == "txt":
            return pa.schema([("text", pa.string())])
        with _lines(place, compressed) as file:
            sample = _unmarked(list(islice(file, SAMPLE_ROWS)))
        if kind == "tsv":
            count = sample[0].count(b"\t") + 1 if sample else 1
            return pa.schema([(f"c{number}", pa.string()) for number in range(1, count + 1)])
        rows = [row for row, error in map(_json_row, sample) if not error]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.schema(
            [
                (name, _type_of([row[name] for row in rows if row.get(name) is not None]))
                for name in names
            ]
        )


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Names the file in the errors of reading it, which end a job."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise CorpusError(f"{name} cannot be read: {error}") from None


class Reader:
    """Reads ranges of the rows of an input. A compressed file is read on from where the last range
    ended, so ranges in the order of the rows read it once. Not thread-safe."""

    def __init__(self, source: Input):
        self._source = source
        self._place, (self._kind, self._compressed) = Place.of(source.name), format_of(source.name)
        self._open = ExitStack()
        self._file: BinaryIO | None = None
        self._at = 0  # row of the next line of the file
        self._width = len(source.schema()) if self._kind == "tsv" else 0  # columns of a line

    def read(
        self, begin: int, end: int, schema: pa.Schema, *, all_keys: bool
    ) -> tuple[pa.Table, dict[int, str]]:
        """The rows from `begin` up to `end` as a table with this schema, and the errors of rows
        that cannot be read, whose values are null where they do not fit. With `all_keys` a JSON
        object with a key that is no column is such a row; without it, the key is left out."""
        self._source.check()
        with _reading(self._source.name):
            return self._rows(begin, end, schema, all_keys)

    def _rows(
        self, begin: int, end: int, schema: pa.Schema, all_keys: bool
    ) -> tuple[pa.Table, dict[int, str]]:
        if self._kind == "parquet":
            return _read_parquet(self._place, begin, end, schema), {}
        if self._file is None or begin < self._at:
            self._open.close()
            self._file, self._at = (
                self._open.enter_context(_lines(self._place, self._compressed)),
                0,
            )
        if self._source.offsets and begin - self._at > begin % self._source.stride:
            self._at = begin - begin % self._source.stride
            self._file.seek(self._source.offsets[begin // self._source.stride])
        for _ in range(begin - self._at):
            self._file.readline()
        lines = list(islice(self._file, end - begin))
        self._at = end
        if len(lines) != end - begin:
            raise CorpusError(f"{self._source.name} has fewer rows than when the job began")
        if begin == 0:
            lines = _unmarked(lines)
        return _table(self._kind, lines, schema, all_keys, self._width)


def _unmarked(lines: list[bytes]) -> list[bytes]:
    """The first lines of a file without its byte order mark."""
    return [line.removeprefix(_MARK) for line in lines[:1]] + lines[1:]


def _type_of(values: Sequence[Any]) -> pa.DataType:
    """The type of all values, or else that of most of them."""
    try:
        return pa.array(values).type
    except _WRONG_VALUES:
        ((common, _),) = Counter(map(type, values)).most_common(1)
    for value in values:
        if type(value) is common:
            try:
                return pa.array([value]).type
            except _WRONG_VALUES:  # a number of more than 64 bits
                continue
    return pa.null()


def _fits(value: object, field: pa.Field) -> bool:
    try:
        return _is_same(value, pa.array([value], field.type)[0].as_py())
    except _WRONG_VALUES:
        return False


def _is_same(value: Any, read: Any) -> bool:
    """True if `read`, which Arrow has made of a value of JSON, is that value. Arrow makes 1 of 1.5
    where it wants an integer, and drops keys that a type does not have. Its objects have null for
    missing keys."""
    if isinstance(value, dict):
        return (
            isinstance(read, dict)
            and value.keys() <= read.keys()
            and all(_is_same(value.get(name), read[name]) for name in read)
        )
    if isinstance(value, list):
        return (
            isinstance(read, list) and len(value) == len(read) and all(map(_is_same, value, read))
        )
    if isinstance(value, bool) or isinstance(read, bool):
        return value is read
    return bool(value == read or value != value)  # NaN differs from itself


def _is_whole(rows: Sequence[dict[str, Any]], table: pa.Table) -> bool:
    """True if the table has the values of the rows. Arrow changes none to make it a string."""
    return all(
        all(map(_is_same, (row.get(it.name) for row in rows), table[it.name].to_pylist()))
        for it in table.schema
        if not pa.types.is_string(it.type)
    )


def _table(
    kind: str, lines: Sequence[bytes], schema: pa.Schema, all_keys: bool, width: int
) -> tuple[pa.Table, dict[int, str]]:
    read = {"jsonl": _json_row, "tsv": _tsv_row, "txt": _text_row}[kind]
    rows: list[dict[str, Any]] = []
    errors: dict[int, str] = {}
    for number, line in enumerate(lines):
        row, error = read(line)
        if width and not error and len(row) != width:
            error = f"the line has {len(row)} columns, the first line has {width}"
        unknown = sorted(row.keys() - set(schema.names)) if all_keys else []
        if unknown:
            error = f"the first {SAMPLE_ROWS} lines have no {', '.join(unknown)}: see --keep"
        if error:
            errors[number] = error
        rows.append(row)
    with suppress(*_WRONG_VALUES):
        table = pa.Table.from_pylist(rows, schema)
        if _is_whole(rows, table):
            return table, errors
    for number, row in enumerate(rows):  # find the values that have other types
        wrong = [it.name for it in schema if not _fits(row.get(it.name), it)]
        if wrong:
            said = (
                f"the value of {', '.join(wrong)} has another type than in most lines: see --keep"
            )
            errors[number] = said
            rows[number] = {name: value for name, value in row.items() if name not in wrong}
    return pa.Table.from_pylist(rows, schema), errors


def _text_of(line: bytes) -> tuple[str, str]:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode(), ""
    except UnicodeDecodeError as error:
        return "", f"the line is not UTF-8: {error.reason} at byte {error.start}"


def _text_row(line: bytes) -> tuple[dict[str, Any], str]:
    text, error = _text_of(line)
    return {} if error else {"text": text}, error


def _tsv_row(line: bytes) -> tuple[dict[str, Any], str]:
    text, error = _text_of(line)
    cells = [] if error else text.split("\t")
    return {f"c{number}": cell for number, cell in enumerate(cells, 1)}, error


def _object(found: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(found)
    if len(values) < len(found):
        raise ValueError(f"a name occurs twice among {', '.join(name for name, _ in found)}")
    return values


def _json_row(line: bytes) -> tuple[dict[str, Any], str]:
    text, error = _text_of(line)
    if error:
        return {}, error
    try:
        row = json.loads(text, object_pairs_hook=_object)
        text.encode()
        json.dumps(row, ensure_ascii=False).encode()  # an escape may be half of a pair
    except (ValueError, RecursionError) as wrong:
        return {}, f"the line is not JSON: {wrong}"
    return (row, "") if isinstance(row, dict) else ({}, "the line is not a JSON object")


def _read_parquet(place: Place, begin: int, end: int, schema: pa.Schema) -> pa.Table:
    with place.files.open_input_file(place.path) as source:
        file = pq.ParquetFile(source)
        at, first = 0, 0
        groups: list[int] = []
        for number in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if at < end and at + rows > begin:
                first = first if groups else at
                groups.append(number)
            at += rows
        table = file.read_row_groups(groups, columns=schema.names, use_threads=False)
    table = table.slice(begin - first, end - begin)
    return table.select(schema.names).cast(schema)


@contextmanager
def _lines(place: Place, compressed: bool) -> Iterator[BinaryIO]:
    """The file, whose iterator gives lines with their ends."""
    with place.files.open_input_file(place.path) as source:
        if not compressed:
            yield io.BufferedReader(source, 1 << 20)
            return
        # Unlike the reader of zstandard it does not take a file that is cut for one that ends.
        with pa.CompressedInputStream(source, "zstd") as plain:
            yield io.BufferedReader(plain, 1 << 20)


def write_tables(tables: Iterator[pa.Table], schema: pa.Schema, name: Path | str) -> None:
    """Writes tables of one schema to a file, whole or not at all, in the format of its name. Equal
    tables give equal bytes. A .tsv has all columns, a .txt the translations alone; tabs and line
    ends in a value become blanks there."""
    kind, compressed = format_of(name)
    for field in schema if kind in ("jsonl", "tsv") else ():
        if _has_bytes(field.type):
            raise CorpusError(
                f"the column {field.name!r} has the type {field.type}, which is no text: write a "
                ".parquet"
            )
    with Place.of(name).writing() as file:
        if kind == "parquet":
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in tables:
                    writer.write_table(table)
            return
        for table in tables:
            data = "".join(_line(row, kind) + "\n" for row in table.to_pylist()).encode()
            file.write(zstandard.ZstdCompressor().compress(data) if compressed else data)


def _has_bytes(kind: pa.DataType) -> bool:
    is_bytes = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return is_bytes or any(map(_has_bytes, inner))


def _line(row: dict[str, Any], kind: str) -> str:
    if kind == "jsonl":
        return json.dumps(row, ensure_ascii=False, default=str)
    return _cell(row["translation"]) if kind == "txt" else "\t".join(map(_cell, row.values()))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list | Mapping):
        value = json.dumps(value, ensure_ascii=False)
    return " ".join(str(value).splitlines()).replace("\t", " ")
