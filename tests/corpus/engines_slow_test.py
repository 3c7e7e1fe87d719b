"""Ray Data, Spark, datasets and the shell give the same rows. Needs PyPI and Java 17."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import engines
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign import files_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs/CORPUS.md").read_text()
FLAGS = ["--bundle", "model/bundles/en-de", "--option", "beam_size=2", "--chunk-rows", "30"]
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python() -> str:
    return str(engines.install())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, binaries) -> Path:
    """in.parquet, and random bundles at the places that the page names."""
    os.environ.setdefault("LINNET_OPS_LIBRARY", str(binaries.parent / "lib/liblinnet_ops.so"))
    folder = tmp_path_factory.mktemp("corpus")
    make = ["--preset", "tiny", "--vocab", "600", "--dtype", "float32", "--tokenizer"]
    bundle = folder / "model/bundles/en-de"
    program = [sys.executable, "-m", "linnet_model.random_bundle", *make, "--out", bundle]
    subprocess.run(program, check=True)
    # Ray and Spark have altered integers above 2^53 beside nulls, and lists with a null.
    numbers = [None if number % 3 == 0 else 2**53 + 1 + number for number in range(200)]
    table = pa.table(
        {
            "id": pa.array(range(200), pa.int64()),
            "text": [f"Bado runa {number % 150}." for number in range(200)],
            "number": pa.array(numbers, pa.int64()),
            "tags": pa.array([[None, "a"], []] * 100, pa.list_(pa.string())),
        }
    )
    pq.write_table(table, folder / "in.parquet", row_group_size=40)
    return folder


@pytest.fixture(scope="module")
def in_folder(folder, program):
    """Runs a command in the folder."""
    environment = {**os.environ, "LINNET_DECODE": str(program("linnet-decode"))}
    environment["RAY_worker_niceness"] = "0"  # Ray's 15 stalls workers on a busy machine

    def run(*command: str | Path) -> None:
        words = [str(word) for word in command]
        subprocess.run(words, cwd=folder, env=environment, check=True, timeout=900)

    return run


@pytest.fixture(scope="module")
def shell(in_folder, folder) -> pa.Table:
    command = [sys.executable, "-m", "linnet_corpus.command"]
    in_folder(*command, "run", "in.parquet", "-o", "shell", *FLAGS, "--children", "2")
    in_folder(*command, "merge", "shell", "-o", "shell.parquet")
    return pq.read_table(folder / "shell.parquet").replace_schema_metadata()


@pytest.mark.parametrize("engine", ["ray", "spark", "executors", "udf", "hf"])
def test_engine_gives_the_rows_of_the_shell(python, in_folder, folder, shell, engine):
    bundle, out = "model/bundles/en-de", f"{engine}.parquet"
    flags = ["--option", "beam_size=2"]
    in_folder(python, HERE / "engine_runs.py", engine, "in.parquet", out, bundle, *flags)
    assert pq.read_table(folder / out).replace_schema_metadata() == shell


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_job_on_an_engine_has_the_files_of_the_shell(python, in_folder, folder, shell, engine):
    out = f"{engine}-job"
    run = [python, "-m", "linnet_corpus.command", "run", "in.parquet", "-o", out, *FLAGS]
    in_folder(*run, "--threads", "1", "--engine", engine, "--actors", "2")
    assert files_of(folder / out) == files_of(folder / "shell")


def test_columns_in_another_order_than_spark_expects_are_refused(python, in_folder):
    # Spark takes columns by their position: source and target would change places in silence.
    code = """
import pickle, pyarrow as pa
from linnet_corpus import Columns, CorpusError, SCHEMA, spark
from shouting import Shouting

batch = pa.record_batch({"text": ["a"], "target": ["b"]})

def translate(*names):
    made = pickle.dumps(Shouting)
    return next(spark._translate(made, Columns(), [*names, *SCHEMA.names], iter([batch])))

assert translate("text", "target")["translation"].to_pylist() == ["A"]
try:
    translate("target", "text")
except CorpusError as error:
    assert "Spark expects ['target', 'text'" in str(error)
else:
    raise SystemExit("not refused")
"""
    in_folder("env", f"PYTHONPATH={HERE}", python, "-c", code)


@pytest.mark.parametrize(
    ("module", "output"),
    [("ray", "ray-out"), ("pyspark", "spark-out"), ("datasets", "hf-out.parquet")],
)
def test_code_of_the_page_translates_every_row(python, in_folder, folder, module, output):
    (code,) = [
        block for block in BLOCKS if f"import {module}\n" in block or f"from {module}" in block
    ]
    in_folder("env", f"PYSPARK_PYTHON={python}", python, "-c", code)
    table = pq.read_table(folder / output)
    assert table.num_rows == 200
    assert table["error"].null_count == 200


def test_object_store_has_inputs_and_outputs(python, bundle, decode, tmp_path):
    subprocess.run([python, HERE / "store_run.py", tmp_path], check=True, timeout=300)
    assert (tmp_path / "all.txt").read_text() == "ONE\nTWO\nTHREE\n"
