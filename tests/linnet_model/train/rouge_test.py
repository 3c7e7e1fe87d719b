"""Tests of ROUGE in other languages than English, where rouge-score's own tokenizer tears words."""

from __future__ import annotations

import unicodedata

import pytest
from rouge_score import rouge_scorer as package

from linnet_model.evaluation.score import measure, signatures
from linnet_model.train.rouge import ROUGE, WordsOfAnyScript, rouge


def first(reference: str, answer: str, language: str) -> float:
    return rouge([[reference]], [answer], language)["rouge1"]


@pytest.mark.parametrize(
    ("reference", "answer", "language", "expected"),
    [
        ("日本語の要約", "日本語の要約", "ja", 100.0),
        ("日本語の要約", "日本の要点", "ja", 1000 / 11 * 0.8),  # four of five and of six
        ("die Träger", "die Übergrößenträger", "de", 50.0),
        ("Größe über Maß", "Grösse ueber Mass", "de", 0.0),
        ("GRÖSSE ÜBER", "grösse über", "de", 100.0),
        ("Это краткое изложение", "Это длинное изложение", "ru", 200 / 3),
        ("यह हिन्दी है", "यह हिन्दू है", "hi", 200 / 3),  # vowel signs are part of a word
        ("ملخص قصير", "ملخص طويل", "ar", 50.0),
        ("요약 하나", "요약 둘", "ko", 50.0),
        ("สรุป", "สรุป", "th", 100.0),
        ("2019年の iPhone", "2019年 iPhone", "ja", 600 / 7),  # 2019 and iphone stay whole
        ("running", "runs", "de", 0.0),  # a German word is not stemmed as an English one
    ],
)
def test_words_of_every_script_count(reference: str, answer: str, language: str, expected: float):
    assert first(reference, answer, language) == pytest.approx(expected)


def test_composed_and_decomposed_text_are_one():
    text = "Một nền ẩm thực về phở"
    assert first(text, unicodedata.normalize("NFD", text), "vi") == pytest.approx(100.0)


@pytest.mark.parametrize("language", ["en", "en-GB", "EN"])
def test_english_is_scored_as_everybody_scores_it(language: str):
    pairs = [
        ("The dogs were running home in 2019.", "A dog runs home, don't they?"),
        ("naïve café owners", "cafe owner"),
    ]
    scorer = package.RougeScorer(list(ROUGE), use_stemmer=True)
    for reference, answer in pairs:
        theirs = scorer.score(reference, answer)
        ours = rouge([[reference]], [answer], language)
        assert ours == {kind: 100.0 * theirs[kind].fmeasure for kind in ROUGE}
    assert first("running", "runs", language) == 100.0


def test_words_of_plain_text_are_those_of_the_package():
    text = "one two-three  42 (four), it's"
    scorer = package.RougeScorer(list(ROUGE), use_stemmer=False)
    assert WordsOfAnyScript().tokenize(text) == scorer._tokenizer.tokenize(text)


def test_score_passes_the_language():
    references, answers = [["日本語の要約"]] * 3, ["日本語の要約"] * 3
    assert measure("summarize", references, answers, "ja")["ROUGE-L"] == pytest.approx(100.0)
    assert measure("summarize", references, answers, "en")["ROUGE-L"] == 0.0
    assert "words of any script, no stemmer" in signatures("summarize", "ja")["ROUGE"]
    assert "use_stemmer=True" in signatures("summarize", "en")["ROUGE"]
