"""Tests of SentencePiece models: decoding restores the text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet_model.config import ConfigError, TokenizerConfig
from linnet_model.export.random_bundle import made_up_lines
from linnet_model.network.encoder_decoder import UNK
from linnet_model.tokenizer import load_tokenizer, placeholder_pieces, train_tokenizer


@pytest.mark.parametrize(
    "text",
    [
        "https://www.example.org/a/b?c=1&d=%20#e",
        "Zoë Núñez-Østergård, 王小明 and Владимир",
        "🙂👍🏽 🏳️‍🌈",
        "“quotes”, ‘single’, «guillemets», „unten“ … – —",
        "two  blanks,\ta tab, a\nnew line",
        " blank before and after ",
        "1234567890.5 €",
        "ﬁ Å ２ ™",
        "x" * 300,
    ],
)
def test_tokenizer_loses_no_text(tokenizer, text: str):
    ids = tokenizer.encode(text)
    assert UNK not in ids
    assert tokenizer.decode(ids) == text


@given(st.text(st.characters(exclude_characters="\0\u2581", exclude_categories=("Cs",))))
def test_any_text_survives_round_trip(tokenizer, text: str):
    # SentencePiece uses U+2581 for a blank and ends its strings at NUL.
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_placeholders_are_never_split(tokenizer):
    for piece in placeholder_pieces(8):
        assert piece in tokenizer.encode(f"ba{piece}be", out_type=str)


def test_digits_are_single_pieces(tmp_path: Path):
    lines = [f"{line} 2026" for line in made_up_lines(300, seed=1)]
    train_tokenizer(lines, 400, TokenizerConfig(), tmp_path / "numbers.spm")
    pieces = load_tokenizer(tmp_path / "numbers.spm").encode("in 2026", out_type=str)
    assert pieces[-4:] == ["2", "0", "2", "6"]


def test_same_lines_give_same_model(tmp_path: Path, tokenizer_file: Path):
    train_tokenizer(made_up_lines(500, seed=1), 400, TokenizerConfig(), tmp_path / "again.spm")
    again = load_tokenizer(tmp_path / "again.spm")
    first = load_tokenizer(tokenizer_file)
    assert [again.id_to_piece(i) for i in range(400)] == [first.id_to_piece(i) for i in range(400)]


def test_refuses_impossible_vocabulary_and_missing_model(tmp_path: Path):
    with pytest.raises(ConfigError, match="no SentencePiece model of 5000 pieces"):
        train_tokenizer(["a b c"], 5000, TokenizerConfig(), tmp_path / "x.spm")
    with pytest.raises(ConfigError, match="no SentencePiece model at"):
        load_tokenizer(tmp_path / "none.spm")


@pytest.mark.parametrize(("content", "reason"), [(b"", "it is empty"), (b"text", "Internal: ")])
@pytest.mark.parametrize("mark", ["", "<ph7>"])
def test_file_that_is_no_model_is_named(tmp_path: Path, content: bytes, reason: str, mark: str):
    (tmp_path / "x.spm").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"x.spm is no SentencePiece model: {reason}"):
        load_tokenizer(tmp_path / "x.spm", mark)
