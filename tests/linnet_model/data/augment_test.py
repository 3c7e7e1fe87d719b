"""Tests of data augmentation: changes keep both sides of a pair consistent."""

import random
import re

from linnet_model.capitals import mark_capitals
from linnet_model.data.augment import (
    QUOTES,
    augmented,
    copied_pairs,
    joined_pairs,
    quoted,
    uppercased,
    varied,
    with_placeholders,
)
from linnet_model.data_config import DataConfig
from linnet_model.text_files import Pair


def test_placeholders_replace_shared_words_in_source_order():
    source, target = "Tom paid 30 euros in Kyoto.", "In Kyoto hat Tom 30 Euro bezahlt."
    rng = random.Random(3)
    pairs = {with_placeholders(source, target, "<ph7>", rng) for _ in range(200)}
    assert ("<ph0> paid <ph1> euros in <ph2>.", "In <ph2> hat <ph0> <ph1> Euro bezahlt.") in pairs
    assert ("Tom paid <ph0> euros in Kyoto.", "In Kyoto hat Tom <ph0> Euro bezahlt.") in pairs
    for left, right in pairs:
        inside = sorted(re.findall("<ph[0-9]>", left))
        assert inside == sorted(re.findall("<ph[0-9]>", right))
        assert inside == re.findall("<ph[0-9]>", left) == [f"<ph{n}>" for n in range(len(inside))]
    assert any(left.endswith(". <ph3>") and right.endswith(". <ph3>") for left, right in pairs)


def test_capitals_mark_is_never_a_placeholder():
    rng = random.Random(3)
    pairs = [with_placeholders("Tom and 30", "Tom und 30", "<ph0>", rng) for _ in range(50)]
    assert all("<ph0>" not in left + right for left, right in pairs)


def test_changes_full_stops_and_case_by_share():
    pair = ("A Dog runs.", "Ein Hund läuft.")
    stop = DataConfig(no_stop_share=1.0)
    assert varied(*pair, stop, random.Random(1)) == ("A Dog runs", "Ein Hund läuft")
    lower = DataConfig(lowercase_share=1.0)
    assert varied(*pair, lower, random.Random(1)) == ("a dog runs.", "Ein Hund läuft.")
    upper = DataConfig(uppercase_share=1.0)
    assert varied(*pair, upper, random.Random(1)) == ("A DOG RUNS.", "EIN HUND LÄUFT.")
    assert varied(*pair, DataConfig(), random.Random(1)) == pair


def test_capitals_beside_placeholders_are_marked_on_both_sides():
    """The server marks a text in capitals by the words beside the placeholders."""
    config = DataConfig(uppercase_share=1.0, placeholder_share=1.0, capitals_mark="<ph7>")
    rng, seen = random.Random(1), set()
    for pair in [
        ("Tom paid 30 euros.", "Tom hat 30 Euro bezahlt."),
        ("The USA won.", "Die USA gewannen."),
        ("USA wins", "USA gewinnt"),
    ]:
        for _ in range(100):
            source, target = varied(*pair, config, rng)
            read = mark_capitals(source, "<ph7>")
            assert read.startswith("<ph7>") == target.startswith("<ph7>"), (source, target)
            text = re.sub("<ph[0-9]>", "", read + target)
            assert read.startswith("<ph7>") or text.isupper()
            seen.add((source, read, target))
    for source, read, target in (
        (
            "TOM PAID <ph0> EUROS.",
            "<ph7> Tom paid <ph0> euros.",
            "<ph7> Tom hat <ph0> Euro bezahlt.",
        ),
        (
            "<ph0> PAID <ph1> EUROS.",
            "<ph7> <ph0> paid <ph1> euros.",
            "<ph7> <ph0> hat <ph1> Euro bezahlt.",
        ),
        ("<ph0> WINS", "<ph0> WINS", "<ph0> GEWINNT"),
    ):
        assert (source, read, target) in seen


def test_copied_rows_are_equal_pairs_and_differ():
    pairs = copied_pairs(200, random.Random(1))
    assert all(source == target and source.strip() for source, target in pairs)
    assert len({source for source, _ in pairs}) > 190


def test_quotes_match_language_and_close():
    rng = random.Random(5)
    pairs = {quoted("I am here.", "Ich bin hier.", rng) for _ in range(200)}
    assert ('"I am here."', "„Ich bin hier.“") in pairs
    assert ("“I am here,” said Tom.", "„Ich bin hier“, sagte Tom.") in pairs
    for source, target in pairs:
        marks = [m for m in QUOTES if m[0] == source[0] and m[1] in source[1:]]
        assert [target.count(m[2]) for m in marks] == [target.count(m[3]) for m in marks] == [1]
    asked = {quoted("Who is it?", "Wer ist das?", rng) for _ in range(200)}
    assert ('"Who is it?" asked Mary.', "„Wer ist das?“, fragte Mary.") in asked


