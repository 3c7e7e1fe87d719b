"""tests/gpu.sh where it must not go on. What it does on a GPU is seen on a GPU alone."""

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
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path):
    out = tmp_path / "results"
    status, output = gpu_sh("--python", sys.executable, "--out", str(out))
    assert (status, output) == (
        1,
        "error: torch sees no GPU here; ./test.sh is for machines without one\n",
    )
    assert not out.exists()


def test_a_python_without_torch_is_refused(tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    status, output = gpu_sh("--python", str(python))
    assert (status, output) == (
        1,
        f"error: {python} has no torch: name one that has with --python\n",
    )


def test_a_dry_run_takes_the_operators_through_every_part_that_needs_nothing_else(tmp_path):
    library = next(
        (f for f in (ROOT / "build" / p / "lib" for p in ("release", "dev")) if f.exists()), None
    )
    if library is None:
        pytest.skip("no build/release/lib: the operators are not built")
    flags = ["--dry", "--python", sys.executable, "--library", str(library), "--out", str(tmp_path)]
    status, output = gpu_sh(*flags, "--part", "tests", "--part", "operators", "--part", "base")
    assert status == 0, output
    assert "base: left out, it needs --portable" in output
    report = (tmp_path / "dry-run.md").read_text()
    assert "| beam_step | 10 rows x 32000 |" in report
    assert ", 0 failed" in report


def test_parts_of_several_calls_become_one_report(tmp_path):
    facts = '"facts": {"device": "Some GPU"}'
    row = '{"model": "base", "batch": 1}'
    (tmp_path / "a.json").write_text(f'{{{facts}, "base": [{row}]}}')
    answer = '{"bundle": "x", "options": "beam 5", "way": "graphs", "different": 1}'
    (tmp_path / "b.json").write_text(f'{{{facts}, "answers": [{answer}]}}')
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tests/gpu/report.py",
            *("--out", tmp_path, "--merge", tmp_path / "a.json", tmp_path / "b.json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    report = (tmp_path / "some-gpu.md").read_text()
    assert "| base | 1 |" in report
    assert "| x | beam 5 | graphs | 1 |" in report
    assert done.returncode == 1, "an answer that differs fails the run"
    assert "x, beam 5, graphs decode differently" in done.stderr


def test_an_unknown_flag_is_refused():
    assert gpu_sh("--fast") == (1, "error: unknown flag '--fast': see tests/gpu.sh --help\n")
    assert gpu_sh("--out") == (1, "error: --out needs a value: see tests/gpu.sh --help\n")
