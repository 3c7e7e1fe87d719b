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
BUNDLE = "model/bundles/en-de"
FLAGS = ["--bundle", BUNDLE, "--option", "beam_size=2", "--option", "max_target_tokens=6"]
ROWS, NULLS = 120, 3


def page_code(module: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (code,) = [it for it in blocks if re.search(rf"^(import|from) {module}\b", it, re.MULTILINE)]
    return str(code)


def job_code(engine: str) -> str:
    """A job that runs twice: the second time it finds everything done."""
    run = ["run", "in.parquet", "-o", f"{engine}-job", *FLAGS, "--chunk-rows", "30"]
    run += ["--threads", "1", "--engine", engine, "--actors", "2"]
    return f"""
from linnet_corpus.command import COMMANDS, parse

for _ in range(2):
    given = parse({run})
    assert COMMANDS[given.command](given) == 0
"""


# Ray keeps the order of rows if it is told to before the dataset is made.
RAY_FACTS = """
ray.data.DataContext.get_current().execution_options.preserve_order = True
ordered = ray.data.read_parquet("in.parquet").repartition(target_num_rows_per_block=20)
rows = translate(ordered, make, actors=2, num_cpus=1).take_all()
assert [row["id"] for row in rows] == list(range(len(rows)))
"""

# Spark computes more rows than take() returns, and its worker may be a new one afterwards. It takes
# columns by their position: without a check, source and target would change places in silence.
SPARK_FACTS = """
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
from linnet_corpus import SCHEMA, Columns, CorpusError, spark
from shouting import Shouting

done = translate(frame, make)
(first,) = done.take(1)
(same,) = done.where(done.id == first.id).collect()
assert first == same

limited = partial(make, options={"beam_size": 2, "max_target_tokens": 6})
answers = frame.withColumn("answer", spark.udf(limited)(frame.text))
table = answers.select(*frame.columns, "answer.*").toArrow()
pq.write_table(table.sort_by("id"), "udf.parquet")

batch = pa.record_batch({"text": ["a"], "target": ["b"]})

def translated(*names):
    made = pickle.dumps(Shouting)
    return next(spark._translate(made, Columns(), [*names, *SCHEMA.names], iter([batch])))

assert translated("text", "target")["translation"].to_pylist() == ["A"]
try:
    translated("target", "text")
except CorpusError as error:
    assert "Spark expects ['target', 'text'" in str(error)
else:
    raise SystemExit("not refused")
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory, binaries) -> Path:
    """in.parquet, and a random bundle at the place that the page names."""
    os.environ.setdefault("LINNET_OPS_LIBRARY", str(binaries.parent / "lib/liblinnet_ops.so"))
    folder = tmp_path_factory.mktemp("corpus")
    make = ["--preset", "tiny", "--vocab", "600", "--dtype", "float32", "--tokenizer"]
    program = [sys.executable, "-m", "linnet_model.random_bundle", *make, "--out", folder / BUNDLE]
    subprocess.run(program, check=True)
    # Ray and Spark have altered integers above 2^53 beside nulls, and lists with a null.
    numbers = [None if number % 3 == 0 else 2**53 + 1 + number for number in range(ROWS)]
    texts = [f"Bado runa {number % 90}. Kelim." for number in range(ROWS)]
    texts[::40] = [None] * NULLS
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "text": pa.array(texts, pa.string()),
            "number": pa.array(numbers, pa.int64()),
            "tags": pa.array([[None, "a"], []] * (ROWS // 2), pa.list_(pa.string())),
        }
    )
    pq.write_table(table, folder / "in.parquet", row_group_size=40)
    return folder


@pytest.fixture(scope="module")
def in_folder(folder, program):
    """Runs a command in the folder."""
    environment = {**os.environ, "LINNET_DECODE": str(program("linnet-decode"))}
    environment["RAY_worker_niceness"] = "0"  # Ray's 15 stalls workers on a busy machine
    environment["PYTHONPATH"] = str(HERE)

    def run(*command: str | Path) -> None:
        words = [str(word) for word in command]
        subprocess.run(words, cwd=folder, env=environment, check=True, timeout=900)

    return run


@pytest.fixture(scope="module")
def shell(in_folder, folder) -> pa.Table:
    command = [sys.executable, "-m", "linnet_corpus.command"]
    in_folder(*command, "run", "in.parquet", "-o", "shell", *FLAGS, "--chunk-rows", "30")
    in_folder(*command, "merge", "shell", "-o", "shell.parquet")
    table = pq.read_table(folder / "shell.parquet").replace_schema_metadata()
    assert table["error"].null_count == ROWS - NULLS
    return table


@pytest.fixture(scope="module")
def on_engine(in_folder, folder):
    """on_engine(name, …) -> the rows of an engine, in which programs run afterwards. Ray and Spark
    take long to start, so that is done once."""
    python = engines.install()
    found: dict[str, pa.Table] = {}

    def run(engine: str) -> pa.Table:
        if engine not in found:
            then = {
                "ray": job_code("ray") + page_code("ray") + RAY_FACTS,
                "spark": job_code("spark") + page_code("pyspark") + SPARK_FACTS,
                "hf": page_code("datasets"),
                "executors": "",
            }
            (folder / f"{engine}.py").write_text(then[engine])
            command = [python, HERE / "engine_runs.py", engine, "in.parquet", f"{engine}.parquet"]
            options = [*FLAGS[2:], "--block", "40", "--then", f"{engine}.py"]
            in_folder(*command, BUNDLE, *options)
            found[engine] = pq.read_table(folder / f"{engine}.parquet").replace_schema_metadata()
        return found[engine]

    return run


@pytest.mark.parametrize("engine", ["ray", "spark", "executors", "hf"])
def test_engine_gives_the_rows_of_the_shell(on_engine, shell, engine):
    assert on_engine(engine) == shell


def test_udf_of_spark_gives_the_rows_of_the_shell(on_engine, shell, folder):
    on_engine("spark")
    assert pq.read_table(folder / "udf.parquet").replace_schema_metadata() == shell


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_job_on_an_engine_has_the_files_of_the_shell(on_engine, shell, folder, engine):
    on_engine(engine)
    assert files_of(folder / f"{engine}-job") == files_of(folder / "shell")


@pytest.mark.parametrize(
    ("engine", "output"), [("ray", "ray-out"), ("spark", "spark-out"), ("hf", "hf-out.parquet")]
)
def test_code_of_the_page_translates_every_row(on_engine, folder, engine, output):
    on_engine(engine)
    table = pq.read_table(folder / output)
    assert table.num_rows == ROWS
    assert table["error"].null_count == ROWS - NULLS


def test_object_store_has_inputs_and_outputs(bundle, decode, tmp_path):
    subprocess.run([engines.install(), HERE / "store_run.py", tmp_path], check=True, timeout=300)
    assert (tmp_path / "all.txt").read_text() == "ONE\nTWO\nTHREE\n"
