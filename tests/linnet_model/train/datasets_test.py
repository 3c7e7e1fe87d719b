"""Tests of datasets and batches."""

import random
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linnet_model.config import ModelConfig
from linnet_model.data_config import DataConfig
from linnet_model.network.dropout import KeepAll
from linnet_model.network.encoder_decoder import EOS, PAD, EncoderDecoder
from linnet_model.text_files import DataError, Pair
from linnet_model.train.datasets import (
    PairDataset,
    batches,
    epoch_batches,
    make_batch,
    training_pairs,
)
from linnet_model.train.validation import features_of


def test_dataset_keeps_fitting_rows_and_counts_others(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0}, max_source_tokens=12, max_target_tokens=12)
    dataset = PairDataset(
        [Pair("Ba.", "Be.", "x"), Pair("Ba " * 40, "Be.", "x"), Pair("Ba.", "Be " * 40, "x")],
        tokenizer,
        config,
    )
    assert len(dataset) == 1
    assert dataset.source(0).tolist() == [*tokenizer.encode("Ba."), EOS]
    assert dataset.statistics()["x"]["dropped_as_too_long"] == 2
    config.cut_source = True
    cut = PairDataset([Pair("Ba " * 40, "Be.", "x")], tokenizer, config)
    assert cut.source(0).tolist() == [*tokenizer.encode("Ba " * 40)[:11], EOS]


def test_cuts_share_of_sources_short(tokenizer):
    config = DataConfig(
        folder="x",
        domains={"x": 1.0},
        max_source_tokens=40,
        cut_source=True,
        short_share=0.7,
        short_tokens=8,
    )
    pairs = [Pair("Ba " * 100, "Be.", "x")] * 200
    lengths = PairDataset(pairs, tokenizer, config, random.Random(1)).source_lengths
    assert set(lengths) == {8, 40}
    assert 110 < (lengths == 8).sum() < 170  # 140 expected, standard deviation 6.5
    assert set(PairDataset(pairs, tokenizer, config).source_lengths) == {40}


def test_short_sources_are_no_longer_than_others(tokenizer):
    config = DataConfig(
        folder="x", domains={"x": 1.0}, max_source_tokens=8, cut_source=True, short_share=1.0
    )
    dataset = PairDataset([Pair("Ba " * 100, "Be.", "x")], tokenizer, config, random.Random(1))
    assert set(dataset.source_lengths) == {8}  # short_tokens is 64


def test_domain_without_a_row_that_fits_is_refused(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0, "y": 1.0}, max_source_tokens=12)
    rows = [Pair("Ba.", "Be.", "x"), Pair("Ba " * 40, "Be.", "y"), Pair("Ba " * 40, "Be.", "y")]
    with pytest.raises(DataError, match=r"none of the 2 rows of y is shorter than 12 source and"):
        PairDataset(rows, tokenizer, config)


def test_added_rows_that_are_all_too_long_name_the_share_that_adds_them(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0}, max_source_tokens=12)
    rows = [Pair("Ba.", "Be.", "x"), Pair("Ba " * 40, "Be.", "joined")]
    with pytest.raises(DataError, match=r"rows of joined is shorter .* set data.join_share to 0"):
        PairDataset(rows, tokenizer, config)


def test_extracts_of_cut_texts_are_left_out(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0}, max_source_tokens=12, cut_source=True)
    rows = [Pair("Ba " * 40, "Be.", name) for name in ("x", "sentences")]
    dataset = PairDataset([*rows, Pair("Ba.", "Be.", "sentences")], tokenizer, config)
    assert dataset.domains == ["x", "sentences"]
    assert dataset.statistics()["sentences"]["dropped_as_too_long"] == 1


def test_shares_that_leave_no_row_are_refused(tokenizer):
    config = DataConfig(folder="x", domains={"x": 0.4})
    dataset = PairDataset([Pair("Ba.", "Be.", "x")], tokenizer, config)
    with pytest.raises(DataError, match=r"data.domains leave none of 1 rows in an epoch"):
        epoch_batches(dataset, {"x": 0.4}, 1, 0, 100, 100)


def test_echoes_have_target_as_source(data_folder: Path):
    config = DataConfig(folder="toy", domains={"even": 1.0}, echo_share=0.1)
    pairs = training_pairs(data_folder / "toy", config, seed=1)
    echoes = [pair for pair in pairs if pair.domain == "echoes"]
    assert len(echoes) == 12
    assert all(pair.source == pair.target for pair in echoes)


