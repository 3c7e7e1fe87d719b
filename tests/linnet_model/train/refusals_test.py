"""Tests of what linnet-train refuses to start from or to write to: each says why, in one line."""

from pathlib import Path

from linnet_model.export.random_bundle import random_bundle
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
