"""Made-up messages and their summaries."""

from __future__ import annotations

import lzma
import random
import re

import pytest

from linnet_model.data_config import STYLES
from linnet_model.sentences import split_sentences
from linnet_model.text_files import read_pairs
from linnet_model.train.messages import (
    Parts,
    Sentences,
    headline,
    made_up,
    main,
    of_sentences,
    slots,
    written_messages,
)

REQUESTS = [
    f"Please call me at the {place}." for place in ("station", "office", "bank", "hotel", "zoo")
]
REQUESTS += [
    f"We need more {things}." for things in ("chairs", "plates", "tents", "spoons", "time")
]
EVENTS = [
    f"The {thing} was stolen last night."
    for thing in ("car", "van", "boat", "bike", "bus", "bag", "cup", "hat", "key", "pen")
]
FIGURES = [f"The train leaves at {hour}:15." for hour in range(1, 11)]
MATTERS = [*REQUESTS, *EVENTS, *FIGURES]
OTHERS = [
    f"I like {fruit} with my tea."
    for fruit in (
        "pears",
        "plums",
        "figs",
        "nuts",
        "dates",
        "grapes",
        "limes",
        "kale",
        "leeks",
        "mint",
    )
]
FORMAL = [
    f"The report on {topic} was presented to both committees."
    for topic in ("water", "roads", "trade", "law", "art", "fish", "coal", "steel", "wool", "tin")
]
KNOWN = Sentences(REQUESTS, EVENTS, FIGURES, OTHERS, FORMAL)


@pytest.fixture(scope="module")
def parts():
    return Parts()


@pytest.fixture(scope="module")
def messages(parts):
    rng = random.Random(3)
    return [made_up(parts, rng) for _ in range(500)]


def test_summaries_of_made_up_messages_are_sentences_of_them(messages):
    for message in messages:
        assert message["sentence"] in message["source"]
        paragraph = split_sentences(message["paragraph"])
        assert 2 <= len(paragraph) <= 3
        assert message["sentence"] in message["paragraph"]
        places = [message["source"].index(sentence) for sentence in paragraph]
        assert places == sorted(places), message


def test_title_of_a_made_up_message_states_nothing_that_its_sentence_does_not(messages):
    for message in messages:
        for fact in re.findall(r"\d[\d.,:]*", message["title"]):
            assert fact in message["sentence"], message


def test_news_begin_with_what_happened():
    parts = Parts()
    parts.matters = [matter for matter in parts.matters if matter["kind"] == "news"]
    message = made_up(parts, random.Random(1))
    assert message["source"].startswith(message["sentence"])


def test_every_title_is_of_use(parts):
    for matter in parts.matters:
        for title in matter["title"]:
            assert any(slots(title) <= slots(point) for point in matter["point"]), title


@pytest.fixture(scope="module")
def mixtures(parts):
    rng = random.Random(5)
    return [of_sentences(parts, KNOWN, rng) for _ in range(200)]


def test_message_of_single_sentences_is_summed_up_by_those_that_matter(mixtures):
    messages = [message for message in mixtures if message["sentence"] in MATTERS]
    assert messages
    for message in messages:
        assert all(sentence in MATTERS for sentence in split_sentences(message["paragraph"]))
        assert sum(sentence in message["source"] for sentence in OTHERS) >= 2


def test_formal_sentences_are_news_that_begin_with_what_matters(mixtures):
    messages = [message for message in mixtures if message["sentence"] not in MATTERS]
    assert messages
    for message in messages:
        assert message["source"].startswith(message["sentence"])
        assert all(sentence in FORMAL for sentence in split_sentences(message["paragraph"]))


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("Could you please call the bank?", "Call the bank"),
        ("Don't forget to water the flowers, because it is hot.", "Water the flowers"),
        ("The train leaves at nine.", "The train leaves at nine"),
        ("Two people were hurt, who live nearby.", "Two people were hurt"),
        ("Yes, he died in the hospital.", "Yes, he died in the hospital"),
        ("I do not know why all of you always come so late to school.", ""),
    ],
)
def test_headline_of_a_request_has_no_politeness_and_no_reasons(sentence, title):
    assert headline(sentence) == title


def test_summaries_of_written_messages_are_sentences_of_their_messages():
    rows = written_messages()
    assert list(rows) == list(STYLES)
    for style in ("sentence", "paragraph"):
        for pair in rows[style]:
            assert all(sentence in pair.source for sentence in split_sentences(pair.target))
    assert all(len(pair.target.split()) <= 10 for pair in rows["title"])


@pytest.fixture
def data(tmp_path):
    for name in ("en-de", "summarize"):
        (tmp_path / name).mkdir()

    def rows(texts: list[str], domain: str) -> str:
        return "".join(f"{text}\t-\t{domain}\n" for text in texts)

    folder = tmp_path / "en-de"
    train = rows([*MATTERS, "Please be silent, all of you."], "tatoeba")
    (folder / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
    (folder / "english.tsv").write_text(rows(OTHERS, "tatoeba_english"))
    (folder / "english_debates.tsv").write_text(rows(FORMAL, "europarl_english"))
    (folder / "test.small.tsv").write_text(rows(["Please be silent, all of you."], "small"))
    return tmp_path


def test_rows_are_written_beside_their_tests_without_sentences_of_tests(data):
    assert not main(["--data", str(data), "--rows", "60"])
    rows = read_pairs(data / "summarize/messages.tsv")
    assert len(rows) == 60
    assert {row.domain for row in rows} == {f"message_{style}" for style in STYLES}
    assert not any("Please be silent" in row.source for row in rows)
    for style in STYLES:
        assert len(read_pairs(data / f"summarize/test.message_{style}.tsv")) == len(
            written_messages()[style]
        )


def test_folder_without_tests_is_refused(data, capsys):
    (data / "en-de/test.small.tsv").unlink()
    assert main(["--data", str(data)])
    assert "has no test.*.tsv and no valid.tsv.xz" in capsys.readouterr().err


def test_too_few_sentences_are_refused(data, capsys):
    (data / "en-de/english.tsv").write_text("I like tea.\t-\ttatoeba_english\n")
    assert main(["--data", str(data)])
    assert "0 others, 10 formal, at least 10 of each are needed" in capsys.readouterr().err
