"""What docs/CORPUS.md shows: its commands, its columns, the Slurm script."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from linnet_corpus import SCHEMA
from shouting import write_bundle

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/CORPUS.md").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with what the page names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mono.txt").write_text("one\ntwo words\n\ntoo long\n")
    (tmp_path / "model/bundles").mkdir(parents=True)
    for name in ("en-de", "de-en"):
        write_bundle(tmp_path / "model/bundles" / name)
    return tmp_path


def test_commands_and_the_filter_work_one_after_the_other(run, folder):
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert len(commands) == 8
    for program, *arguments in commands:
        assert program == "linnet-corpus"
        assert run(*arguments)[0] == 0, arguments
    assert pq.read_table("mono.de.parquet")["translation"].to_pylist() == [
        "ONE",
        "TWO WORDS",
        "",
        None,
    ]
    (code,) = re.findall(r"^```python\n(import pyarrow.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(code, {})
    parallel = pq.read_table("parallel.parquet")
    assert parallel.column_names == ["c2", "c1", "score"]
    assert parallel["c1"].to_pylist() == ["one", "two words"]


def test_each_column_has_its_type():
    rows = re.findall(r"^\| `(\w+)` \| (\w*string\w*|list of strings|\w+32) \|", PAGE, re.MULTILINE)
    types = {"list of strings": "list<item: string>", "float32": "float"}
    assert [(name, types.get(kind, kind)) for name, kind in rows] == [
        (field.name, str(field.type)) for field in SCHEMA
    ]


def test_slurm_tasks_make_all_chunks(run, decode, folder):
    shutil.copy(ROOT / "deploy/slurm/corpus.sh", folder)
    (folder / "linnet-corpus").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m linnet_corpus.command "$@"\n'
    )
    (folder / "linnet-corpus").chmod(0o755)
    for task in (1, 2):
        slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_MIN": "1"}
        slurm |= {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_CPUS_PER_TASK": "2"}
        flags = ["mono.txt", "-o", "out", "--bundle", "model/bundles/en-de", "--chunk-rows", "1"]
        subprocess.run(
            ["bash", "corpus.sh", *flags],
            check=True,
            env={**os.environ, **slurm, "PATH": f"{folder}:{os.environ['PATH']}"},
        )
    assert run("merge", "out", "-o", "all.txt")[0] == 0
    assert Path("all.txt").read_text() == "ONE\nTWO WORDS\n\n\n"
