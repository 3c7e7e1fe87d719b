"""Tests the measurement of a process without a model. No size is asserted."""

from __future__ import annotations

import json
import sys

import memory_floor
import pytest


def test_each_process_holds_more_than_the_one_before(tmp_path, program, binaries, monkeypatch):
    monkeypatch.setenv("LINNET_OPS_LIBRARY", str(binaries.parent / "lib/liblinnet_ops.so"))
    folders = ["--programs", program("linnet-decode").parent, "--bundles", tmp_path / "bundles"]
    flags = [*folders, "--out", tmp_path / "results", "--rounds", "1"]
    assert memory_floor.main([str(flag) for flag in flags]) == 0
    (path,) = (tmp_path / "results").glob("*/memory-floor.json")
    processes = json.loads(path.read_text())["processes"]
    for key in ("resident_bytes", "private_bytes"):
        bare, torch, engine = (one[key] for one in processes)
        assert 0 < bare < torch < engine
    for one in processes:
        assert 0 < one["heap_bytes"] <= one["private_bytes"] < one["resident_bytes"]


def test_program_without_the_library_is_refused():
    with pytest.raises(SystemExit, match="does not link libtorch_cpu"):
        memory_floor.library(memory_floor.Path("/bin/cat"), memory_floor.TORCH)


def test_process_that_does_not_answer_is_an_error():
    with pytest.raises(SystemExit, match="ended with 3"):
        memory_floor.held([sys.executable, "-c", "raise SystemExit(3)"], "x", {})
