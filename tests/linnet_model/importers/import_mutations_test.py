"""Tests that an importer given damaged input writes a usable bundle, or fails with a message and
writes no bundle."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fairseq_oracle as oracle
import marian_models
import mutations
import numpy as np
import tiny_marian as marian
import tiny_multilingual as tiny_models
import tiny_summarisers

from linnet_model.bundle import load_module, read_bundle_weights, read_manifest
from linnet_model.importers.fairseq import import_fairseq
from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.huggingface_marian import import_huggingface_marian
from linnet_model.importers.marian import import_marian
from linnet_model.importers.marian.settings import read_settings
from linnet_model.importers.multilingual import import_multilingual
from linnet_model.importers.summarisers import import_summariser
from linnet_model.network.encoder_decoder import EncoderDecoder, forced_logits

FIRST = int(os.environ.get("LINNET_IMPORT_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("LINNET_IMPORT_MUTATIONS", "50")))
MAX_WEIGHT = 1e6
FAIRSEQ = ["dyn-glu-postnorm-tied", "light-noglu-prenorm-untied", "transformer-postnorm-tied"]


def check_outcome(
    run: Callable[[list[str]], int], command: list[str], program: str, out: Path, capsys
) -> None:
    """Checks for status 0 and a usable bundle, or status 1 and one line with the program's name."""
    status = run([*command, "--no-golden"])
    told = capsys.readouterr().err
    if status == 1:
        assert told.startswith(f"{program}: ")
        assert len(told) > len(program) + 10, "it says what is wrong"
        assert "Traceback" not in told
        assert not out.exists()
        assert not list(out.parent.glob(f".{out.name}.*")), "half a bundle is left"
        return
    assert status == 0
    manifest = read_manifest(out)
    weights, sizes = read_bundle_weights(out)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    load_module(out / manifest["model_file"])
    vocabulary = manifest["vocabulary"]
    tokens = torch.arange(2 * 5).view(2, 5) % min(sizes.vocabulary, sizes.target_vocabulary)
    lengths = torch.tensor([5, 3], dtype=torch.int32)
    with torch.no_grad():
        logits = forced_logits(
            model, tokens, lengths, tokens, vocabulary.get("start_id", vocabulary["eos_id"])
        )
    # Values that no training produces may overflow.
    if max(float(weight.abs().max()) for weight in weights.values()) < MAX_WEIGHT:
        assert logits.isfinite().all()


@pytest.fixture(scope="session")
def shared_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "shared"
    return marian.make_tiny_marian(folder).folder


def damage_huggingface_marian(folder: Path, rng: random.Random) -> None:
    weights = folder / "model.safetensors"
    kind = rng.random()
    if kind < 0.4:
        mutations.mutate_json(folder / rng.choice(["config.json", "generation_config.json"]), rng)
    elif kind < 0.5:
        mutations.mutate_json(folder / "vocab.json", rng)
    elif kind < 0.75:
        tensors = safetensors.torch.load_file(weights)
        mutations.mutate_tensors(tensors, rng)
        if rng.random() < 0.5:
            weights.unlink()
            torch.save(tensors, folder / "pytorch_model.bin")
        else:
            safetensors.torch.save_file(tensors, weights)
    else:
        mutations.mutate_file(rng.choice(sorted(folder.iterdir())), rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_huggingface_marian_folder_is_refused_or_imported(
    shared_marian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
):
    folder = Path(shutil.copytree(shared_marian, tmp_path / "model"))
    damage_huggingface_marian(folder, random.Random(seed))
    languages = ["--source-language", "en", "--target-language", "de"]
    command = ["--model", str(folder), "--out", str(tmp_path / "out"), *languages]
    check_outcome(
        import_huggingface_marian.main,
        command,
        "linnet-model import huggingface",
        tmp_path / "out",
        capsys,
    )


def damage_marian(folder: Path, name: str, rng: random.Random) -> None:
    weights, kind = folder / "model.npz", rng.random()
    if name == "int8" or kind > 0.7:
        mutations.mutate_file(rng.choice(sorted(folder.iterdir())), rng)
        return
    arrays = dict(np.load(weights))
    if kind < 0.4:
        settings = read_settings(name, arrays[marian_models.SETTINGS].tobytes())
        mutations.mutate_table(settings, rng)
        lines = [
            "\n".join([f"{key}:", *(f"  - {json.dumps(item)}" for item in value)])
            if isinstance(value, list) and value
            else f"{key}: {json.dumps(value)}"
            for key, value in settings.items()
        ]
        arrays[marian_models.SETTINGS] = np.frombuffer("\n".join(lines).encode(), np.int8)
    else:
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        mutations.mutate_tensors(tensors, rng)
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
    np.savez(weights, **arrays)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["shared", "split", "int8"])
