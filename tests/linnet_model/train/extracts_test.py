"""Tests of extracts: the sentences of a text that are closest to its title."""

import random

from linnet_model.text_files import Pair
from linnet_model.train.extracts import closeness, content_words, extract, extracts

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
    assert extract(TEXT, TITLE, 1) == (
        "We counted owls in forty snowy forests for three whole winters."
    )


def test_several_sentences_keep_the_order_of_the_text():
    assert extract(TEXT, TITLE, 3) == (
        "We counted owls in forty snowy forests for three whole winters. "
        "Most owls hunted every single night of the winters that we saw. "
        "Our counts of owls are free for everybody to use and change."
    )


def test_texts_that_are_short_or_unlike_their_title_give_none():
    assert extract("Owls hunt in the forests of the north. They do so at night.", TITLE, 1) is None
    assert extract(TEXT, "Zebras", 1) is None


def test_a_third_of_the_rows_are_paragraphs_and_each_has_another_text():
    pairs = [Pair(f"{TEXT} Number {i} of them ends here today.", TITLE, "a") for i in range(30)]
    found = extracts(pairs, {"a": 1.0}, 12, random.Random(1))
    assert [row.domain for row in found] == ["sentences", "sentences", "paragraphs"] * 4
    assert len({row.source for row in found}) == 12
    assert all(sentence in row.source for row in found for sentence in row.target.split(". ")[:1])
    assert len(extracts(pairs, {"a": 1.0}, 100, random.Random(1))) == 30


def test_domains_with_a_larger_share_give_more_rows():
    pairs = [Pair(f"{TEXT} {i}", TITLE, "rare" if i % 2 else "often") for i in range(200)]
    sources = {pair.source: pair.domain for pair in pairs}
    found = extracts(pairs, {"rare": 0.25, "often": 4.0}, 60, random.Random(2))
    assert sum(sources[row.source] == "often" for row in found) > 45  # about 56 expected
