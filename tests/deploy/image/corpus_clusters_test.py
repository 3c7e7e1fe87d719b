"""The clusters of docker-compose.ray.yml and docker-compose.spark.yml: a corpus, and a lost worker.

In containers, so slow, and skipped where there is no engine: see container_test.py.
LINNET_TEST_RAY_IMAGE and LINNET_TEST_SPARK_IMAGE name images that have been built already.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import ROOT, Container, Project, skip, wait_until

pytestmark = pytest.mark.slow
MODEL = "/opt/linnet/models/en-de"
NODES = {"ray": ("ray-head", "ray-worker"), "spark": ("spark-master", "spark-worker")}
MAKE = """
import pyarrow as pa, pyarrow.parquet as pq
texts = [f"Train {number} leaves at noon." for number in range(1500)]
pq.write_table(pa.table({"id": range(1500), "text": texts}), "in.parquet")
"""
ROWS = """
import sys
import pyarrow.parquet as pq
print(*pq.read_table(sys.argv[1]).sort_by("id").to_pylist(), sep="\\n")
"""


def example(module: str) -> str:
    """The example of the page, with a model of the image."""
    page = (ROOT / "docs/CORPUS.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (code,) = [it for it in blocks if f"from linnet_corpus.{module} import" in it]
    assert "model/bundles/en-de" in code
    return code.replace("model/bundles/en-de", MODEL)


@pytest.fixture(params=NODES)
def cluster(request, engine, image, tmp_path) -> Iterator[tuple[str, Project, Path]]:
    """The name of an engine, its two workers and their master, and the folder of the data."""
    if not Project.command(engine):
        skip(f"{engine.command} has nothing that runs compose files")
    name, variable = request.param, f"LINNET_{request.param.upper()}_IMAGE"
    built = os.environ.get(variable.replace("LINNET_", "LINNET_TEST_"))
    if not built:
        built = f"linnet-{name}:test"
        flags = (f"--build-arg=ENGINE={name}", f"--build-arg=LINNET_IMAGE={image}")
        engine.build_file("corpus.Dockerfile", built, *flags)
    tmp_path.chmod(0o777)
    project = Project(engine, image, f"docker-compose.{name}.yml")
    project.name += name
    project.environment |= {variable: built, "LINNET_CORPUS": str(tmp_path)}
    project("up", "--detach", "--no-build", *NODES[name])
    yield name, project, tmp_path
    project.down(check=False)


def decodes(node: Container) -> bool:
    names = node.exec("sh", "-c", "cat /proc/[0-9]*/comm", check=False).stdout
    return "linnet-decode" in names


def test_corpus_is_translated_although_a_worker_is_lost(cluster):
    name, project, folder = cluster
    head, workers = project.service(NODES[name][0]), project.all_of(NODES[name][1])
    assert len(workers) == 2
    head.exec("python", "-c", MAKE)
    job = ["exec", head.name, "python", "-c", example(name)]
    with (folder / "job.log").open("w") as log:
        running = subprocess.Popen([project.engine.command, *job], stdout=log, stderr=log)
    busy = wait_until(lambda: [it for it in workers if decodes(it)], "a worker decodes")
    project.engine("kill", busy[0].name)
    assert running.wait(300) == 0, (folder / "job.log").read_text()
    run = "linnet-corpus run in.parquet -o shell --bundle {} && linnet-corpus merge shell -o {}"
    head.exec("sh", "-c", run.format(MODEL, "shell.parquet"))
    rows, expected = (
        head.exec("python", "-c", ROWS, file).stdout for file in (f"{name}-out", "shell.parquet")
    )
    assert rows == expected
    assert rows.count("\n") == 1500
