"""Tests of what linnet-train refuses to start from or to write to: each says why, in one line."""

from pathlib import Path

import pytest
import torch

from linnet_model.bundle import BundleFacts, TokenizerFiles, write_bundle
from linnet_model.config import BundleConfig, TokenizerConfig, read_recipe
from linnet_model.export.command import main as export_main
from linnet_model.export.random_bundle import made_up_lines, random_bundle
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.tokenizer import load_tokenizer, train_tokenizer
from linnet_model.train.command import main as train_main


def train(recipe: Path, data: Path, out: Path, *more: str) -> int:
    words = ["--recipe", recipe, "--data", data, "--out", out, "--device", "cpu", *more]
    return train_main([str(word) for word in [*words, "--set", "train.updates=1"]])


def test_out_that_is_a_file_or_below_one_is_refused(recipe_file: Path, data_folder: Path, capsys):
    assert train(recipe_file, data_folder, recipe_file) == 1
    said = f"linnet-train: --out is {recipe_file}, which is a file: name a run folder\n"
    assert capsys.readouterr().err == said
    out = recipe_file / "run"
    assert train(recipe_file, data_folder, out) == 1
    said = f"linnet-train: {out} cannot be read or written: Not a directory\n"
    assert capsys.readouterr().err == said


def test_out_that_is_a_bundle_is_refused(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    random_bundle(tmp_path / "bundle", "tiny", 400, seed=1, tokenizer=True)
    before = (tmp_path / "bundle/source.spm").read_bytes()
    assert train(recipe_file, data_folder, tmp_path / "bundle") == 1
    assert f"--out is {tmp_path / 'bundle'}, a bundle, whose vocab" in capsys.readouterr().err
    assert (tmp_path / "bundle/source.spm").read_bytes() == before


def test_damaged_last_checkpoint_is_named_with_the_one_before(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    out = tmp_path / "run"
    assert train(recipe_file, data_folder, out) == 0
    first, last = out / "checkpoint-0000001.pt", out / "checkpoint-0000002.pt"
    for content in (b"", b"text", first.read_bytes()[:-100]):
        last.write_bytes(content)
        capsys.readouterr()
        assert train(recipe_file, data_folder, out, "--resume") == 1
        err = capsys.readouterr().err
        assert err.startswith(f"linnet-train: {last} is no checkpoint or is damaged (")
        assert err.endswith(f"): remove it to go on from {first.name}\n")
    last.unlink()
    assert train(recipe_file, data_folder, out, "--resume") == 0
    first.write_bytes(b"")
    assert train(recipe_file, data_folder, out, "--resume") == 1
    assert "): remove it to train anew" in capsys.readouterr().err
    torch.save({"average": {}}, first)
    assert train(recipe_file, data_folder, out, "--resume") == 1
    assert "is damaged (it holds something else): remove it to" in capsys.readouterr().err


def test_lack_of_memory_is_no_damage_of_the_checkpoint(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys, monkeypatch
):
    out = tmp_path / "run"
    assert train(recipe_file, data_folder, out) == 0

    def load(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: not enough memory\n(more)")

    monkeypatch.setattr(torch, "load", load)
    assert train(recipe_file, data_folder, out, "--resume") == 1
    assert "0000001.pt cannot be loaded: DefaultCPUAllocator: not enough memory\n" in (
        capsys.readouterr().err
    )


def test_file_that_is_no_checkpoint_or_vocabulary_is_refused(
    recipe_file: Path, data_folder: Path, tokenizer_file: Path, tmp_path: Path, capsys
):
    (tmp_path / "source.spm").write_bytes(tokenizer_file.read_bytes())
    out, other = tmp_path / "run", tmp_path / "other.spm"
    other.write_text("text")
    for flags, message in (
        (["--tokenizer-from", other], f"{other} is no SentencePiece model: Internal"),
        (["--init-from", recipe_file], f"{recipe_file} is no checkpoint or is damaged ("),
    ):
        assert train(recipe_file, data_folder, out, *map(str, flags)) == 1
        assert f"linnet-train: {message}" in capsys.readouterr().err


def test_weights_with_ids_of_their_own_are_refused(
    recipe_file: Path, data_folder: Path, tokenizer_file: Path, tmp_path: Path, capsys
):
    """An imported bundle may have our SentencePiece model, and its ids in another order."""
    sizes, bundle = read_recipe(recipe_file).model, tmp_path / "bundle"
    pieces = load_tokenizer(tokenizer_file)
    names = [pieces.id_to_piece(i) for i in range(400)]
    files = TokenizerFiles(tokenizer_file)
    files.source_vocabulary = files.target_vocabulary = names[:4] + names[:3:-1]
    config, facts = BundleConfig(name="imported"), BundleFacts(version="1")
    write_bundle(bundle, EncoderDecoder(sizes), sizes, config, files, "float32", facts)
    assert train(recipe_file, data_folder, tmp_path / "a", "--init-from", str(bundle)) == 1
    said = f"{bundle} has a source_vocabulary_file, target_vocabulary_file: its ids are not those"
    assert said in capsys.readouterr().err
    run = tmp_path / "run"
    assert train(recipe_file, data_folder, run, "--tokenizer-from", str(tokenizer_file)) == 0
    flags = ["--run", str(run), "--out", str(tmp_path / "mean"), "--bundle-version", "1"]
    assert export_main([*flags, "--average-with", str(bundle)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.placeholder_share=0.1", "has 2 placeholders and data.placeholder_share is 0.1"),
        ("model.vocabulary=300", "has 400 pieces and model.vocabulary is 300"),
    ],
)
def test_vocabulary_that_lacks_what_the_recipe_needs_is_refused(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys, setting: str, message: str
):
    """[tokenizer] of the recipe would suffice, but the vocabulary is another one."""
    own, config = tmp_path / "own.spm", TokenizerConfig(kind="bpe", placeholders=2)
    train_tokenizer(made_up_lines(500, seed=1), 400, config, own)
    flags = ["--tokenizer-from", str(own), "--set", setting]
    assert train(recipe_file, data_folder, tmp_path / "run", *flags) == 1
    assert f"linnet-train: source.spm {message}" in capsys.readouterr().err
