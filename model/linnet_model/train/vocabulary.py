"""The vocabulary of a training: its own, or that of the weights it starts from."""

from __future__ import annotations

import random
from pathlib import Path

import sentencepiece

from linnet_model.config import ConfigError, Recipe, require
from linnet_model.data_config import PLACEHOLDERS_USED
from linnet_model.new_file import new_file
from linnet_model.text_files import Reading, read_split
from linnet_model.tokenizer import known_placeholders, load_tokenizer, train_tokenizer
from linnet_model.train.checkpoint import checkpoints
from linnet_model.train.datasets import labelled
from linnet_model.train.objectives import sides


def prepare_tokenizer(recipe: Recipe, data: Path, out: Path, init: Path | None) -> Path:
    """Returns the run's SentencePiece model: of a run with checkpoints the existing one, else a
    copy of the one beside `init`, or a newly trained one. One that an earlier start has left is
    refused if it is not that of `init`, and trained again without `init`: recipe or data may have
    changed since."""
    path, beside = out / "source.spm", None if init is None else vocabulary_beside(init)
    if path.exists() and checkpoints(out):
        if init is not None:
            same_vocabulary(
                path,
                init,
                f"{out} is resumed with its own vocabulary, and that of {init} is another: leave "
                "out --init-from and --tokenizer-from, or choose another --out",
            )
        return path
    if beside is not None and not beside.exists():
        raise ConfigError(f"no source.spm beside {init}, weights and vocabulary belong together")
    if beside is not None and path.exists():
        same_vocabulary(
            path,
            beside,
            f"{path} is of an earlier start and differs from {beside}: remove {path}, or choose "
            "another --out",
        )
        return path
    if beside is not None:
        load_tokenizer(beside, recipe.data.capitals_mark)  # one that is no model is not copied
    with new_file(path) as partial:
        if beside is not None:
            partial.write_bytes(beside.read_bytes())
        else:
            lines = vocabulary_lines(recipe, data)
            train_tokenizer(lines, recipe.model.vocabulary, recipe.tokenizer, partial)
    return path


def check_vocabulary(tokenizer: sentencepiece.SentencePieceProcessor, recipe: Recipe) -> None:
    """Refuses a recipe that needs what the vocabulary lacks, which need not be one of the recipe's
    [tokenizer]."""
    size, data = tokenizer.vocab_size(), recipe.data
    require(
        size == recipe.model.vocabulary,
        f"source.spm has {size} pieces and model.vocabulary is {recipe.model.vocabulary}",
    )
    placeholders = len(known_placeholders(tokenizer))
    require(
        data.placeholder_share == 0.0 or placeholders >= PLACEHOLDERS_USED,
        f"source.spm has {placeholders} placeholders and data.placeholder_share is "
        f"{data.placeholder_share}, which needs {PLACEHOLDERS_USED}: set it to 0, or start from "
        "another vocabulary",
    )


def vocabulary_lines(recipe: Recipe, data: Path) -> list[str]:
    """Returns the texts to learn a vocabulary from: domains are sampled by their shares, as in the
    training."""
    folder = data / recipe.data.folder
    pairs = read_split(folder, recipe.data, "train", recipe.data.domains, Reading())
    texts = "both" if recipe.data.objective == "pairs" else recipe.data.text
    rng = random.Random(recipe.train.seed)
    lines: list[str] = []
    for pair in labelled(pairs, recipe.data):
        if rng.random() < min(1.0, recipe.data.domains[pair.domain]):
            lines += sides(pair, texts)
    rng.shuffle(lines)
    return lines


def vocabulary_beside(init: Path) -> Path:
    """Returns the SentencePiece model of a bundle, run folder or checkpoint, or `init` itself if it
    is one."""
    if init.suffix == ".spm":
        return init
    return (init if init.is_dir() else init.parent) / "source.spm"


def same_vocabulary(one: Path, other: Path, error: str) -> None:
    """Raises ConfigError with this text if the vocabularies of two bundles, runs, checkpoints or
    files differ: weights would get the wrong pieces."""
    files = vocabulary_beside(one), vocabulary_beside(other)
    if all(file.exists() for file in files) and files[0].read_bytes() != files[1].read_bytes():
        raise ConfigError(error)