def test_damaged_marian_folder_is_refused_or_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, seed: int
):
    folder = marian_models.folder(name, tmp_path / "model")
    damage_marian(folder, name, random.Random(seed))
    languages = ["--source-language", "en", "--target-language", "de"]
    command = ["--model", str(folder), "--out", str(tmp_path / "out"), *languages]
    check_outcome(
        import_marian.main, command, "linnet-model import marian", tmp_path / "out", capsys
    )


@pytest.fixture(scope="session")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("multilingual")
    return {
        kind: tiny_models.make_tiny_multilingual(kind, root / kind).folder
        for kind in tiny_models.KINDS
    }


def damage_multilingual(folder: Path, rng: random.Random) -> None:
    weights = folder / "model.safetensors"
    kind = rng.random()
    if kind < 0.7:
        mutations.mutate_json(rng.choice(sorted(folder.glob("*.json"))), rng)
    elif kind < 0.8:
        tensors = safetensors.torch.load_file(weights)
        mutations.mutate_tensors(tensors, rng)
        safetensors.torch.save_file(tensors, weights)
    else:
        mutations.mutate_file(rng.choice(sorted(folder.iterdir())), rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_multilingual_folder_is_refused_or_imported(
    multilingual: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
):
    kind = tiny_models.KINDS[seed % len(tiny_models.KINDS)]
    folder = Path(shutil.copytree(multilingual[kind], tmp_path / "model"))
    damage_multilingual(folder, random.Random(seed))
    command = ["--model", str(folder), "--out", str(tmp_path / "out"), "--license", "none"]
    for code, tag in tiny_models.NAMES[kind].items():
        command += ["--language", f"{code}={tag}"]
    program = "linnet-model import multilingual"
    check_outcome(import_multilingual.main, command, program, tmp_path / "out", capsys)


@pytest.fixture(scope="session")
def summarisers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("summarisers")
    return {
        kind: tiny_summarisers.make_tiny_summariser(kind, root / kind).folder
        for kind in tiny_summarisers.KINDS
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_summariser_folder_is_refused_or_imported(
    summarisers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
):
    kind = tiny_summarisers.KINDS[seed % len(tiny_summarisers.KINDS)]
    folder = Path(shutil.copytree(summarisers[kind], tmp_path / "model"))
    damage_multilingual(folder, random.Random(seed))
    command = ["--model", str(folder), "--out", str(tmp_path / "out"), "--language", "en"]
    program = "linnet-model import summariser"
    check_outcome(import_summariser.main, command, program, tmp_path / "out", capsys)


def damage_fairseq(name: str, folder: Path, rng: random.Random) -> list[str]:
    """Copies a checkpoint and its dictionaries, damages one of them, and returns the arguments."""
    files = {"--checkpoint": folder / "checkpoint.pt"}
    read = read_checkpoint(oracle.checkpoint(name))
    for flag, file in zip(
        ("--source-dict", "--target-dict"), oracle.dictionaries(name), strict=True
    ):
        files[flag] = Path(shutil.copy(file, folder / f"{flag[2:]}.txt"))
    options = argparse.Namespace(**read.options)
    kind = rng.random()
    if kind < 0.4:
        mutations.mutate_options(options, rng)
    elif kind < 0.7:
        mutations.mutate_tensors(read.weights, rng)
    torch.save({"args": options, "model": read.weights}, files["--checkpoint"])
    if kind >= 0.7:
        mutations.mutate_file(rng.choice(list(files.values())), rng)
    return [word for flag, file in files.items() for word in (flag, str(file))]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_fairseq_checkpoint_is_refused_or_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
):
    rng = random.Random(seed)
    command = damage_fairseq(FAIRSEQ[seed % len(FAIRSEQ)], tmp_path, rng)
    languages = ["--source-language", "de", "--target-language", "en"]
    command += ["--out", str(tmp_path / "out"), *languages]
    check_outcome(
        import_fairseq.main, command, "linnet-model import fairseq", tmp_path / "out", capsys
    )