def test_keeps_pair_that_has_quotation_marks():
    pair = ('He said "no".', "Er sagte „nein“.")
    assert quoted(*pair, random.Random(1)) == pair


def test_joins_sentences_of_a_domain_on_both_sides():
    talk = [Pair(f"I saw {n}.", f"Ich sah {n}.", "talk") for n in range(40)]
    manual = [Pair(f"Set {n}!", f"Setze {n}!", "manual") for n in range(40)]
    title = Pair("Table of contents", "Inhaltsverzeichnis", "talk")
    shares = {"talk": 3.0, "manual": 1.0}
    joined = joined_pairs([*talk, title, *manual], shares, 400, random.Random(1))
    assert len(joined) == 400
    assert {pair.domain for pair in joined} == {"joined"}
    for pair in joined:
        numbers = re.findall("[0-9]+", pair.source)
        assert 2 <= len(numbers) <= 4
        pattern = "Ich sah {}." if "saw" in pair.source else "Setze {}!"
        assert pair.target == " ".join(pattern.format(n) for n in numbers)
    talked = sum("saw" in pair.source for pair in joined)
    assert 270 < talked < 330  # 300 expected, standard deviation 8.7


def test_joins_sentences_as_their_language_does():
    pairs = [Pair(f"I see {n}.", f"我看到{n}。", "x") for n in range(9)]
    for pair in joined_pairs(pairs, {"x": 1.0}, 20, random.Random(1)):
        numbers = re.findall("[0-9]", pair.source)
        assert pair.source == " ".join(f"I see {n}." for n in numbers)
        assert pair.target == "".join(f"我看到{n}。" for n in numbers)
    others = [Pair("“あ。”", "「A。」", "x"), Pair("क।", "هل؟", "x")]
    joined = joined_pairs(others, {}, 50, random.Random(1))
    assert {"“あ。”क।", "क। “あ。”"} <= {pair.source for pair in joined}
    assert {"「A。」هل؟", "هل؟ 「A。」"} <= {pair.target for pair in joined}


def test_joins_nothing_where_no_row_is_a_sentence():
    titles = [Pair("Contents", "Inhalt", "x"), Pair("Done.", "Erledigt", "x")]
    assert joined_pairs(titles, {"x": 1.0}, 5, random.Random(1)) == []


def test_joined_rows_vary_as_a_whole():
    """A mark in the middle of a target, or two placeholders of one name, would have no meaning."""
    pairs = [Pair(f"I see {n}a dog.", f"Ich sehe {n}a dog.", "x") for n in range(20)]
    config = DataConfig(
        domains={"x": 1.0},
        join_share=1.0,
        uppercase_share=0.5,
        capitals_mark="<ph7>",
        placeholder_share=1.0,
    )
    joined = [pair for pair in augmented(pairs, config, seed=1) if pair.domain == "joined"]
    assert len(joined) == 20
    assert any("<ph7>" in pair.target for pair in joined)
    assert any("<ph1>" in pair.target for pair in joined)
    for pair in joined:
        assert "<ph7>" not in pair.target[1:]
        names = re.findall("<ph[0-6]>", pair.source)
        assert len(set(names)) == len(names)


def test_reverse_keeps_the_languages_apart():
    """Sources are German and targets are English: in quotation marks, in facts, and in case."""
    config = DataConfig(reverse=True, quote_share=1.0, fact_share=1.0, lowercase_share=1.0)
    pairs = augmented([Pair("Es ist Nacht.", "It is night.", "x")] * 40, config, seed=1)
    quotes = [pair for pair in pairs if pair.domain == "x"]
    assert all(pair.source[0] in "„‚" and pair.target[0] in '"“‘' for pair in quotes)
    assert all("es ist nacht" in pair.source and "It is night" in pair.target for pair in quotes)
    facts = [pair for pair in pairs if pair.domain == "facts"]
    assert any(" Der " in f" {pair.source}" for pair in facts)
    assert any(" The " in f" {pair.target}" for pair in facts)
    assert not any(" The " in f" {pair.source}" for pair in facts)


def test_placeholders_leave_out_the_mark_of_capitals():
    source = target = "Tom Kyoto 30 Boston"
    for mark in ("<ph0>", "<ph3>", "<ph7>"):
        for seed in range(50):
            left, right = with_placeholders(source, target, mark, random.Random(seed))
            assert left == right
            assert mark not in left


def test_target_in_capitals_gets_no_mark():
    assert uppercased("the dog barks", "der Hund bellt", "<ph7>") == (
        "THE DOG BARKS",
        "<ph7> der Hund bellt",
    )
    assert uppercased("THE DOG", "DER HUND", "<ph7>") == ("THE DOG", "DER HUND")
