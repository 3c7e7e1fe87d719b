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


def test_an_unknown_flag_is_refused():
    assert gpu_sh("--fast") == (1, "error: unknown flag '--fast': see tests/gpu.sh --help\n")
    assert gpu_sh("--out") == (1, "error: --out needs a value: see tests/gpu.sh --help\n")
