"""Processes of linnet-decode: weights that they share, and the environment that they need."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from decode_lines import SOURCES, with_options

LINES = "".join(json.dumps(it) + "\n" for it in with_options(SOURCES, n_best=2))


@contextlib.contextmanager
def answering(binary: Path, bundle: Path, compute: str) -> Iterator[tuple[int, list[str]]]:
    """The id and the answers of a process that still waits for input."""
    command = [binary, "--bundle", bundle, "--compute", compute]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LINES)
        process.stdin.flush()
        yield process.pid, [process.stdout.readline() for _ in SOURCES]
        process.stdin.close()


def in_mapping(pid: int, file: Path) -> dict[str, int]:
    """KiB of a process in a mapped file, by kind."""
    found: dict[str, int] = {}
    there = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            there = line.endswith(str(file))
        elif there and line.endswith(" kB"):
            kind, kib = line.removesuffix(" kB").split(":")
            found[kind] = found.get(kind, 0) + int(kib)
    return found


@pytest.mark.parametrize("compute", ["int8", "float32"])
def test_processes_share_packed_weights(binary, bundle, tmp_path, compute):
    copy = shutil.copytree(bundle, tmp_path / "bundle", ignore=shutil.ignore_patterns("*.packed"))
    file = copy / f"model.{compute}.packed"
    file.mkdir()  # so that it cannot be made
    with answering(binary, copy, compute) as (pid, private):
        assert not in_mapping(pid, file)
    file.rmdir()
    with (
        answering(binary, copy, compute) as (one, first),
        answering(binary, copy, compute) as (two, second),
    ):
        assert first == second == private
        for pid in (one, two):
            pages = in_mapping(pid, file)
            shared = pages["Shared_Clean"] + pages["Shared_Dirty"]  # dirty until it is written
            assert shared == pages["Rss"] >= file.stat().st_size // 1024
            assert pages["Private_Clean"] == pages["Private_Dirty"] == 0
    assert file.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "passive 10000"), ({"OMP_WAIT_POLICY": "active"}, "active None")],
)
def test_waiting_threads_sleep_unless_told_otherwise(binary, bundle, monkeypatch, given, expected):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with answering(binary, bundle, "float32") as (pid, _):
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        assert Path(f"/proc/{pid}/comm").read_text() == "linnet-decode\n"
    found = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    assert f"{found.get('OMP_WAIT_POLICY')} {found.get('GOMP_SPINCOUNT')}" == expected
    assert found["PATH"] == os.environ["PATH"]
