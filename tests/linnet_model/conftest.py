"""Fixtures: the operator library, a small tokenizer, data folder and recipe."""

import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "model"))

from linnet_model.config import ConfigError, TokenizerConfig  # noqa: E402
from linnet_model.export.random_bundle import made_up_lines  # noqa: E402
from linnet_model.network import ops  # noqa: E402
from linnet_model.tokenizer import load_tokenizer, train_tokenizer  # noqa: E402


def pytest_configure() -> None:
    torch.set_num_threads(1)
    settings.register_profile("linnet", database=None, deadline=None)  # no example database
    settings.load_profile("linnet")
    try:
        ops.load()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model of 400 pieces, trained on made-up sentences."""
    path = tmp_path_factory.mktemp("tokenizer") / "source.spm"
    train_tokenizer(made_up_lines(500, seed=1), 400, TokenizerConfig(), path)
    return path


@pytest.fixture(scope="session")
def tokenizer(tokenizer_file: Path):
    return load_tokenizer(tokenizer_file)


@pytest.fixture
def fake_decoder(tmp_path: Path) -> Callable[[str], Path]:
    """fake_decoder(body) writes a linnet-decode in Python, which has imported json and sys."""

    def write(body: str) -> Path:
        path = tmp_path / "linnet-decode"
        path.write_text(f"#!/usr/bin/env python3\nimport json, sys\n{body}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A data folder "toy" with two domains, whose targets equal their sources."""
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    lines = made_up_lines(300, seed=2)
    rows = [f"{line}\t{line}\t{'even' if i % 2 else 'odd'}" for i, line in enumerate(lines)]
    for name, part in (("train", rows[:240]), ("valid", rows[240:270])):
        (folder / f"{name}.tsv.xz").write_bytes(lzma.compress(("\n".join(part) + "\n").encode()))
    (folder / "test.even.tsv").write_text("\n".join(rows[271::2]) + "\n", encoding="utf-8")
    return folder.parent


RECIPE = """
[model]
vocabulary = 400
width = 16
ffn_width = 24
heads = 2
encoder_kernels = [3, 5]
decoder_kernels = [3]
[data]
folder = "toy"
max_source_tokens = 80
max_target_tokens = 80
rename_share = 0.1
copy_share = 0.05
[data.domains]
even = 1.0
odd = 0.5
[data.terms]
even = { what = "made up", author = "nobody", licence = "CC0-1.0", attribution = "none" }
odd = { what = "made up", author = "nobody", licence = "CC0-1.0", attribution = "none" }
[train]
updates = 6
batch_target_tokens = 200
batch_source_tokens = 200
warmup_updates = 2
decay_updates = 2
threads = 1
valid_updates = 100
valid_rows = 4
log_updates = 1
[bundle]
name = "toy"
examples = ["one two", "three | four"]
"""


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path
