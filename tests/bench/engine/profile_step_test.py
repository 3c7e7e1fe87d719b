"""Tests how samples are sorted; the measurement itself needs perf."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import decoding
import profile_step
import pytest
from engines import Sizes

LINES = [
    "  7  10.000:  55d0 main (/usr/bin/linnet-decode)",
    "  7  19.500:  7f00 linnet::ops::(anonymous namespace)::RunVnni (/lib/liblinnet_ops.so)",
    "  8  19.600:  7f01 linnet::ops::(anonymous namespace)::RunVnni (/lib/liblinnet_ops.so)",
    "  8  19.700:  7f02 [unknown] (/usr/lib/libgomp.so.1)",
    "  7  20.000:  7f03 c10::IValue::IValue (/lib/libtorch_cpu.so)",
]


def test_samples_before_the_measured_runs_do_not_count():
    found = profile_step.samples_of(LINES, seconds=1.0)
    assert found["gemms"] == 2
    assert found["waiting for the other threads"] == 1
    assert found["TorchScript and its operators"] == 1
    assert found[profile_step.REST] == 0
    assert profile_step.samples_of(LINES, seconds=100.0)[profile_step.REST] == 1


def test_run_without_samples_is_an_error():
    with pytest.raises(SystemExit, match="no samples"):
        profile_step.samples_of([], seconds=1.0)


def profile(**more) -> dict:
    return {
        "machine": {"cpu": "X", "cores": 2, "features": ["avx2"], "version": "1"},
        "compute": "int8",
        "threads": 2,
        "frequency": 100,
        "samples": {"gemms": 300, "the rest": 100},
        "multiply_adds": 6_000_000_000,
        "peak": None,
        **more,
    }


def test_processor_without_the_instruction_has_no_peak(monkeypatch):
    found = {"error_occurred": True, "error_message": "the processor has no AVX512-VNNI"}
    done = SimpleNamespace(stdout=json.dumps({"benchmarks": [found]}))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert profile_step.peak(profile_step.Path("bench_ops"), "int8") is None
    found["flop"] = 8.0
    done.stdout = json.dumps({"benchmarks": [found]})
    assert profile_step.peak(profile_step.Path("bench_ops"), "int8") == 4.0
    speed = "The gemms make 2 billion multiply-adds in a second of a core"
    assert profile_step.gemm_speed(profile()) == f"{speed}."
    assert profile_step.gemm_speed(profile(peak=4e9)).startswith(f"{speed}; the int8 instruction")


def test_batch_is_named_in_report_and_file():
    text = profile_step.markdown(profile(batch=1))
    assert text.startswith("# Where the time of a batch of 1 goes\n")
    assert "int8, 1 sources of 30 tokens, beam 5, 2 threads" in text
    assert "batch of 32" in profile_step.markdown(profile())
    assert profile_step.name_of("int8", 1) == "profile-step-batch-1"
    assert profile_step.name_of("int8", 32) == "profile-step"
    assert profile_step.name_of("float32", 32) == "profile-step-float32"


def test_multiply_adds_grow_with_the_batch():
    sizes = Sizes("base", source=30, target=30, **decoding.SIZES["base"])
    one = profile_step.multiply_adds(sizes, 1)
    assert profile_step.multiply_adds(sizes, 32) == 32 * one > 0


def test_batch_without_sources_is_refused(capsys):
    with pytest.raises(SystemExit):
        profile_step.main(["--batch", "0"])
    assert "--batch 0 must be at least 1" in capsys.readouterr().err