def test_batch_is_padded_and_shifted(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0})
    dataset = PairDataset([Pair("a", "b", "x"), Pair("a b c", "d e f g", "x")], tokenizer, config)
    batch = make_batch(dataset, numpy.array([0, 1]))
    short = int(dataset.source_lengths[0])
    assert batch.source[0, :short].tolist() == dataset.source(0).tolist()
    assert (batch.source[0, short:] == PAD).all()
    assert batch.previous()[:, 0].tolist() == [EOS, EOS]
    assert batch.previous()[1, 1:].tolist() == dataset.target(1)[:-1].tolist()


def test_training_path_reads_no_tensor_of_a_batch(tokenizer):
    """Reading one would wait for a GPU; a tensor of the device "meta" has no values to read."""
    config = DataConfig(folder="x", domains={"x": 1.0})
    dataset = PairDataset([Pair("a", "b", "x"), Pair("a b c", "d e f g", "x")], tokenizer, config)
    sizes = ModelConfig(vocabulary=400, width=16, ffn_width=16, heads=2)
    sizes.encoder_mixers = ["dynamic", "light", "self_attention", "csan_2d"]
    sizes.encoder_kernels = [3, 3, 0, 3]
    sizes.check()
    here, meta = torch.device("cpu"), torch.device("meta")
    model, shapes = EncoderDecoder(sizes), EncoderDecoder(sizes).to(meta)
    for rows, padded in (([0, 1], True), ([1, 1], False)):
        batch = make_batch(dataset, numpy.array(rows))
        assert batch.padded is padded
        assert batch.inside.tolist() == [
            at for at, token in enumerate(batch.target.flatten().tolist()) if token != PAD
        ]
        features = features_of(shapes, batch.to(meta), KeepAll())
        assert features.shape == (*batch.target.shape, 16)
        found = features_of(model, batch.to(here), KeepAll())
        wanted = model(batch.source, batch.lengths, batch.previous(), KeepAll())
        assert torch.equal(found, wanted)


class Lengths:
    """The part of a dataset that `batches` reads."""

    def __init__(self, pairs: list[tuple[int, int]]):
        self.source_lengths = numpy.array([p[0] for p in pairs], dtype=int)
        self.target_lengths = numpy.array([p[1] for p in pairs], dtype=int)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60))),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_batches_hold_each_row_once_within_limits(pairs, target_tokens, source_tokens):
    dataset = Lengths(pairs)
    found = batches(dataset, numpy.arange(len(pairs)), target_tokens, source_tokens)
    assert [row for batch in found for row in batch] == list(range(len(pairs)))
    for batch in found:
        fits = (
            dataset.source_lengths[batch].max() * len(batch) <= source_tokens
            and dataset.target_lengths[batch].max() * len(batch) <= target_tokens
        )
        assert fits or len(batch) == 1


def test_epoch_uses_shares_and_depends_on_number(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0})
    pairs = [Pair(f"a {i}", f"b {i}", "often" if i < 10 else "seldom") for i in range(50)]
    dataset = PairDataset(pairs, tokenizer, config)
    shares = {"often": 2.5, "seldom": 0.25}

    def rows(epoch: int) -> list[int]:
        return [int(r) for batch in epoch_batches(dataset, shares, 1, epoch, 50, 50) for r in batch]

    for epoch in (0, 1):
        domains = [dataset.domains[row] for row in rows(epoch)]
        assert domains.count("often") == 25
        assert domains.count("seldom") == 10
        assert all(rows(epoch).count(row) in (2, 3) for row in range(10))
    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_training_pairs_depend_on_seed(data_folder: Path):
    config = DataConfig(
        folder="toy", domains={"even": 1.0}, lowercase_share=0.5, rename_share=1.0, copy_share=0.1
    )
    path = data_folder / "toy"
    once = training_pairs(path, config, seed=1)
    assert once == training_pairs(path, config, seed=1)
    assert once != training_pairs(path, config, seed=2)
    copies = [pair for pair in once if pair.domain == "copies"]
    assert len(copies) == 12
    assert all(pair.source == pair.target for pair in copies)
    assert {pair.domain for pair in once} == {"even", "copies"}
