"""linnet-decode as a child: what becomes of rows when it ends, stalls or refuses."""

from __future__ import annotations

import os
import signal

import pytest
from linnet_corpus import CorpusError, Embedded, Row
from linnet_corpus.embedded import find_decode


@pytest.fixture
def embedded(bundle, decode):
    """embedded(options…) -> the back end, which the test's end closes."""
    backends = []

    def make(**options):
        backends.append(Embedded(bundle, **options))
        return backends[-1]

    yield make
    for backend in backends:
        backend.close()


ROWS = [Row(f"row {number}") for number in range(1000)]


def said(answers):
    return [answer.translation for answer in answers]


@pytest.mark.parametrize("children", [1, 3])
def test_answers_are_in_the_order_of_the_rows(embedded, children):
    came = []
    answers = embedded(children=children).answers(ROWS, came.append)
    assert said(answers) == [row.text.upper() for row in ROWS]
    assert sorted(said(came)) == sorted(said(answers))
    assert answers[0].tokens == 3
    assert answers[0].score == -5 / 32


def test_options_of_a_row_are_sent(embedded):
    answers = embedded().answers([Row("a", seed=7), Row("b", target="B")])
    assert answers[0].translation == "A 7"
    assert (answers[1].translation, answers[1].score) == (None, -1 / 32)


def test_warnings_are_those_of_the_program(embedded):
    answers = embedded().answers([Row("a 7"), Row("b")])
    assert [it.warnings for it in answers] == [("FACTS_DIFFER",), ()]


def test_refused_row_is_a_value(embedded):
    answers = embedded().answers([Row("a"), Row("too long"), Row("b")])
    assert [it.error for it in answers] == [
        None,
        "INVALID_ARGUMENT: the source has 999 tokens",
        None,
    ]


@pytest.mark.parametrize("word", ["flaw", "stall"])
def test_rows_of_a_child_that_ends_or_stalls_are_sent_again(embedded, word):
    rows = [*ROWS[:500], Row(word), *ROWS[500:]]
    answers = embedded(stall_timeout=1).answers(rows)
    assert said(answers) == [row.text.upper() for row in rows]


def test_poisoned_rows_are_values_and_the_others_are_answered(embedded):
    rows = [*ROWS[:300], Row("poison"), Row("more poison"), *ROWS[300:], Row("last poison")]
    answers = embedded(children=2).answers(rows)
    for row, answer in zip(rows, answers, strict=True):
        if "poison" in row.text:
            assert "ended 2 times with this row alone, with status -9 (request " in answer.error
        else:
            assert (answer.translation, answer.error) == (row.text.upper(), None)


def test_child_that_ended_between_two_calls_is_replaced(embedded):
    backend = embedded()
    assert said(backend.answers(ROWS[:1])) == ["ROW 0"]
    child = backend._children[0]._process
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert said(backend.answers(ROWS[:2])) == ["ROW 0", "ROW 1"]


def test_wrong_options_end_the_job(embedded):
    with pytest.raises(CorpusError, match="linnet-decode ended with status 2"):
        embedded(options={"beam_size": 0}).answers(ROWS)


def test_missing_program_and_bundle_are_named(tmp_path, decode):
    with pytest.raises(CorpusError, match="is no bundle"):
        Embedded(tmp_path)
    with pytest.raises(CorpusError, match="there is no program nowhere: install"):
        find_decode("nowhere")
