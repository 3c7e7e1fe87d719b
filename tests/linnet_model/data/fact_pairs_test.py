"""Tests of made-up training pairs with facts."""

import random
import re

import pytest

from linnet_model.config import ConfigError, read_recipe
from linnet_model.data.augment import augmented
from linnet_model.data.fact_pairs import (
    FRAMES,
    SLOTS,
    amount,
    clock,
    date,
    fact_pairs,
    german_nouns,
    number,
    time,
)
from linnet_model.data_config import DataConfig
from linnet_model.text_files import Pair


def slots(frame: str) -> list[str]:
    return sorted(re.findall(r"{(\w+)}", frame))


def values(draw, count=2000) -> dict[str, str]:
    rng = random.Random(1)
    return dict(draw(rng) for _ in range(count))


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame[0][:30])
def test_both_sides_have_the_same_slots(frame):
    assert slots(frame[0]) == slots(frame[1])
    assert set(slots(frame[0])) <= {*SLOTS, "street", "place"}


def test_numbers_have_the_marks_of_their_language():
    found = values(number)
    assert all(german == english.replace(",", ".") for english, german in found.items())
    assert any("," in english for english in found)


def test_times_of_the_afternoon_are_those_of_24_hours():
    found = values(time)
    assert found["7 pm"] == "19 Uhr"
    assert found["7 am"] == "7 Uhr"
    assert found["12 am"] == "0 Uhr"
    assert found["12 pm"] == "12 Uhr"
    assert found["11:45 pm"] == "23:45 Uhr"


def test_times_in_words_are_those_of_the_language():
    found = values(clock)
    assert found["half past nine"] == "halb zehn"
    assert found["half past twelve"] == "halb eins"
    assert found["a quarter to one"] == "Viertel vor eins"
    assert found["one o'clock"] == "ein Uhr"
    assert len(found) == 48


def test_dates_keep_day_month_and_year():
    for english, german in values(date).items():
        assert sorted(re.findall(r"\d+", english)) == sorted(re.findall(r"\d+", german))
        assert re.fullmatch(r"\d+\. \w+( \d{4})?", german)


def test_amounts_name_their_currency():
    names = {"$": "Dollar", "dollars": "Dollar", "€": "Euro", "euros": "Euro"}
    names |= {"£": "Pfund", "pounds": "Pfund"}
    for english, german in values(amount).items():
        sign = next(sign for sign in names if sign in english)
        assert german.endswith(f" {names[sign]}")


def test_streets_are_named_after_nouns_of_the_texts_and_stay():
    often = ["Er sah den Garten, das Haus und Tom."] * 20
    nouns = german_nouns([*often, "Garten ohne Ende", "ein Regenschirm", "Die Katze schläft."])
    assert nouns == ["Garten", "Haus"]
    pairs = fact_pairs(2000, random.Random(1), nouns)
    found = [pair for pair in pairs if "Gartenstraße" in pair[1]]
    assert found
    assert all("Gartenstraße" in english for english, _ in found)


def test_addresses_of_email_often_hold_the_name_in_the_sentence():
    rows = fact_pairs(4000, random.Random(1))
    found = [re.match(r"Write to ([A-Za-z ]+) at ([^@]+)@", english) for english, _ in rows]
    owners = [match for match in found if match]
    own = [match for match in owners if match[2].startswith(match[1].lower().replace(" ", "."))]
    assert len(owners) / 3 < len(own) < len(owners)
    assert all(
        re.findall(r"\S+@", english) == re.findall(r"\S+@", german) for english, german in rows
    )


def test_pairs_are_repeatable():
    assert fact_pairs(20, random.Random(4)) == fact_pairs(20, random.Random(4))


def test_share_of_rows_is_added():
    pairs = [Pair("a", "b", "even")] * 100
    config = DataConfig(folder="x", domains={"even": 1.0}, fact_share=0.1)
    added = [pair for pair in augmented(pairs, config, seed=1) if pair.domain == "facts"]
    assert len(added) == 10


def test_other_languages_are_refused(recipe_file):
    with pytest.raises(ConfigError, match="are English to German, or with"):
        read_recipe(recipe_file, ["data.fact_share=0.1", 'bundle.target_language="fr"'])
