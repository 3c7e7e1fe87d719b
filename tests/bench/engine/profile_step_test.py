"""Tests how samples are sorted; the measurement itself needs perf."""

from __future__ import annotations

import profile_step
import pytest

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
