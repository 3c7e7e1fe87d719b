"""Summaries of the model that ships: its default, titles of one phrase, and what is no prose."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WARNED = 'linnet_warnings_total{reason="NOT_PROSE"}'
NEWS = (ROOT / "model/linnet_model/texts/examples-summarize-en.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def served(start):
    return start("--compute", "float32", models=ROOT / "model/bundles")


@pytest.fixture(scope="module")
def client(linnet, served):
    with linnet.Client(served.grpc) as client:
        yield client


def test_default_is_a_sentence(client):
    assert client.summarize(NEWS, language="en") == client.summarize(
        NEWS, language="en", style="sentence"
    )


def test_title_is_one_phrase_without_its_full_stop(linnet, client):
    titles = client.summarize(NEWS, language="en", style="title")
    # The first two used to be the first sentences of their texts, two and three of them.
    assert titles[0] == (
        "The city council voted on Tuesday to close the main street to cars on weekends from May "
        "to September"
    )
    for title in titles:
        assert not title.endswith("."), title
        assert ". " not in title, title
    # The parts of a stream, and hypotheses, have no full stop either.
    request = linnet.SummarizeRequest(
        contents=NEWS[:3], language_code="en", style=linnet.SummaryStyle.SUMMARY_STYLE_TITLE
    )
    request.options.n_best = 2
    stream = client.stream_summarize(request)
    streamed = ["", "", ""]
    for part in stream:
        streamed[part.content_index] += part.text
    assert streamed == titles[:3]
    for summary in stream.response().summaries:
        assert summary.segments[0].target_end == len(summary.text.encode())
        for hypothesis in summary.segments[0].hypotheses:
            assert not hypothesis.text.endswith(".")


def test_summary_does_not_end_behind_an_abbreviation(client):
    mails = [
        f"Dear all, the meeting of {day} is cancelled because {name} Miller is ill and {name} "
        f"Brown is on holiday. Please ask {name} Jones for the new date. Regards, {name} Smith"
        for day in ("Monday", "Tuesday", "Friday")
        for name in ("Mr.", "Mrs.", "Dr.", "Prof.")
    ]
    for style in ("title", "sentence", "paragraph"):
        for summary in client.summarize(mails, language="en", style=style):
            assert not summary.endswith(("Mr.", "Mrs.", "Dr.", "Prof.")), summary
            if style == "title":
                assert not summary.endswith(("Mr", "Mrs", "Dr", "Prof")), summary


def test_requested_length_has_priority_over_the_style(client):
    two = client.summarize(NEWS[0], language="en", style="sentence", sentences=2)
    assert two.count(". ") == 1
    assert two.endswith(".")


def test_code_and_tables_get_a_warning(linnet, client, served):
    texts = {
        "prose": NEWS[0],
        "abstract": (ROOT / "tests/data/abstract.txt").read_text("utf-8"),
        "page": (ROOT / "README.md").read_text("utf-8"),
        "code": Path(__file__).read_text("utf-8"),
        "table": "name,age,city\nSmith,41,Rome\nJones,37,Oslo\n",
    }
    request = linnet.SummarizeRequest(
        contents=texts.values(),
        language_code="en",
        long_input=linnet.LongInput.LONG_INPUT_TRUNCATE,
    )
    before = served.metric(WARNED)
    warned = {}
    for name, summary in zip(texts, client.summarize(request).summaries, strict=True):
        for warning in summary.warnings:
            assert warning.reason == "NOT_PROSE"
            assert 0 <= float(warning.metadata["proseShare"]) < 0.5
            warned[name] = warning.message
    assert set(warned) == {"page", "code", "table"}
    assert warned["table"].startswith("only 0 % of the text is prose")
    assert served.metric(WARNED) == before + 3
    with pytest.warns(linnet.LinnetWarning, match="is prose, the rest looks like code, tables"):
        client.summarize(texts["table"], language="en")
