"""Translates the rows of an Arrow table."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .languages import language_error
from .rows import (
    SCHEMA,
    STOP,
    Answer,
    Backend,
    Came,
    CorpusError,
    Memory,
    Row,
    digest,
    ignore,
    lasting,
)

_NO_ERRORS: Mapping[int, str] = {}


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read. All others pass unchanged.

    With several texts the columns of an answer have the name of its text as a suffix:
    `translation_title`, `error_title`."""

    texts: tuple[str, ...] = ("text",)
    target: str = ""  # is scored; "": a translation is searched for
    language: str = ""  # of the row, BCP-47
    seed: int | None = None  # sample; each row has its own seed, made of this one and the row
    expect: str = ""  # texts in another language than this one, or the row's, are errors

    def __post_init__(self) -> None:
        if isinstance(self.texts, str):
            raise CorpusError(f"texts is a string: write texts=({self.texts!r},)")
        if len(set(self.texts)) < len(self.texts):
            raise CorpusError(f"a text is named twice: {', '.join(self.texts)}")

    def answer_fields(self) -> list[pa.Field]:
        return [
            field.with_name(field.name + suffix)
            for _, suffix in self.suffixes()
            for field in SCHEMA
        ]

    def suffixes(self) -> list[tuple[str, str]]:
        """Each text with the suffix of its answer."""
        return [(text, f"_{text}" if len(self.texts) > 1 else "") for text in self.texts]

    def output(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the table with its answers. Raises CorpusError for a column that is
        missing, is no text, or has the name of an answer."""
        for name in filter(None, (*self.texts, self.target, self.language)):
            if name not in schema.names:
                raise CorpusError(
                    f"there is no column {name!r}, the columns are {', '.join(schema.names)}"
                )
            if (count := schema.names.count(name)) > 1:
                raise CorpusError(f"there are {count} columns {name!r}: rename all but one")
            kind = schema.field(name).type
            if not _is_text(kind):
                raise CorpusError(f"the column {name!r} has the type {kind}, it must be string")
        fields = self.answer_fields()
        taken = [field.name for field in fields if field.name in schema.names]
        if taken:
            raise CorpusError(
                f"the columns {', '.join(taken)} are there already: rename or leave them out"
            )
        return pa.schema([*schema, *fields], metadata=lasting(schema))

    def rows(self, table: pa.Table, text: str) -> list[Row | None]:
        """The rows of a text column; None where the text or the target is null."""
        texts = table[text].to_pylist()
        targets = table[self.target].to_pylist() if self.target else [None] * len(texts)
        languages = table[self.language].to_pylist() if self.language else [""] * len(texts)
        return [
            None
            if source is None or (self.target and target is None)
            else Row(source, target, language or "", self._seed_of(source))
            for source, target, language in zip(texts, targets, languages, strict=True)
        ]

    def refusal(self, row: Row) -> str | None:
        """The error of a row whose text is in another language than expected."""
        return language_error(row.text, row.language or self.expect) if self.expect else None

    def _seed_of(self, text: str) -> int | None:
        if self.seed is None:
            return None
        return int(struct.unpack("<Q", digest([self.seed, text])[:8])[0])


def _is_text(kind: pa.DataType) -> bool:
    """True for text in each of Arrow's forms; categories of pandas are dictionaries."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def translate_table(
    table: pa.Table,
    backend: Backend,
    columns: Columns | None = None,
    *,
    memory: Memory | None = None,
    errors: Mapping[int, str] = _NO_ERRORS,
    came: Came = ignore,
) -> pa.Table:
    """Returns the table with the columns of SCHEMA: for each text, in the order of the rows.

    Equal rows are decoded once, here and within `memory`. A text without a character other than
    white space is its own translation. A bad row is a value in `error`, never an exception:
    `errors` has those that the reader of the table found. Raises CorpusError if the columns do not
    fit the table or the back end cannot go on."""
    columns = columns or Columns()
    schema = columns.output(table.schema)
    memory = memory or Memory()
    arrays = [column for column in table.columns]
    for text in columns.texts:
        rows = columns.rows(table, text)
        arrays += _arrays(_answers(rows, backend, columns, memory, errors, came), backend)
    return pa.table(arrays, schema=schema)


def _answers(
    rows: Sequence[Row | None],
    backend: Backend,
    columns: Columns,
    memory: Memory,
    errors: Mapping[int, str],
    came: Came,
) -> list[Answer]:
    keys: list[bytes | None] = []
    found: dict[bytes, Answer] = {}
    wanted: dict[bytes, Row] = {}
    for number, row in enumerate(rows):
        key = row.key() if row is not None else None
        keys.append(key)
        if row is None or key is None or number in errors or key in found or key in wanted:
            continue
        known = memory.get(key)
        if known is not None:
            found[key] = known
        elif row.target is None and not row.text.strip():
            found[key] = Answer(translation=row.text, finish_reason=STOP)
        elif wrong := columns.refusal(row):
            found[key] = Answer(error=wrong)
        else:
            wanted[key] = row
    # Rows of about the same length run together, and the longest do not come last, alone.
    order = sorted(wanted, key=lambda key: -len(wanted[key].text))
    answers = backend.answers([wanted[key] for key in order], came)
    for key, answer in zip(order, answers, strict=True):
        found[key] = answer
        memory.put(key, answer)
    null = Answer(error="the text or its target is null")
    return [
        Answer(error=errors[number]) if number in errors else null if key is None else found[key]
        for number, key in enumerate(keys)
    ]


def _arrays(answers: Sequence[Answer], backend: Backend) -> list[pa.Array]:
    values = {
        "translation": [it.translation for it in answers],
        "score": [it.score for it in answers],
        "finish_reason": [it.finish_reason for it in answers],
        "warnings": [list(it.warnings) for it in answers],
        "error": [it.error for it in answers],
        "tokens": [it.tokens for it in answers],
        "bundle": [it.bundle or backend.bundle for it in answers],
        "compute": [it.compute or backend.compute for it in answers],
    }
    return [pa.array(values[field.name], type=field.type) for field in SCHEMA]
