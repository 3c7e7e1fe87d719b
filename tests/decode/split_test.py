"""linnet-decode --split: texts are answered as the server answers them, of sentences.

tests/e2e/corpus_servers_test.py compares the answers with those of a server."""

from __future__ import annotations

import pytest

SENTENCES = ["Bado runa.", "Kelim 3?", "Mika tolo!"]
SHORT = {"max_target_tokens": 6}


@pytest.fixture(scope="module")
def split(start_decode, bundle):
    """split([text or line, …]) -> the answers of one process."""
    process = start_decode(bundle, "--split")

    def ask(lines) -> list[dict]:
        as_lines = [{"text": it} if isinstance(it, str) else it for it in lines]
        return process.ask([it | {"options": SHORT} for it in as_lines])

    return ask


def test_sentences_are_decoded_alone_and_joined(split):
    *alone, whole = split([*SENTENCES, f" {SENTENCES[0]} {SENTENCES[1]}\n\n{SENTENCES[2]} "])
    one, two, three = (it["translation"] for it in alone)
    found = whole["translation"]
    assert list(found) == ["text", "score", "tokens", "finish_reason", "warnings"]
    assert found["text"] == f" {one['text']} {two['text']}\n\n{three['text']} "
    assert found["score"] == (one["score"] + two["score"] + three["score"]) / 3
    assert found["tokens"] == one["tokens"] + two["tokens"] + three["tokens"] > 3
    assert found["finish_reason"] == "LENGTH"  # random weights end no sentence


def test_text_without_a_letter_is_its_own_translation(split):
    (answer,) = split(["12:30 - 14:00\n---"])
    assert answer["translation"] == {
        "text": "12:30 - 14:00\n---",
        "score": 0.0,
        "tokens": 0,
        "finish_reason": "STOP",
        "warnings": [],
    }


def test_protected_parts_come_back_and_warnings_are_named(split):
    (answer,) = split(["Bado https://example.com/a?b=c runa."])
    assert answer["translation"]["text"].count("https://example.com/a?b=c") == 1
    assert "SPAN_FORCED" in answer["translation"]["warnings"]  # random weights copy nothing


def test_sentence_longer_than_the_model_reads_is_decoded_in_parts(split, run, bundle):
    long = "bado runa " * 1000
    (answer,) = split([long])
    assert answer["translation"]["tokens"] > 2 * SHORT["max_target_tokens"]
    whole = run(bundle, lines=[{"text": long}])
    assert "this model reads at most" in whole.answers[0]["error"]["message"]


def test_target_is_scored_and_ids_are_read_as_without_the_flag(split, run, bundle):
    lines = [
        {"text": f"{SENTENCES[0]} {SENTENCES[1]}", "target": "mika", "options": SHORT},
        {"source_ids": [9, 8, 7, 2], "options": SHORT},
    ]
    assert split(lines) == run(bundle, lines=lines).answers


def test_texts_that_cannot_be_answered_are_errors_of_their_lines(split):
    lines = [{"text": "a", "align": True}, {"text": "a", "prefix_ids": [9]}, " ", SENTENCES[0]]
    *wrong, blank, right = split(lines)
    for answer in wrong:
        assert "leave out --split" in answer["error"]["message"]
    assert blank["error"]["message"] == "text: text is only white space"
    assert right["translation"]["tokens"] > 0
