"""linnet-decode on tiny random bundles, and the eager model beside it.

Binaries are looked for in LINNET_BIN_DIR, else in build/release/bin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("LINNET_BIN_DIR", ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "model"))
os.environ.setdefault("LINNET_OPS_LIBRARY", str(BINARIES.parent / "lib" / "liblinnet_ops.so"))

VOCABULARY, SEED = 600, 3


@dataclass
class Run:
    status: int
    answers: list[dict[str, Any]]
    stderr: str


@pytest.fixture(scope="session")
def binary() -> Path:
    path = BINARIES / "linnet-decode"
    assert path.exists(), f"{path} is not built: run ./start.sh --build, or set LINNET_BIN_DIR"
    return path


@pytest.fixture(scope="session")
def bundle(tmp_path_factory) -> Path:
    """The preset tiny with random float32 weights and a tokenizer."""
    from linnet_model.random_bundle import random_bundle

    out = tmp_path_factory.mktemp("bundles") / "tiny"
    random_bundle(out, "tiny", VOCABULARY, SEED, weight_type="float32", tokenizer=True)
    return out


@pytest.fixture(scope="session")
def bundle_without_tokenizer(tmp_path_factory) -> Path:
    from linnet_model.random_bundle import random_bundle

    out = tmp_path_factory.mktemp("bundles") / "ids"
    random_bundle(out, "tiny", VOCABULARY, SEED, weight_type="float32")
    return out


@pytest.fixture(scope="session")
def run(binary):
    """run(bundle, "--beam", "2", lines=[{…}, "raw line"]) -> Run."""

    def run_decode(bundle: Path | None, *flags: str, lines=(), threads: int = 2) -> Run:
        text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        command = [str(binary), *flags]
        if bundle is not None:
            command += ["--bundle", str(bundle)]
        if "--threads" not in flags:
            command += ["--threads", str(threads)]
        if "--compute" not in flags:
            command += ["--compute", "float32"]
        done = subprocess.run(
            command, input=text.encode("utf-8", "surrogateescape"), capture_output=True, timeout=300
        )
        answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
        return Run(done.returncode, answers, done.stderr.decode())

    return run_decode


@pytest.fixture(scope="session")
def decode(run, bundle):
    """decode([lines], flags…) -> the n-best list of each line; all lines must be good."""

    def decode_lines(lines, *flags: str, **keywords):
        done = run(bundle, *flags, lines=lines, **keywords)
        assert done.status == 0, (done.stderr, done.answers)
        assert len(done.answers) == len(lines)
        return [answer["hypotheses"] for answer in done.answers]

    return decode_lines
