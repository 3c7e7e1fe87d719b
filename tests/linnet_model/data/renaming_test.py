"""Tests of replaced names, times and numbers."""

import random
import re

import pytest

from linnet_model.config import ConfigError, read_recipe
from linnet_model.data.augment import augmented, varied
from linnet_model.data.renaming import renamed, same_names, with_other_time
from linnet_model.data_config import DataConfig
from linnet_model.text_files import Pair


def test_replaces_name_on_both_sides():
    source, target = renamed("Tom saw 27 dogs.", "Tom sah 27 Hunde.", random.Random(1))
    name = source.split()[0]
    assert name != "Tom"
    assert source == f"{name} saw 27 dogs."
    assert target == f"{name} sah 27 Hunde."


def test_replaces_number_on_both_sides():
    source, target = renamed("I saw 27 dogs.", "Ich sah 27 Hunde.", random.Random(1))
    number = source.split()[2]
    assert number != "27"
    assert (source, target) == (f"I saw {number} dogs.", f"Ich sah {number} Hunde.")


def test_keeps_names_on_one_side_or_repeated():
    for pair in [
        ("Tom sleeps.", "Er schläft."),
        ("Tom saw Tom.", "Tom sah Tom."),
        ("It costs 3.50 now.", "Es kostet jetzt 3,50."),
        ("At 2:30 sharp.", "Um 2:30 genau."),
        ("It is 12 pm.", "Es ist 12 Uhr."),
        ("It is 1 pm.", "Es ist 14 Uhr."),
        ("From 2 pm to 3 pm.", "Von 14 Uhr bis 15 Uhr."),
        ("She paid 2.30 at 9.", "Sie zahlte um 9 Uhr 2,30."),
        ("The 5 of us", "Wir 5er"),
    ]:
        assert renamed(*pair, random.Random(1)) == pair


def test_replaced_name_keeps_its_ending():
    source, target = renamed("It is Tom's dog.", "Es ist Toms Hund.", random.Random(1))
    name = source.split()[2].removesuffix("'s")
    assert name != "Tom"
    assert target == f"Es ist {name}s Hund."


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Come at 2:30.", "Komm um 2.30 Uhr."),
        ("Come at 2:30.", "Komm um 14:30 Uhr."),
        ("Come at 3 p.m. today.", "Komm heute um 15 Uhr."),
        ("Come at 3:05 PM today.", "Komm heute um 15:05 Uhr."),
        ("Come at 8 o'clock.", "Komm um 8 Uhr."),
        ("Come at 16:00.", "Komm um 16:00 Uhr."),
    ],
)
def test_other_times_are_the_same_on_both_sides(english, german):
    def clock(text: str) -> tuple[str, int, int]:
        hour, minute = re.search(r"(\d+)(?:[:.](\d\d))?", text).groups()
        return re.sub(r"\d+(?:[:.]\d\d)?", "", text), int(hour), int(minute or 0)

    rng = random.Random(1)
    frame, hour, _ = clock(english)
    german_frame, german_hour, _ = clock(german)
    drawn = set()
    for _ in range(200):
        left, right = with_other_time(english, german, rng)
        new_frame, new_hour, minute = clock(left)
        assert new_frame == frame
        assert clock(right) == (german_frame, new_hour + german_hour - hour, minute)
        assert (new_hour < 12) == (hour < 12)
        drawn.add((new_hour, minute))
    assert len(drawn) >= 11


def test_times_are_replaced_in_both_directions():
    english, german = "Come at 2:30.", "Komm um 2.30 Uhr."
    forward = renamed(english, german, random.Random(1))
    assert forward != (english, german)
    assert renamed(german, english, random.Random(1)) == forward[::-1]


def test_translated_names_become_those_of_the_source():
    german, english = "Marias Hund sah Johannes.", "Mary's dog saw John."
    assert same_names(german, english) == "Maria's dog saw Johannes."
    assert same_names(english, german) == "Marys Hund sah John."
    for source, target in (
        ("Tom sah Maria.", "Tom saw Maria."),
        ("Mariana lacht.", "Mary laughs."),
    ):
        assert same_names(source, target) == target


def test_same_names_is_a_choice_of_the_recipe():
    def target(same: bool) -> str:
        config = DataConfig(folder="x", domains={"even": 1.0}, same_names=same)
        return varied("Maria lacht.", "Mary laughs.", config, random.Random(1))[1]

    assert (target(False), target(True)) == ("Mary laughs.", "Maria laughs.")


def test_same_names_of_other_languages_are_refused(recipe_file):
    french = 'bundle.target_language="fr"'
    with pytest.raises(
        ConfigError, match=r"same_names is true and .* en to fr: .* set it to false"
    ):
        read_recipe(recipe_file, ["data.same_names=true", french])
    assert not read_recipe(recipe_file, ["data.same_names=false", french]).data.same_names


@pytest.mark.parametrize("reverse", [False, True])
def test_a_tenth_of_the_facts_are_texts_with_other_times(reverse):
    timed = ("Come at 2:30.", "Komm um 2.30 Uhr.")
    pairs = [Pair(*(timed[::-1] if reverse else timed), "even"), Pair("a", "b", "even")] * 50
    config = DataConfig(folder="x", domains={"even": 1.0}, fact_share=0.5, reverse=reverse)
    facts = [pair for pair in augmented(pairs, config, seed=1) if pair.domain == "facts"]
    beginning = "Komm um" if reverse else "Come at"
    assert len(facts) == 50
    assert sum(pair.source.startswith(beginning) for pair in facts) == 5
