"""Tests of the baselines of linnet-score."""

import sys

import pytest

from linnet_model.evaluation.baselines import baselines, described, lead
from linnet_model.export.card import score_part
from linnet_model.sentences import split_sentences

TEXT = "We thank Dr. J. Smith. Is it new? (It is.) See Fig. 3 of Lee et al. 2019. e.g. this one"


def test_sentences_end_before_capitals_but_not_after_abbreviations():
    assert split_sentences(TEXT) == [
        "We thank Dr. J. Smith.",
        "Is it new?",
        "(It is.)",
        "See Fig. 3 of Lee et al. 2019. e.g. this one",
    ]
    assert split_sentences("") == split_sentences("  ") == []
    assert split_sentences("no end at 3.5 percent") == ["no end at 3.5 percent"]
    assert split_sentences('He said "no." Then he left…  12 came.') == [
        'He said "no."',
        "Then he left…",
        "12 came.",
    ]


def test_sentences_joined_again_are_the_text():
    assert " ".join(split_sentences(TEXT)) == TEXT


def test_lead_is_the_first_sentences():
    assert lead(TEXT, 1) == "We thank Dr. J. Smith."
    assert lead(TEXT, 2) == "We thank Dr. J. Smith. Is it new?"
    assert lead("", 2) == ""


def test_baseline_of_a_translation_is_its_source():
    assert baselines("translate", "en", ["a"], [["b"]]) == {"source copied": ["a"]}


def test_first_words_are_as_many_as_the_median_reference_has():
    found = baselines("summarize", "de", ["a b c d"] * 3, [["x"], ["x y"], ["x y z", "x"]])
    assert list(found) == ["first words", "lead-1", "lead-2"]
    assert found["first words"] == ["a b"] * 3


def test_lexrank_takes_the_most_central_sentence():
    pytest.importorskip("sumy", reason="sumy is not installed, ./test.sh installs it")
    central = "Small rivers flood the old town every spring."
    text = f"Nobody cared. {central} The rivers flood the town. Spring is when rivers flood."
    found = baselines("summarize", "en", [text, "One sentence only.", ""], [["x"]] * 3)
    assert found["LexRank"] == [central, "One sentence only.", ""]
    assert described(["LexRank"])["LexRank"].startswith("sumy ")


def test_lexrank_is_left_out_aloud_without_sumy(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sumy.models.dom", None)  # its import fails
    assert "LexRank" not in baselines("summarize", "en", ["A b."], [["x"]])
    assert "the baseline LexRank is left out, it needs pip install" in capsys.readouterr().err


def test_card_names_test_sets_where_a_baseline_is_ahead():
    def test_set(domain: str, model: float) -> dict:
        return {
            "domain": domain,
            "rows": 1,
            "rows_of_file": 1,
            "length_ratio": 1.0,
            "looping_share": 0.0,
            "model": {"R": model},
            "baselines": {"first words": {"R": 8.0}, "lead-1": {"R": 12.0}},
        }

    scores = {"engine": "E", "options": "O", "measures": ["R"], "signatures": {}}
    page = "\n".join(score_part(scores | {"tests": [test_set("a", 9), test_set("b", 13)]}, ["a"]))
    assert "| a | 1 | 9.0 | 12.0 | 1.00 | 0.00% |\n| b | 1 | 13.0 | 12.0 |" in page
    assert "as good as the model or better, by some measure: a." in page
