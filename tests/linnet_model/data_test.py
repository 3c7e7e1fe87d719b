"""Reading pairs, and cutting them into batches."""

import lzma
import random
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet_model.config import DataConfig
from linnet_model.data import (
    Corpus,
    DataError,
    Pair,
    batches,
    epoch_batches,
    make_batch,
    read_pairs,
    training_pairs,
)
from linnet_model.transducer import EOS, PAD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\tzwei\n", "rows.tsv:1 has 2 columns, expected source, target and domain"),
        (b"a\tb\tc\td\n", "rows.tsv:1 has 4 columns"),
        (b"a\tb\tx\n\n", "rows.tsv:2 has 1 columns"),
        (b"a\t \tx\n", "rows.tsv:1 has an empty target"),
        ("a\tfÃ¼r dich\tx\n".encode(), "rows.tsv:1 has 'Ã¼' in its target"),
        ("a\ufffd\tb\tx\n".encode(), "in its source, text decoded with the wrong encoding"),
        (b"a\xff\tb\tx\n", "rows.tsv is not UTF-8"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "rows.tsv").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_pairs(tmp_path / "rows.tsv")
    assert message in str(error.value)


def test_a_missing_file_a_cut_file_and_a_missing_domain_are_named(tmp_path: Path):
    with pytest.raises(DataError, match="no file"):
        read_pairs(tmp_path / "train.tsv.xz")
    whole = lzma.compress(b"a\tb\tx\n" * 1000)
    (tmp_path / "cut.tsv.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="is not a whole xz file"):
        read_pairs(tmp_path / "cut.tsv.xz")
    (tmp_path / "rows.tsv").write_text("a\tb\tx\n")
    with pytest.raises(DataError, match="has no rows of news"):
        read_pairs(tmp_path / "rows.tsv", ["x", "news"])


def test_line_separators_inside_a_text_do_not_end_its_row(tmp_path: Path):
    (tmp_path / "rows.tsv").write_text("a\u2028b\tc\x0bd\tx\n", encoding="utf-8", newline="\n")
    assert read_pairs(tmp_path / "rows.tsv") == [Pair("a\u2028b", "c\x0bd", "x")]


def test_a_corpus_holds_every_row_that_fits_and_counts_the_rest(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0}, max_source_tokens=12, max_target_tokens=12)
    corpus = Corpus(
        [Pair("Ba.", "Be.", "x"), Pair("Ba " * 40, "Be.", "x"), Pair("Ba.", "Be " * 40, "x")],
        tokenizer,
        config,
    )
    assert len(corpus) == 1
    assert corpus.source(0).tolist() == [*tokenizer.encode("Ba."), EOS]
    assert corpus.statistics()["x"]["dropped_as_too_long"] == 2
    config.cut_source = True
    cut = Corpus([Pair("Ba " * 40, "Be.", "x")], tokenizer, config)
    assert cut.source(0).tolist() == [*tokenizer.encode("Ba " * 40)[:11], EOS]


def test_some_sources_are_cut_short_where_the_recipe_says_so(tokenizer):
    config = DataConfig(
        folder="x",
        domains={"x": 1.0},
        max_source_tokens=40,
        cut_source=True,
        short_share=0.7,
        short_tokens=8,
    )
    pairs = [Pair("Ba " * 100, "Be.", "x")] * 200
    lengths = Corpus(pairs, tokenizer, config, random.Random(1)).source_lengths
    assert set(lengths) == {8, 40}
    assert 110 < (lengths == 8).sum() < 170  # 140 expected, standard deviation 6.5
    assert set(Corpus(pairs, tokenizer, config).source_lengths) == {40}


def test_echoes_are_targets_that_are_their_own_sources(data_folder: Path):
    config = DataConfig(folder="toy", domains={"even": 1.0}, echo_share=0.1)
    pairs = training_pairs(data_folder / "toy" / "train.tsv.xz", config, seed=1)
    echoes = [pair for pair in pairs if pair.domain == "echoes"]
    assert len(echoes) == 12
    assert all(pair.source == pair.target for pair in echoes)


def test_a_batch_is_padded_behind_and_shifted_behind_the_end_token(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0})
    corpus = Corpus([Pair("a", "b", "x"), Pair("a b c", "d e f g", "x")], tokenizer, config)
    batch = make_batch(corpus, numpy.array([0, 1]))
    short = int(corpus.source_lengths[0])
    assert batch.source[0, :short].tolist() == corpus.source(0).tolist()
    assert (batch.source[0, short:] == PAD).all()
    assert batch.previous()[:, 0].tolist() == [EOS, EOS]
    assert batch.previous()[1, 1:].tolist() == corpus.target(1)[:-1].tolist()


class Lengths:
    """As much of a corpus as cutting batches needs."""

    def __init__(self, pairs: list[tuple[int, int]]):
        self.source_lengths = numpy.array([p[0] for p in pairs], dtype=int)
        self.target_lengths = numpy.array([p[1] for p in pairs], dtype=int)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60))),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_batches_hold_each_row_once_and_keep_both_limits(pairs, target_tokens, source_tokens):
    corpus = Lengths(pairs)
    found = batches(corpus, numpy.arange(len(pairs)), target_tokens, source_tokens)
    assert [row for batch in found for row in batch] == list(range(len(pairs)))
    for batch in found:
        fits = (
            corpus.source_lengths[batch].max() * len(batch) <= source_tokens
            and corpus.target_lengths[batch].max() * len(batch) <= target_tokens
        )
        assert fits or len(batch) == 1


def test_an_epoch_takes_of_each_domain_its_share_and_follows_from_its_number(tokenizer):
    config = DataConfig(folder="x", domains={"x": 1.0})
    pairs = [Pair(f"a {i}", f"b {i}", "often" if i < 10 else "seldom") for i in range(50)]
    corpus = Corpus(pairs, tokenizer, config)
    shares = {"often": 2.5, "seldom": 0.25}

    def rows(epoch: int) -> list[int]:
        return [int(r) for batch in epoch_batches(corpus, shares, 1, epoch, 50, 50) for r in batch]

    for epoch in (0, 1):
        domains = [corpus.domains[row] for row in rows(epoch)]
        assert domains.count("often") == 25
        assert domains.count("seldom") == 10
        assert all(rows(epoch).count(row) in (2, 3) for row in range(10))
    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_training_pairs_follow_from_their_seed(data_folder: Path):
    config = DataConfig(
        folder="toy", domains={"even": 1.0}, lowercase_share=0.5, rename_share=1.0, copy_share=0.1
    )
    path = data_folder / "toy" / "train.tsv.xz"
    once = training_pairs(path, config, seed=1)
    assert once == training_pairs(path, config, seed=1)
    assert once != training_pairs(path, config, seed=2)
    copies = [pair for pair in once if pair.domain == "copies"]
    assert len(copies) == 12
    assert all(pair.source == pair.target for pair in copies)
    assert {pair.domain for pair in once} == {"even", "copies"}
