"""linnet-corpus with a linnet-decode that shouts."""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from linnet_corpus import embedded
from linnet_corpus.command import main
from shouting import write_bundle, write_program


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "bundle")


@pytest.fixture
def decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, which LINNET_DECODE names."""
    program = write_program(tmp_path / "linnet-decode")
    monkeypatch.setenv("LINNET_DECODE", str(program))
    return program


@pytest.fixture
def run(
    decode: Path, run_main: Callable[..., tuple[int, str, str]]
) -> Callable[..., tuple[int, str, str]]:
    """Runs linnet-corpus: (exit status, standard output, standard error)."""
    return partial(run_main, main)


@pytest.fixture
def small_files():
    """small_files(bytes): files may not become larger, which fails a write as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def other_processor(monkeypatch: pytest.MonkeyPatch):
    """other_processor(): this machine has other instruction sets from now on."""
    return lambda: monkeypatch.setattr(embedded, "processor", lambda: "avx2")
