"""Runs the tests of the kernels on the GPU, alone and under compute-sanitizer, then those of the
device decoder and of the operators."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decode import decoder_of
from session import ROOT, Case, Setup

SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOUND = 9  # exit status of compute-sanitizer if it found errors


def row(name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    # The tests name their sources by the path of the checkout that they were built in.
    output = re.sub(r"/\S+/(?=tests/)", "", done.stdout + done.stderr)
    said = re.findall(r"(?:PASSED|FAILED).*\d tests?|ERROR SUMMARY.*|RACECHECK SUMMARY.*", output)
    if done.returncode:
        print(output[-3000:], flush=True)
        said.append(output[-300:].strip())
    return {
        "tests": name,
        "exit status": done.returncode,
        "said": " ".join("; ".join(said[-3:]).split()),
    }


def run_binary(
    setup: Setup, name: str, prefix: list[str], flags: list[str]
) -> list[dict[str, Any]]:
    assert setup.portable is not None
    environment = decoder_of(setup).environment() | {"LINNET_TEST_DEVICE": setup.device}
    command = [*prefix, str(setup.portable / "bin" / name), *flags]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, text=True, capture_output=True, check=False
    )
    return [row(" ".join([*prefix[:3], name, *flags]), done)]


def run_operator_tests(setup: Setup) -> list[dict[str, Any]]:
    """Runs the tests of tests/ops that need a GPU; without a GPU they fail. A dry run runs one
    file."""
    report = Path(f"/tmp/linnet-pytest-{os.getpid()}.xml")
    what = ["tests/ops/op_beam_search_test.py"] if setup.dry else ["tests/ops"]
    workers = ["-n", "4"] if importlib.util.find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", *what, "-q", *workers, f"--junitxml={report}"]
    environment = os.environ | {"LINNET_OPS_LIBRARY": str(setup.library.resolve())}
    if not setup.dry:
        environment["LINNET_GPU_TESTS"] = "only"
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    report.unlink()
    counts = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    if done.returncode:
        print(done.stdout[-6000:], flush=True)
    said = ", ".join(f"{count} {key}" for key, count in counts.items())
    return [{"tests": "tests/ops", "exit status": done.returncode, "said": said}]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    # A dry run lists the tests of the kernels, to check that the program starts.
    flags = ["--gtest_list_tests"] if setup.dry else ["--gtest_brief=1"]
    yield "operators", lambda: run_operator_tests(setup)
    if setup.portable is not None and (setup.portable / "bin/cuda_kernels_gpu_test").exists():
        yield "kernels", lambda: run_binary(setup, "cuda_kernels_gpu_test", [], flags)
        yield (
            "device decoder",
            lambda: run_binary(setup, "device_search_test", [], ["--gtest_brief=1"]),
        )
        for tool in () if setup.dry else SANITIZERS:
            prefix = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND)]
            yield (
                tool,
                lambda prefix=prefix: run_binary(setup, "cuda_kernels_gpu_test", prefix, flags),
            )
