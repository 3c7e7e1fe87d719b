"""Tests of what linnet-train refuses to start from or to write to: each says why, in one line."""

from pathlib import Path

from linnet_model.train.command import main as train_main


def train(recipe: Path, data: Path, out: Path, *more: str) -> int:
    words = ["--recipe", recipe, "--data", data, "--out", out, "--device", "cpu", *more]
    return train_main([str(word) for word in [*words, "--set", "train.updates=1"]])


def test_out_below_a_file_is_refused(recipe_file: Path, data_folder: Path, capsys):
    out = recipe_file / "run"
    assert train(recipe_file, data_folder, out) == 1
    said = f"linnet-train: {out} cannot be read or written: Not a directory\n"
    assert capsys.readouterr().err == said
