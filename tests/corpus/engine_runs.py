"""Translates a Parquet file with an engine, in an environment that has it:

    engine_runs.py ENGINE INPUT OUTPUT BUNDLE [--block ROWS] [--option NAME=VALUE] [--then PROGRAM]

OUTPUT is one Parquet file, sorted by the column id. ENGINE is ray, hf or spark, which run in one
process beside the Python workers, or executors: Spark on two of them. PROGRAM is Python that runs
afterwards, with the same Ray or Spark.
"""

from __future__ import annotations

import argparse
import atexit
import os
import runpy
import sys
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from linnet_corpus import Embedded


def with_ray(path: str, make: partial[Embedded], block: int) -> pa.Table:
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
    dataset = ray.data.read_parquet(path).repartition(target_num_rows_per_block=block)
    done = translate(dataset, make, actors=2, batch_size=block)
    tables = [ray.get(it) for it in done.to_arrow_refs()]
    return pa.concat_tables(tables)


def with_spark(path: str, make: partial[Embedded], block: int, engine: str) -> pa.Table:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from linnet_corpus.spark import translate
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(
            "local-cluster[2,1,1024]" if engine == "executors" else "local[2]"
        )
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(block))
        # Spark gives a job up after a few failures; the campaign makes more.
        .config("spark.task.maxFailures", "20")
        .config("spark.stage.maxConsecutiveAttempts", "1000")
        .config("spark.deploy.maxExecutorRetries", "-1")
        .getOrCreate()
    )
    rows = pq.read_metadata(path).num_rows
    frame = session.read.parquet(path).repartition(-(-rows // block))
    atexit.register(session.stop)
    return translate(frame, make).toArrow()


def with_datasets(path: str, make: partial[Embedded], block: int) -> pa.Table:
    from datasets import Dataset
    from linnet_corpus.hf import translate

    backend = make()
    done = translate(Dataset.from_parquet(path), backend, batch_size=block)
    backend.close()
    return done.with_format("arrow")[:]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("engine", "input", "output", "bundle"):
        parser.add_argument(name)
    parser.add_argument("--block", type=int, default=50, help="rows of a block, partition or batch")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--then", metavar="PROGRAM")
    given = parser.parse_args()
    options = {name: int(value) for name, value in (it.split("=") for it in given.option)}
    # An executor has a working folder of its own.
    make = partial(Embedded, os.path.abspath(given.bundle), options=options)
    if given.engine == "ray":
        table = with_ray(given.input, make, given.block)
    elif given.engine == "hf":
        table = with_datasets(given.input, make, given.block)
    else:
        table = with_spark(given.input, make, given.block, given.engine)
    pq.write_table(table.sort_by("id"), given.output)
    if given.then:
        runpy.run_path(given.then)


if __name__ == "__main__":
    main()
