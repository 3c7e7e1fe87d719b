"""Training rows of a mirror of Tatoeba's sentences."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from linnet_research.data.held_out import folded
from linnet_research.data.tatoeba import cleaned, is_text, main


def rows(file: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folders(tmp_path):
    """A function that writes a mirror and a folder of data, and returns both."""

    def write(mirror: dict[str, list[list[str]]], train: str = "", test: str = "x\ty\tz\n"):
        data, files = tmp_path / "data", tmp_path / "mirror"
        data.mkdir(exist_ok=True)
        files.mkdir()
        (data / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
        (data / "test.small.tsv").write_text(test, encoding="utf-8")
        for name, pairs in mirror.items():
            (files / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(pairs).encode()))
        main(["--mirror", str(files), "--data", str(data)])
        return data

    return write


def test_pairs_have_the_english_side_first(folders):
    data = folders({"deu-eng": [["Ein Hund.", "A dog."]]})
    assert rows(data / "mirror.tsv") == [("A dog.", "Ein Hund.", "tatoeba_mirror")]


def test_translations_of_the_same_sentence_are_pairs(folders):
    data = folders(
        {
            "deu-fra": [["Ein Hund.", "Un chien."], ["Eine Katze.", "Un chat."]],
            "eng-fra": [["A dog.", "Un chien."], ["A bird.", "Un oiseau."]],
        }
    )
    assert rows(data / "mirror.tsv") == [("A dog.", "Ein Hund.", "tatoeba_pivot")]
    assert rows(data / "german.tsv") == [("Eine Katze.", "Eine Katze.", "tatoeba_german")]
    assert rows(data / "english.tsv") == [("A bird.", "A bird.", "tatoeba_english")]


def test_one_loose_language_makes_no_pair_and_two_do(folders):
    japanese = {"deu-jpn": [["Ein Hund.", "犬。"]], "eng-jpn": [["A dog.", "犬。"]]}
    chinese = {"cmn-deu": [["狗。", "Ein Hund."]], "cmn-eng": [["狗。", "A dog."]]}
    data = folders({**japanese, **chinese})
    assert rows(data / "mirror.tsv") == [("A dog.", "Ein Hund.", "tatoeba_pivot")]


def test_one_loose_language_alone_makes_no_pair(folders):
    data = folders({"deu-jpn": [["Ein Hund.", "犬。"]], "eng-jpn": [["A dog.", "犬。"]]})
    assert rows(data / "mirror.tsv") == []
    assert rows(data / "german.tsv") == [("Ein Hund.", "Ein Hund.", "tatoeba_german")]


def test_what_is_known_or_held_out_is_left_out(folders):
    data = folders(
        {
            "deu-eng": [
                ["Ein Hund!", "A dog!"],  # in the training, with another stop
                ["Eine Katze.", "A cat."],  # its source is in a test
                ["Das ist ein Vogel.", "A bird."],  # its target is in a test
                ["Ein Garten.", "A garden."],
            ],
            "deu-fra": [["Der Vogel.", "L'oiseau."]],
        },
        train="A dog.\tEin Hund.\ttatoeba\n",
        test="A cat.\tKatze.\tsmall\nBird.\tDas ist ein Vogel.\tsmall\nX.\tDer Vogel.\tsmall\n",
    )
    assert rows(data / "mirror.tsv") == [("A garden.", "Ein Garten.", "tatoeba_mirror")]
    assert rows(data / "german.tsv") == []


def test_everyday_sentences_of_the_cards_are_left_out(folders):
    data = folders(
        {"deu-eng": [["Uns ist der Kaffee ausgegangen.", "He never answers his emails."]]}
    )
    assert rows(data / "mirror.tsv") == []


def test_translations_of_a_test_are_left_out_also_by_way_of_a_loose_language(folders):
    data = folders(
        {
            "deu-jpn": [["Der Hund.", "犬。"]],
            "eng-jpn": [["Test dog.", "犬。"]],
            "deu-eng": [["Der Vogel.", "Test bird."], ["Der Vogel.", "The bird."]],
        },
        test="Test dog.\tHund.\tsmall\nTest bird.\tVogel.\tsmall\n",
    )
    assert rows(data / "german.tsv") == rows(data / "mirror.tsv") == []
    assert rows(data / "english.tsv") == [("The bird.", "The bird.", "tatoeba_english")]


def test_further_references_of_a_test_are_left_out(folders, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/refs.small.tsv").write_text("y\tDer Hund!\n", encoding="utf-8")
    data = folders({"deu-fra": [["Der Hund.", "Le chien."]]})
    assert rows(data / "german.tsv") == []


def test_a_source_has_three_translations_at_most(folders):
    german = ["Ein Hund.", "Der Hund.", "Hund!", "Das ist ein Hund.", "Hunde."]
    data = folders(
        {"deu-eng": [[text, "A dog."] for text in german]}, train="A dog.\tEin Hund.\ttatoeba\n"
    )
    assert len(rows(data / "mirror.tsv")) == 2


def test_rows_that_are_no_translations_are_left_out(folders):
    data = folders(
        {
            "deu-eng": [
                ["Ja.", "This sentence is far too long for a yes."],
                ["12 + 34 = 46", "12 + 34 = 46"],
            ]
        }
    )
    assert rows(data / "mirror.tsv") == []


def test_text_is_cleaned():
    assert cleaned(" a\u0308\u200b b\u00a0\nc ") == "ä b c"
    assert folded("It's 3 o'clock. STRASSE") == folded("its 3 oclock: straße")
    assert [is_text(text) for text in ("A dog.", "", "1 2 3 4 . . .")] == [True, False, False]


def test_an_empty_mirror_is_an_error(tmp_path, capsys):
    assert main(["--mirror", str(tmp_path), "--data", str(tmp_path)]) == 1
    assert "has no test.*.tsv and no valid.tsv.xz" in capsys.readouterr().err
    (tmp_path / "test.small.tsv").write_text("x\ty\tz\n", encoding="utf-8")
    (tmp_path / "train.tsv").write_text("x\ty\tz\n", encoding="utf-8")
    assert main(["--mirror", str(tmp_path), "--data", str(tmp_path)]) == 1
    assert "has no file like deu-eng.json.gz" in capsys.readouterr().err
