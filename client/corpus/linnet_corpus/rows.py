"""A row to translate, its answer, and the columns of answers in a table."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

STOP, LENGTH = "STOP", "LENGTH"


class CorpusError(Exception):
    """A whole job cannot go on: a wrong option, a missing program, servers that differ."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is asked about one text."""

    text: str
    target: str | None = None  # is scored; None: a translation is searched for
    language: str = ""  # of the text, BCP-47; "": that of the model
    seed: int | None = None  # sample with this seed, 0 to 2^64 - 1

    def key(self) -> bytes:
        """The digest of the row, 16 bytes."""
        return digest([self.text, self.target, self.language, self.seed])


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one row. A row that cannot be answered has an `error` and nothing else."""

    translation: str | None = None
    score: float | None = None  # log-probability by length, or as options say; mean of sentences
    finish_reason: str | None = None  # STOP, or LENGTH: cut at the limit on target tokens
    warnings: tuple[str, ...] = ()  # their reasons: LANGUAGE_MISMATCH, FACTS_DIFFER, …
    error: str | None = None
    tokens: int = 0  # of the target, end token included
    bundle: str = ""  # sha256 of the model's weights; "": those of the back end
    compute: str = ""  # float32, int8, …; "": that of the back end


Came = Callable[[Answer], None]


def ignore(_: Answer) -> None: ...


class Backend(Protocol):
    """Decodes rows. The answer to a row does not depend on the other rows."""

    name: str  # "embedded" or "fleet"
    bundle: str
    compute: str
    processor: str  # instruction sets that decode; "": unknown

    def answers(self, rows: Sequence[Row], came: Came = ignore) -> list[Answer]:
        """The answers, in the order of the rows; `came` gets each when it arrives. Raises
        CorpusError if the back end cannot go on."""

    def close(self) -> None: ...


# The columns of an answer. Names may get a suffix, the order and the types stay.
SCHEMA = pa.schema(
    [
        ("translation", pa.string()),
        ("score", pa.float32()),
        ("finish_reason", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
        ("tokens", pa.int32()),
        ("bundle", pa.string()),
        ("compute", pa.string()),
    ]
)


# Metadata of a schema that holds with more columns too: indexes and nullable integers of pandas,
# classes of datasets. Spark's hides the columns that it does not name.
_LASTING = (b"pandas", b"huggingface")


def lasting(schema: pa.Schema) -> dict[bytes, bytes]:
    """The metadata that an output keeps."""
    return {name: it for name, it in (schema.metadata or {}).items() if name in _LASTING}


def digest(values: object) -> bytes:
    """16 bytes of BLAKE2b over the values as JSON."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Memory:
    """The answers of earlier rows, so that equal rows are decoded once; the oldest are dropped. An
    answer is the same however often its row is decoded, so what is dropped changes no byte.

    `kept` are answers of an earlier job, which are never dropped."""

    def __init__(self, max_rows: int = 200_000, kept: Mapping[bytes, Answer] | None = None):
        self._max_rows, self._kept = max_rows, kept or {}
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()

    def get(self, key: bytes) -> Answer | None:
        return self._answers.get(key) or self._kept.get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        self._answers[key] = answer
        if len(self._answers) > self._max_rows:
            self._answers.popitem(last=False)
