"""Translates a Spark data frame.

    from functools import partial
    from linnet_corpus import Embedded, spark

    make = partial(Embedded, "model/bundles/en-de")
    spark.translate(frame, make).write.parquet("out")

Each Python worker makes a back end and keeps it. Rows that Spark computes twice, for take() or
after a lost executor, have the same answers. PYSPARK_PYTHON names a Python with this package.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from .job import Chunk, Done, Worker
from .rows import SCHEMA, Backend, CorpusError, Memory
from .table import Columns, translate_table

MakeBackend = Callable[[], Backend]

# Those of this Python worker, by how they are made.
_backends: dict[bytes, tuple[Backend, Memory]] = {}
_workers: dict[bytes, Worker] = {}


def translate(frame: DataFrame, make: MakeBackend, columns: Columns | None = None) -> DataFrame:
    """The frame with the columns of linnet_corpus.SCHEMA."""
    columns = columns or Columns()
    schema = columns.output(to_arrow_schema(frame.schema))
    answers = from_arrow_schema(pa.schema(columns.answer_fields()))
    whole = StructType([*frame.schema.fields, *answers.fields])
    return frame.mapInArrow(partial(_translate, pickle.dumps(make), columns, schema.names), whole)


def udf(make: MakeBackend) -> Callable[[Column], Column]:
    """A function of a column of texts, whose value is a struct of the columns of SCHEMA."""
    made = pickle.dumps(make)

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        for texts in batches:
            table = pa.table({"text": pa.array(texts, pa.string())})
            (done,) = _translate(made, Columns(), ["text", *SCHEMA.names], iter(table.to_batches()))
            yield pa.Table.from_batches([done]).select(SCHEMA.names).to_pandas()

    # pandas_udf reads the types; pandas is needed here alone.
    import pandas as pd

    frames = {"batches": Iterator[pd.Series], "return": Iterator[pd.DataFrame]}
    answers.__annotations__ = frames
    found: Callable[[Column], Column] = pandas_udf(answers, from_arrow_schema(SCHEMA))
    return found


def _translate(
    made: bytes, columns: Columns, names: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Spark takes columns by their position: their names are compared here."""
    for batch in batches:
        if made not in _backends:
            _backends[made] = pickle.loads(made)(), Memory()
        backend, memory = _backends[made]
        done = translate_table(pa.Table.from_batches([batch]), backend, columns, memory=memory)
        if done.column_names != names:
            raise CorpusError(f"the columns are {done.column_names}, Spark expects {names}")
        yield from done.combine_chunks().to_batches()


def translate_chunks(chunks: Sequence[Chunk], make: Callable[[], Worker]) -> Iterator[Done]:
    """Spreads the chunks of a job over executors, a task each. Yields them when all are done."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    context = SparkSession.builder.getOrCreate().sparkContext
    parts = context.parallelize(chunks, len(chunks)).setName("linnet-corpus")
    yield from parts.map(partial(_translate_chunk, pickle.dumps(make))).collect()


def _translate_chunk(made: bytes, chunk: Chunk) -> Done:
    if made not in _workers:
        _workers[made] = pickle.loads(made)()
    done, _ = _workers[made].translate(chunk)
    return done
