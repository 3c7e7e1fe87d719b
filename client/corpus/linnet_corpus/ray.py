"""Translates a Ray dataset.

    from functools import partial
    from linnet_corpus import Embedded, ray

    make = partial(Embedded, "model/bundles/en-de", threads=2)
    translated = ray.translate(dataset, make, num_cpus=2, actors=(1, 8))

Set DataContext.get_current().execution_options.preserve_order before a dataset is made if its rows
must stay in order; else sort by an id. Ray needs a CPU for itself beside those of the actors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import ray.data
from ray.data import ActorPoolStrategy, Dataset
from ray.util.metrics import Counter

from .job import Chunk, Done, Worker
from .rows import Answer, Backend, Memory
from .table import Columns, translate_table

MakeBackend = Callable[[], Backend]


class _Metrics:
    """Of Ray: what an actor has decoded."""

    def __init__(self) -> None:
        self._rows = Counter("linnet_corpus_rows_total", "Rows that were decoded.")
        self._tokens = Counter("linnet_corpus_tokens_total", "Target tokens of these rows.")
        self._errors = Counter("linnet_corpus_errors_total", "Rows that have an error.")

    def came(self, answer: Answer) -> None:
        self._rows.inc()
        if answer.tokens:
            self._tokens.inc(answer.tokens)
        if answer.error is not None:
            self._errors.inc()


class Translator:
    """An actor with a back end, for Dataset.map_batches with batch_format="pyarrow": others change
    large nullable integers and lists with a null. The block of a killed actor is translated again,
    to the same answers. Ray's metrics count rows, tokens and errors."""

    def __init__(self, make: MakeBackend, columns: Columns | None = None):
        self._backend, self._columns, self._memory = make(), columns, Memory()
        self._metrics = _Metrics()

    def __call__(self, table: pa.Table) -> pa.Table:
        return translate_table(
            table, self._backend, self._columns, memory=self._memory, came=self._metrics.came
        )


def translate(
    dataset: Dataset,
    make: MakeBackend,
    columns: Columns | None = None,
    *,
    actors: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    batch_size: int = 4096,
    **options: Any,
) -> Dataset:
    """The dataset with the columns of linnet_corpus.SCHEMA. Each actor makes a back end and has
    `num_cpus`; two numbers of actors are the fewest and the most. Other options are those of
    map_batches."""
    fewest, most = (actors, actors) if isinstance(actors, int) else actors
    return dataset.map_batches(
        Translator,
        fn_constructor_args=(make, columns),
        batch_format="pyarrow",
        batch_size=batch_size,
        num_cpus=num_cpus,
        compute=ActorPoolStrategy(min_size=fewest, max_size=most),
        **options,
    )


class ChunkTranslator:
    """An actor that does chunks of a job of linnet-corpus."""

    def __init__(self, make: Callable[[], Worker]):
        self._worker, self._metrics = make(), _Metrics()

    def __call__(self, chunks: pa.Table) -> pa.Table:
        found = []
        for row in chunks.to_pylist():
            done, _ = self._worker.translate(Chunk(**row), self._metrics.came)
            found.append(row | {"decoded": done.decoded, "tokens": done.tokens})
        return pa.Table.from_pylist(found)


def translate_chunks(
    chunks: Sequence[Chunk], make: Callable[[], Worker], actors: int, num_cpus: float
) -> Iterator[Done]:
    """Spreads the chunks of a job over actors, and yields each when it is done."""
    items = [asdict(chunk) for chunk in chunks]
    dataset = ray.data.from_items(items, override_num_blocks=len(items))
    done = dataset.map_batches(
        ChunkTranslator,
        fn_constructor_args=(make,),
        batch_format="pyarrow",
        num_cpus=num_cpus,
        compute=ActorPoolStrategy(size=actors),
    )
    for row in done.iter_rows():
        yield Done(Chunk(row["begin"], row["end"]), row["decoded"], row["tokens"])
