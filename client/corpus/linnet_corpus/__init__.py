"""Translates corpora: tables, files and shards of them, each row exactly once.

    from linnet_corpus import Embedded, translate_table

    translated = translate_table(table, Embedded("model/bundles/en-de"))

The adapters are linnet_corpus.ray, linnet_corpus.spark and linnet_corpus.hf; the program is
linnet-corpus.
"""

from .embedded import Embedded
from .fleet import Fleet
from .rows import SCHEMA, Answer, Backend, CorpusError, Memory, Row
from .table import Columns, translate_table
from .version import __version__

__all__ = [
    "SCHEMA",
    "Answer",
    "Backend",
    "Columns",
    "CorpusError",
    "Embedded",
    "Fleet",
    "Memory",
    "Row",
    "__version__",
    "translate_table",
]
