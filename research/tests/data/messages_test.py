"""Made-up messages and their summaries."""

from __future__ import annotations

import lzma
import random

import pytest

from linnet_model.data_config import STYLES
from linnet_model.text_files import read_pairs
from linnet_research.data.messages import (
    DETAIL,
    MATTERS,
    TALK,
    Message,
    Part,
    Sentences,
    Written,
    headline,
    main,
    of_sentences,
    read_messages,
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
MATTER = [*REQUESTS, *EVENTS, *FIGURES]
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


NAMES = ("messages-en", "messages-test-en")


@pytest.fixture(scope="module")
def written():
    return Written(read_messages("messages-en"), read_messages("points-en"))


@pytest.mark.parametrize("name", NAMES)
def test_written_messages_have_one_sentence_that_matters_most(name):
    messages = read_messages(name)
    assert messages
    for message in messages:
        marks = [part.mark for part in message.parts]
        assert marks.count(MATTERS) == 1, message.title
        assert 1 <= marks.count(DETAIL) <= 3, message.title
        assert 3 <= len(message.title.split()) <= 11, message.title


def test_points_are_a_title_and_sentences_that_matter(written):
    assert written.points
    for point in written.points:
        assert [part.mark for part in point.parts] in ([MATTERS, DETAIL], [MATTERS, DETAIL, DETAIL])
        assert 3 <= len(point.title.split()) <= 11, point.title
        assert point.kind in written.of, "whose talk stands around it"


def test_points_stand_among_talk_of_their_kind(written):
    rng = random.Random(7)
    known = {point.title: point for point in written.points}
    places = set()
    for _ in range(500):
        message = written.around_point(rng)
        marked = [part for part in message.parts if part.mark]
        main, *details = known[message.title].parts
        assert marked[0] == main
        assert marked[1:] == [part for part in details if part in marked]
        talk = [part for part in message.parts if part in written.talk[message.kind]]
        assert len(talk) >= 3
        places.add(message.parts.index(main))
    assert len(places) > 5


def test_no_written_message_is_in_training_and_test():
    training = [*read_messages("messages-en"), *read_messages("points-en")]
    known = {part.text for message in training for part in message.parts}
    for message in read_messages(NAMES[1]):
        assert not known & {part.text for part in message.body if len(part.text.split()) > 5}


def test_greeting_and_name_are_no_talk():
    parts = [
        Part(TALK, "Hi Olga,"),
        Part(TALK, "I liked the film."),
        Part(MATTERS, "The car broke down."),
        Part(TALK, "It rains."),
        Part(TALK, "Peter"),
    ]
    message = Message("mails", "Car broke down", parts)
    assert message.opening == parts[:1]
    assert message.closing == parts[3:]
    assert message.body == parts[1:3]
    assert message.summaries() == {
        "title": "Car broke down",
        "sentence": "The car broke down.",
        "paragraph": "",
    }


def test_varied_messages_keep_what_matters_in_its_order(written):
    rng = random.Random(3)
    known = {message.title: message for message in written.messages}
    sources = set()
    for _ in range(500):
        message = written.varied(rng)
        sources.add(message.source())
        original = known[message.title]
        marked = [part for part in message.parts if part.mark]
        assert marked == [part for part in original.parts if part in marked]
        assert [part.mark for part in marked].count(MATTERS) == 1
        assert message.opening == original.opening
        assert message.parts[len(message.parts) - len(original.closing) :] == original.closing
    assert len(sources) > 450


@pytest.fixture(scope="module")
def mixtures(written):
    rng = random.Random(5)
    return [of_sentences(written, KNOWN, rng) for _ in range(200)]


def marked(message: Message) -> list[str]:
    return [part.text for part in message.parts if part.mark]


def test_message_of_single_sentences_is_summed_up_by_those_that_matter(mixtures):
    messages = [message for message in mixtures if message.kind != "news"]
    assert messages
    for message in messages:
        assert 1 <= len(marked(message)) <= 3
        assert all(sentence in MATTER for sentence in marked(message))
        assert sum(sentence in message.source() for sentence in OTHERS) >= 2


def test_formal_sentences_are_news_that_begin_with_what_matters(mixtures):
    messages = [message for message in mixtures if message.kind == "news"]
    assert messages
    for message in messages:
        assert message.source().startswith(message.summaries()["sentence"])
        assert all(sentence in FORMAL for sentence in marked(message))


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


@pytest.fixture
def data(tmp_path):
    for name in ("en-de", "summarize"):
        (tmp_path / name).mkdir()

    def rows(texts: list[str], domain: str) -> str:
        return "".join(f"{text}\t-\t{domain}\n" for text in texts)

    folder = tmp_path / "en-de"
    train = rows([*MATTER, "Please be silent, all of you."], "tatoeba")
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
        tests = read_pairs(data / f"summarize/test.message_{style}.tsv")
        assert len(tests) == len(read_messages("messages-test-en"))


def test_folder_without_tests_is_refused(data, capsys):
    (data / "en-de/test.small.tsv").unlink()
    assert main(["--data", str(data)])
    assert "has no test.*.tsv and no valid.tsv.xz" in capsys.readouterr().err


def test_too_few_sentences_are_refused(data, capsys):
    (data / "en-de/english.tsv").write_text("I like tea.\t-\ttatoeba_english\n")
    assert main(["--data", str(data)])
    assert "0 others, 10 formal, at least 10 of each are needed" in capsys.readouterr().err
