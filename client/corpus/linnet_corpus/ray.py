"""Translates a Ray dataset.

    from functools import partial
    from linnet_corpus import Embedded, ray

    make = partial(Embedded, "model/bundles/en-de", threads=2)
    translated = ray.translate(dataset, make, num_cpus=2, actors=(1, 8))

Set DataContext.get_current().execution_options.preserve_order before a dataset is made if its rows
must stay in order; else sort by an id. Ray needs a CPU for itself beside those of the actors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from ray.data import ActorPoolStrategy, Dataset
from ray.util.metrics import Counter

from .rows import Answer, Backend, Memory
from .table import Columns, translate_table

MakeBackend = Callable[[], Backend]


class Translator:
    """An actor with a back end, for Dataset.map_batches with batch_format="pyarrow": others change
    large nullable integers and lists with a null. The block of a killed actor is translated again,
    to the same answers. Ray's metrics count rows, tokens and errors."""

    def __init__(self, make: MakeBackend, columns: Columns | None = None):
        self._backend, self._columns, self._memory = make(), columns, Memory()
        self._rows = Counter("linnet_corpus_rows_total", "Rows that were decoded.")
        self._tokens = Counter("linnet_corpus_tokens_total", "Target tokens of these rows.")
        self._errors = Counter("linnet_corpus_errors_total", "Rows that have an error.")

    def __call__(self, table: pa.Table) -> pa.Table:
        came: list[Answer] = []
        done = translate_table(
            table, self._backend, self._columns, memory=self._memory, came=came.append
        )
        for counter, count in (
            (self._rows, len(came)),
            (self._tokens, sum(answer.tokens for answer in came)),
            (self._errors, sum(answer.error is not None for answer in came)),
        ):
            if count:
                counter.inc(count)
        return done


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
