"""Translates a Parquet file with an engine, in an environment that has it:

    engine_runs.py ray|spark|udf|hf INPUT OUTPUT BUNDLE

OUTPUT is one Parquet file, sorted by the column id.
"""

from __future__ import annotations

import os
import sys
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from linnet_corpus import Embedded


def with_ray(path: str, make: partial[Embedded]) -> pa.Table:
    import ray.data
    from linnet_corpus.ray import translate

    ray.init(
        num_cpus=4,  # of which two are the actors'; reading needs one of its own
        object_store_memory=256 << 20,
        include_dashboard=False,
        log_to_driver=False,
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    dataset = ray.data.read_parquet(path).repartition(4)
    done = translate(dataset, make, actors=2, batch_size=64)
    tables = [ray.get(it) for it in done.to_arrow_refs()]
    return pa.concat_tables(tables)


def with_spark(path: str, make: partial[Embedded], use_udf: bool) -> pa.Table:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from linnet_corpus.spark import translate, udf
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .getOrCreate()
    )
    frame = session.read.parquet(path).repartition(3)
    if use_udf:
        done = frame.withColumn("answer", udf(make)(frame.text)).select(*frame.columns, "answer.*")
    else:
        done = translate(frame, make)
    table = done.toArrow()
    session.stop()
    return table


def with_datasets(path: str, make: partial[Embedded]) -> pa.Table:
    from datasets import Dataset
    from linnet_corpus.hf import translate

    backend = make()
    done = translate(Dataset.from_parquet(path), backend, batch_size=70)
    backend.close()
    return done.with_format("arrow")[:]


def main() -> None:
    engine, path, output, bundle = sys.argv[1:]
    make = partial(Embedded, bundle, options={"beam_size": 2})
    if engine == "ray":
        table = with_ray(path, make)
    elif engine == "hf":
        table = with_datasets(path, make)
    else:
        table = with_spark(path, make, engine == "udf")
    pq.write_table(table.sort_by("id"), output)


if __name__ == "__main__":
    main()
