"""Tests of inline casing: the trainer marks texts in capitals as the server does."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from linnet_model.capitals import mark_capitals, restore_capitals
from linnet_model.config import ConfigError
from linnet_model.data.augment import varied
from linnet_model.data_config import DataConfig
from linnet_model.tokenizer import load_tokenizer

TABLE = json.loads((Path(__file__).parents[1] / "data/capitals.json").read_text(encoding="utf-8"))
MARK = "<ph0>"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["text"])
def test_marks_texts_in_capitals(row):
    assert mark_capitals(row["text"], MARK) == row["read"]


@pytest.mark.parametrize("text", ["THE DOG RUNS.", "ÄPFEL, ÖL 2 ÜBER", "😀 OH NO 😀"])
def test_restores_marked_capitals(text):
    assert restore_capitals(mark_capitals(text, MARK), MARK) == text


def test_without_mark_nothing_changes():
    assert mark_capitals("THE DOG RUNS.", "") == "THE DOG RUNS."
    assert restore_capitals("<ph0> a", "") == "<ph0> a"


def test_tokenizer_marks_and_restores(tokenizer_file):
    tokenizer = load_tokenizer(tokenizer_file, MARK)
    plain = load_tokenizer(tokenizer_file)
    ids = tokenizer.encode("THE DOG RUNS.")
    assert ids == plain.encode("<ph0> The dog runs.") == tokenizer.encode(["THE DOG RUNS."])[0]
    assert tokenizer.piece_to_id(MARK) in ids
    assert tokenizer.decode(ids) == "THE DOG RUNS."
    assert tokenizer.encode("The dog.") == plain.encode("The dog.")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("THE DOG <ph1>.", "<ph0> The dog <ph1>."),
        ("“<ph1> HAS A DOG", "<ph0> “<ph1> has a dog"),
        ("A <ph1>", "A <ph1>"),  # a placeholder is no word in capitals
        ("<ph0> USA UK", "<ph0> USA UK"),
    ],
)
def test_marks_texts_with_placeholders_as_the_server_does(text, read):
    assert mark_capitals(text, MARK) == read


def test_refuses_mark_that_is_not_a_piece(tokenizer_file):
    with pytest.raises(ConfigError, match=r"data\.capitals_mark is <caps>.*placeholders"):
        load_tokenizer(tokenizer_file, "<caps>")


def test_marked_target_keeps_lower_case():
    config = DataConfig(uppercase_share=1.0, capitals_mark=MARK)
    rng = random.Random(1)
    assert varied("The dog.", "Der Hund.", config, rng) == ("THE DOG.", "<ph0> Der Hund.")
    # A single word stays unmarked, and so does its answer.
    assert varied("Stop!", "Halt!", config, rng) == ("STOP!", "HALT!")
