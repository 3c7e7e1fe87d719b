"""linnet-decode on tiny random bundles, and the eager model to compare with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tiny_sizes import SEED, VOCABULARY

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "model"))

SECONDS = 300  # timeout of a run or of the answers to some lines, on a busy machine


@dataclass
class Run:
    status: int
    answers: list[dict[str, Any]]
    stderr: str


def as_input(lines) -> bytes:
    text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    return text.encode("utf-8", "surrogateescape")


@pytest.fixture(scope="session")
def binary(program) -> Path:
    return program("linnet-decode")


@pytest.fixture(scope="session", autouse=True)
def operators(binaries) -> None:
    """Python and the programs use the same operator library."""
    os.environ.setdefault("LINNET_OPS_LIBRARY", str(binaries.parent / "lib/liblinnet_ops.so"))


@pytest.fixture(scope="session")
def bundle(tmp_path_factory, operators) -> Path:
    """The preset tiny with random float32 weights and a tokenizer."""
    from linnet_model.export.random_bundle import random_bundle

    out = tmp_path_factory.mktemp("bundles") / "tiny"
    random_bundle(out, "tiny", VOCABULARY, SEED, weight_type="float32", tokenizer=True)
    return out


@pytest.fixture(scope="session")
def bundle_without_tokenizer(tmp_path_factory, operators) -> Path:
    from linnet_model.export.random_bundle import random_bundle

    out = tmp_path_factory.mktemp("bundles") / "ids"
    random_bundle(out, "tiny", VOCABULARY, SEED, weight_type="float32")
    return out


@pytest.fixture(scope="session")
def command(binary):
    """The command line; float32 and two threads by default."""

    def make(bundle: Path | None, *flags: str, threads: int = 2) -> list[str]:
        words = [str(binary), *flags]
        if bundle is not None:
            words += ["--bundle", str(bundle)]
        if "--threads" not in flags:
            words += ["--threads", str(threads)]
        if "--compute" not in flags:
            words += ["--compute", "float32"]
        return words

    return make


@pytest.fixture(scope="session")
def run(command):
    """run(bundle, "--beam", "2", lines=[{…}, "raw line"]) -> Run, in a process of its own."""

    def run_decode(bundle: Path | None, *flags: str, lines=(), threads: int = 2) -> Run:
        done = subprocess.run(
            command(bundle, *flags, threads=threads),
            input=as_input(lines),
            capture_output=True,
            timeout=SECONDS,
        )
        answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
        return Run(done.returncode, answers, done.stderr.decode())

    return run_decode


class DecodeProcess:
    """A running linnet-decode that waits for lines. Loading LibTorch takes most of a short run, so
    tests with the same flags share a process. Batch invariance, which this relies on, has tests of
    its own."""

    def __init__(self, words: list[str]):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def ask(self, lines) -> list[dict[str, Any]]:
        writer = threading.Thread(target=self._write, args=(as_input(lines),))
        guard = threading.Timer(SECONDS, self._process.kill)
        guard.start()
        writer.start()  # concurrently with the reads: both pipes are short
        answers = [self._process.stdout.readline() for _ in lines]
        writer.join()
        guard.cancel()
        assert all(answers), f"no answer from {self._process.args}: {self.errors()}"
        return [json.loads(answer) for answer in answers]

    def _write(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answers report it

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()

    def end_input(self) -> None:
        self._process.stdin.close()

    def wait(self) -> tuple[int, bytes]:
        """Exit status and unexpected output."""
        rest = self._process.stdout.read()
        self._process.stdout.close()
        return self._process.wait(SECONDS), rest


@pytest.fixture(scope="session")
def start_decode(command):
    """start_decode(bundle, flags…) -> a DecodeProcess, which ends with the session."""
    processes: list[DecodeProcess] = []

    def start(bundle: Path, *flags: str, threads: int = 1) -> DecodeProcess:
        processes.append(DecodeProcess(command(bundle, *flags, threads=threads)))
        return processes[-1]

    yield start
    for process in processes:
        process.end_input()
        process.wait()


@pytest.fixture(scope="session")
def decode(command, bundle):
    """decode([lines], flags…) -> the n-best list of each line; all lines must be valid."""
    processes: dict[tuple, DecodeProcess] = {}

    def decode_lines(lines, *flags: str, threads: int = 2):
        words = command(bundle, *flags, threads=threads)
        if tuple(words) not in processes:
            processes[tuple(words)] = DecodeProcess(words)
        answers = processes[tuple(words)].ask(lines)
        assert all("hypotheses" in answer for answer in answers), answers
        return [answer["hypotheses"] for answer in answers]

    yield decode_lines
    for process in processes.values():
        process.end_input()
    for process in processes.values():
        assert process.wait() == (0, b""), process.errors()
