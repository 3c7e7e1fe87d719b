"""Sentences of parliaments' protocols."""

from __future__ import annotations

import pytest

from linnet_research.data.debates import main

SPEECH = """<?xml version="1.0" encoding="utf-8"?>
<dbtplenarprotokoll><sitzungsverlauf><rede id="1">
<p klasse="redner"><redner id="2"/>Eine Rednerin spricht heute als erste:</p>
<p klasse="J_1">{first}</p><kommentar>(Beifall bei allen Fraktionen des Hauses.)</kommentar>
<p klasse="J">{second}</p>
</rede></sitzungsverlauf></dbtplenarprotokoll>
"""


@pytest.fixture
def debates(tmp_path):
    """A function that writes protocols, runs the program and returns the texts of both files."""

    def run(first: str = "", second: str = "", english: str = "", rows: int = 100, test: str = "-"):
        (tmp_path / "test.small.tsv").write_text(f"{test}\tx\ty\n", encoding="utf-8")
        folders = [tmp_path / "bundestag", tmp_path / "europarl"]
        for folder in folders:
            folder.mkdir()
        (folders[0] / "19001-data.xml").write_text(SPEECH.format(first=first, second=second))
        (folders[1] / "ep-00-01-17.txt").write_text(english, encoding="utf-8")
        words = ["--german", str(folders[0]), "--english", str(folders[1])]
        assert not main([*words, "--data", str(tmp_path), "--rows", str(rows)])
        return [
            [tuple(line.split("\t")) for line in (tmp_path / name).read_text().splitlines()]
            for name in ("german_debates.tsv", "english_debates.tsv")
        ]

    return run


def test_what_speakers_say_is_split_into_sentences_on_both_sides(debates):
    said = ["Wir beraten heute den Haushalt.", "Über Ältere reden wir später."]
    german, _ = debates(" ".join(said))
    assert sorted(german) == sorted((text, text, "bundestag") for text in said)


def test_long_sentences_are_left_out(debates):
    longest = " ".join(["We", *["very"] * 32, "clearly", "agree."])
    english = f"<P>{longest}<P>{longest.replace('agree.', 'all agree.')}"
    assert [row[0] for row in debates(english=english)[1]] == [longest]


def test_ordinals_and_abbreviations_end_no_sentence(debates):
    said = "Am 3. Oktober sprach Herr Dr. Weber zu uns allen."
    assert [row[0] for row in debates(said)[0]] == [said]


def test_halves_of_quotations_and_scraps_are_left_out(debates):
    german, _ = debates("Stark für das Land“ hilft allen.", "Liebe Gäste! Guten Tag!")
    assert german == []


def test_markup_and_the_blank_at_a_genitive_are_taken_out(debates):
    english = (
        '<CHAPTER ID=1> Votes <SPEAKER ID=1 NAME="President">The people\' s voice is strong.<P>'
    )
    assert debates(english=english)[1] == [
        ("The people's voice is strong.",) * 2 + ("europarl_english",)
    ]


def test_a_sentence_occurs_once_and_never_if_a_test_has_it(debates):
    english = "<P>We vote on this today.<P>We vote on this today.<P>We will vote at noon today."
    rows = debates(english=english, test="We will vote at noon today.")[1]
    assert [row[0] for row in rows] == ["We vote on this today."]


def test_of_many_sentences_some_are_chosen(debates):
    english = "<P>".join(f"We vote on report {number} today." for number in range(50))
    first = debates(english=english, rows=7)[1]
    assert len(first) == len(set(first)) == 7
    assert first != sorted(first)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a folder"),
        (["--german", "{}"], "no test"),
        (["--german", "{}", "--test"], "has no file"),
    ],
)
def test_missing_folders_are_named(tmp_path, capsys, words, message):
    if words[-1:] == ["--test"]:
        (tmp_path / "test.small.tsv").write_text("x\ty\tz\n", encoding="utf-8")
        words = words[:-1]
    arguments = [word.format(tmp_path) for word in words]
    assert main([*arguments, "--data", str(tmp_path)])
    assert message in capsys.readouterr().err
