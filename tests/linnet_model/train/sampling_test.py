"""Tests of drawn pieces and of batches that are made ahead."""

import random
import threading
from pathlib import Path

import pytest
import sentencepiece
import torch

from linnet_model.config import ConfigError, read_recipe
from linnet_model.data_config import DataConfig
from linnet_model.export.random_bundle import made_up_lines
from linnet_model.network.encoder_decoder import PAD
from linnet_model.text_files import Pair
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.checkpoint import load_checkpoint
from linnet_model.train.command import main as train_main
from linnet_model.train.datasets import PairDataset, epoch_batches, make_batch, training_pairs
from linnet_model.train.objectives import make_dataset
from linnet_model.train.sampling import SampledPairDataset
from linnet_model.train.trainer import Trainer

LINES = [*made_up_lines(40, seed=3), "<ph1> is in <ph2>, and <ph1> is not.", "ALL IN CAPITALS."]
CONFIG = DataConfig(
    folder="x", domains={"x": 1.0}, max_source_tokens=200, max_target_tokens=200, sampling_alpha=0.2
)


def sampled(tokenizer: sentencepiece.SentencePieceProcessor, seed: int = 1) -> SampledPairDataset:
    pairs = [Pair(line, line, "x") for line in LINES]
    dataset = make_dataset(pairs, tokenizer, CONFIG, seed, random.Random(seed))
    assert isinstance(dataset, SampledPairDataset)
    return dataset


def rows_of(dataset: PairDataset, epoch: int, order: list[int]) -> dict[int, list[list[int]]]:
    return {row: [ids.tolist() for ids in dataset.pair(row, epoch)] for row in order}


def test_draw_depends_on_seed_epoch_and_row_alone(tokenizer):
    rows = list(range(len(LINES)))
    first = rows_of(sampled(tokenizer), 0, rows)
    again = sampled(tokenizer)
    for epoch in (3, 1):
        rows_of(again, epoch, rows)
    assert rows_of(again, 0, rows[::-1]) == first
    assert rows_of(again, 1, rows) != first
    assert rows_of(sampled(tokenizer, seed=2), 0, rows) != first
    assert any(source != target for source, target in first.values()), "sides are drawn apart"


def test_drawn_pieces_are_of_the_same_text(tokenizer_file: Path):
    tokenizer = load_tokenizer(tokenizer_file, "<ph7>")
    dataset = sampled(tokenizer)
    placeholders = {tokenizer.piece_to_id(f"<ph{i}>") for i in range(8)}
    longer = 0
    for epoch in range(20):
        for row, line in enumerate(LINES):
            for drawn, best in zip(
                dataset.pair(row, epoch), PairDataset.pair(dataset, row, epoch), strict=True
            ):
                assert tokenizer.decode(drawn[:-1].tolist()) == line
                kept = [[i for i in ids if i in placeholders] for ids in (drawn, best)]
                assert kept[0] == kept[1]
                longer += len(drawn) > len(best)
    assert longer > 10 * len(LINES)


def test_draw_that_splits_a_placeholder_is_not_used(tokenizer):
    dataset = sampled(tokenizer)
    mark, pieces = tokenizer.piece_to_id("<ph7>"), tokenizer.encode("<ph >")
    assert dataset.usable([mark, *pieces], [mark, 300], 10)
    assert not dataset.usable(pieces, [mark, 300], 10)
    assert not dataset.usable([mark, *pieces], [mark, 300], 1 + len(pieces))


def test_drawn_pieces_stay_within_the_max_tokens(tokenizer):
    dataset = sampled(tokenizer)
    dataset.longest = (int(dataset.source_lengths.max()), 200)
    for row in range(len(LINES)):
        assert len(dataset.pair(row, 0)[0]) <= dataset.longest[0]


def test_only_training_rows_are_drawn_and_only_if_asked(tokenizer):
    pairs = [Pair(line, line, "x") for line in LINES]
    plain = DataConfig(folder="x", domains={"x": 1.0})
    assert type(make_dataset(pairs, tokenizer, CONFIG, 1)) is PairDataset
    assert type(make_dataset(pairs, tokenizer, plain, 1, random.Random(1))) is PairDataset


def test_resumed_training_draws_the_same_pieces(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    def train(name: str, alpha: float, *more: str) -> dict[str, torch.Tensor]:
        words = ["--recipe", recipe_file, "--data", data_folder, "--out", tmp_path / name]
        settings = [f"data.sampling_alpha={alpha}", "train.schedule='inverse_sqrt'"]
        settings += ["train.batch_target_tokens=2000", "train.batch_source_tokens=2000"]
        words += [word for setting in settings for word in ("--set", setting)]
        assert train_main([*map(str, words), "--device", "cpu", *more]) == 0
        return load_checkpoint(tmp_path / name)["model"]

    whole = train("whole", 0.2)
    train("part", 0.2, "--set", "train.updates=3")
    resumed = train("part", 0.2, "--resume")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    plain = train("plain", 0.0)
    assert not all(torch.equal(whole[name], plain[name]) for name in whole)
    assert not any(thread.name.startswith("batches") for thread in threading.enumerate())


def test_batches_made_ahead_are_those_of_the_position(
    recipe_file: Path, data_folder: Path, tokenizer
):
    recipe = read_recipe(recipe_file, ["data.sampling_alpha=0.2"])
    pairs = training_pairs(data_folder / "toy", recipe.data, seed=1)
    dataset = make_dataset(pairs, tokenizer, recipe.data, 1, random.Random(1))
    shares = recipe.data.domains
    wanted = [
        make_batch(dataset, rows, epoch)
        for epoch in (0, 1)
        for rows in epoch_batches(dataset, shares, 1, epoch, 200, 200)
    ]
    trainer = Trainer(recipe, dataset, torch.device("cpu"))
    found = [trainer.next_batch() for _ in wanted]
    assert (trainer.position.epoch, trainer.position.batch) == (2, 0)
    for one, other in zip(wanted, found, strict=True):
        assert torch.equal(one.source, other.source)
        assert torch.equal(one.target, other.target)
        assert torch.equal(one.lengths, other.lengths)
    # A position that is set, as by a resume, is where the next batch comes from.
    trainer.position.epoch, trainer.position.batch = 0, 1
    assert torch.equal(trainer.next_batch().source, wanted[1].source)
    assert torch.equal(wanted[1].lengths, (wanted[1].source != PAD).sum(1))
    trainer.close()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.sampling_alpha=1.5", "data.sampling_alpha is 1.5, must be in [0, 1]"),
        ("data={sampling_alpha=0.2, cut_source=true}", "pairs with a target and whole sources"),
        ("tokenizer.kind='bpe'\ndata.sampling_alpha=0.2", "tokenizer.kind is 'bpe', pieces are"),
    ],
)
def test_refuses_sampling_where_it_cannot_be(recipe_file: Path, setting: str, message: str):
    with pytest.raises(ConfigError) as error:
        read_recipe(recipe_file, [setting])
    assert message in str(error.value)
