"""tests/gpu.sh without a GPU: its errors and its dry run. The rest needs a GPU."""

import subprocess
import sys

import pytest
import torch
from sandbox import ROOT


def gpu_sh(*flags: str) -> tuple[int, str]:
    done = subprocess.run(
        [ROOT / "tests/gpu.sh", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_fails_and_writes_nothing(tmp_path):
    out = tmp_path / "results"
    status, output = gpu_sh("--python", sys.executable, "--out", str(out))
    assert (status, output) == (
        1,
        "error: torch sees no GPU here; ./test.sh is for machines without one\n",
    )
    assert not out.exists()


def test_rejects_python_without_torch(tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    status, output = gpu_sh("--python", str(python))
    assert (status, output) == (
        1,
        f"error: {python} has no torch: name one that has with --python\n",
    )


def test_dry_run_covers_every_self_contained_part(tmp_path):
    library = next(
        (f for f in (ROOT / "build" / p / "lib" for p in ("release", "dev")) if f.exists()), None
    )
    if library is None:
        pytest.skip("no build/release/lib: the operators are not built")
    flags = ["--dry", "--python", sys.executable, "--library", str(library), "--out", str(tmp_path)]
    parts = [
        f"--part={part}"
        for part in ("kernels", "operators", "profile", "encoder", "search", "base")
    ]
    status, output = gpu_sh(*flags, *parts)
    assert status == 0, output
    assert "base: left out, it needs --portable" in output
    report = (tmp_path / "dry-run/gpu.md").read_text()
    assert "| beam_step | 10 rows x 32000 |" in report
    assert "| beam_step | 10 rows x 6000, en-de |" in report
    assert "| source_attention | 5 rows x 64, 64 tokens |" in report
    assert ", 0 failures, 0 errors" in report
    assert "| tiny | 5 | all kernels |" in report
    assert "| tiny | 2 | in blocks |" in report
    assert "not complete" not in report
    # Another call continues from the results: nothing is left to do.
    again, flags[-1] = tmp_path / "again", str(tmp_path / "again")
    status, output = gpu_sh(*flags, *parts, "--continue", str(tmp_path))
    assert status == 0, output
    assert "== operators" not in output
    assert "| beam_step | 10 rows x 32000 |" in (again / "dry-run/gpu.md").read_text()


def test_rows_of_several_calls_become_one_report(tmp_path):
    machine = '{"part": "facts", "case": "machine", "rows": [{"device": "Some GPU"}]}\n'
    row = '{"engine": "Linnet", "batch": 1, "beam": 5, "tok/s": 7, "search": "device, 9 graphs",'
    row += '"roof tok/s": 9, "of the roof": "78%", "copy TB/s": 4, "gemm TFLOP/s": 700}'
    peer = '{"engine": "Marian", "batch": 1, "beam": 5, "tok/s": 2}'
    (tmp_path / "a.jsonl").write_text(
        machine + f'{{"part": "base", "case": "batch 1, beam 5", "rows": [{row}]}}\n'
    )
    (tmp_path / "b.jsonl").write_text(
        machine + f'{{"part": "base", "case": "Marian", "rows": [{peer}]}}\n'
    )
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    done = subprocess.run(
        [sys.executable, ROOT / "tests/gpu/report.py", *files, "--out", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| 1 | 5 | 7 | 9 | 78% | 2 |" in (tmp_path / "some-gpu/gpu.md").read_text()


def test_rejects_unknown_flag():
    assert gpu_sh("--fast") == (1, "error: unknown flag '--fast': see tests/gpu.sh --help\n")
    assert gpu_sh("--out") == (1, "error: --out needs a value: see tests/gpu.sh --help\n")
