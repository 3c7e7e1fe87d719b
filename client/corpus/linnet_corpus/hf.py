"""Translates a dataset of Hugging Face's datasets.

from linnet_corpus import Embedded, hf

translated = hf.translate(dataset, Embedded("model/bundles/en-de"))
"""

from __future__ import annotations

import uuid

import pyarrow as pa
from datasets import Dataset

from .rows import Backend, Memory
from .table import Columns, translate_table


def translate(
    dataset: Dataset, backend: Backend, columns: Columns | None = None, *, batch_size: int = 4096
) -> Dataset:
    """The dataset with the columns of linnet_corpus.SCHEMA. It is always computed: the cache of
    datasets cannot tell one back end from another."""
    columns = columns or Columns()
    memory = Memory()

    def translated(table: pa.Table) -> pa.Table:
        return translate_table(table, backend, columns, memory=memory)

    done = dataset.with_format("arrow").map(
        translated, batched=True, batch_size=batch_size, new_fingerprint=uuid.uuid4().hex
    )
    return done.with_format(dataset.format["type"])
