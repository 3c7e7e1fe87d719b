"""Tests of extracts: the sentences of a text that are closest to its title."""

import random

from linnet_model.data.augment import augmented
from linnet_model.data.extracts import (
    closeness,
    content_words,
    extract,
    extract_pair,
    extracts,
)
from linnet_model.data_config import DataConfig
from linnet_model.sentences import split_sentences
from linnet_model.text_files import Pair

TEXT = (
    "Birds of the north were long thought to sleep in winter. "
    "Nobody had ever looked for them in the cold forests at night. "
    "We counted owls in forty snowy forests for three whole winters. "
    "Most owls hunted every single night of the winters that we saw. "
    "The weather was cold and it did not matter very much. "
    "Our counts of owls are free for everybody to use and change."
)
TITLE = "Counting owls in snowy forests: hunting in winter nights"


def test_closeness_is_f1_of_content_words():
    wanted = content_words("Counting owls in winter")
    assert wanted == {"counti", "owls", "winter"}
    assert closeness("Owls in the winter sun", wanted) == 2 * 2 / (2 + 3)
    assert closeness("It was so.", wanted) == 0.0


def test_single_extract_is_the_closest_sentence():
    assert extract(split_sentences(TEXT), TITLE, 1) == (
        "We counted owls in forty snowy forests for three whole winters."
    )


def test_several_sentences_keep_the_order_of_the_text():
    assert extract(split_sentences(TEXT), TITLE, 3) == (
        "We counted owls in forty snowy forests for three whole winters. "
        "Most owls hunted every single night of the winters that we saw. "
        "Our counts of owls are free for everybody to use and change."
    )


def test_sentences_unlike_the_title_give_none():
    assert extract(split_sentences(TEXT), "Zebras", 1) is None
    assert extract(split_sentences(TEXT)[:2], TITLE, 3) is None


def test_rows_are_parts_of_a_text_with_its_own_sentences():
    pair, rng, lengths = Pair(TEXT, TITLE, "a"), random.Random(1), set()
    for _ in range(60):
        for domain in ("sentences", "paragraphs"):
            row = extract_pair(pair, domain, rng)
            if row is None:
                continue
            text, chosen = split_sentences(row.source), split_sentences(row.target)
            assert row.source in TEXT
            assert [sentence for sentence in text if sentence in chosen] == chosen
            assert len(chosen) == (1 if domain == "sentences" else 2 if len(text) < 6 else 3)
            lengths.add(len(text))
    assert lengths == {3, 4, 5, 6}
    assert extract_pair(Pair("Owls hunt. They sleep.", TITLE, "a"), "sentences", rng) is None


def test_half_of_the_rows_are_paragraphs_and_each_has_another_text():
    pairs = [Pair(f"{TEXT} Owl number {i} is here.", f"{TITLE} {i}", "a") for i in range(40)]
    found = extracts(pairs, {"a": 1.0}, 12, random.Random(1))
    assert [row.domain for row in found] == ["sentences", "paragraphs"] * 6
    assert 30 <= len(extracts(pairs, {"a": 1.0}, 100, random.Random(1))) <= 40


def test_domains_with_a_larger_share_give_more_rows():
    texts = {"often": TEXT, "rare": TEXT.upper()}
    pairs = [Pair(text, TITLE, domain) for domain, text in texts.items() for _ in range(100)]
    found = extracts(pairs, {"rare": 0.25, "often": 4.0}, 60, random.Random(2))
    assert sum(not row.source.isupper() for row in found) > 45  # about 56 expected


def test_only_the_named_domains_give_rows():
    texts = {"heads": TEXT, "posts": TEXT.upper()}
    pairs = [Pair(text, TITLE, domain) for domain, text in texts.items() for _ in range(20)]
    config = DataConfig(folder="x", extract_share=0.3, extract_domains=["heads"])
    found = [row for row in augmented(pairs, config, 1) if row.domain not in texts]
    assert len(found) == 12
    assert not any(row.source.isupper() for row in found)
