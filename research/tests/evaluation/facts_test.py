"""Tests of the facts that a translation must carry over."""

import pytest

from linnet_research.evaluation import facts_german as german
from linnet_research.evaluation.fact import literal
from linnet_research.evaluation.facts import FORMS, Sentence, carried_over, made_up_sentences
from linnet_research.evaluation.facts_english import address, amount, date, name, number, time


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        (number(12500), "Es gibt 12.500 Bücher."),
        (number(12500), "Es gibt 12 500 Bücher"),
        (number(75), "Es waren 75."),
        (date(14, 3, 2026), "Das Treffen ist am 14. März 2026."),
        (date(4, 3, 2026), "am 04.03.2026"),
        (time(7, 0, afternoon=True), "um 19 Uhr"),
        (time(7, 0, afternoon=True), "um sieben Uhr abends"),
        (time(7, 0, afternoon=True), "um 7 Uhr abends am 3. Mai"),
        (time(7, 0, afternoon=True), "um 19:00 Uhr"),
        (time(7, 0, afternoon=True), "Es öffnet um 19 und schließt um 20 Uhr."),
        (time(7, 0, afternoon=True), "7 pm"),
        (time(7, 30, afternoon=True), "um 19:30 Uhr"),
        (time(7, 30, afternoon=False), "um 7.30 Uhr"),
        (amount(1250, euros=True), "Das kostet 1.250 Euro."),
        (amount(25, euros=True), "25,00 €"),
        (amount(25, euros=False), "$25"),
        (name("Anna", "Becker"), "Anna Beckers Hund"),
        (address(12, "Oak"), "in der Oak-Straße 12"),
        (address(12, "Oak"), "12 Oak Street"),
        (literal("a.b7@example.org"), "Schreiben Sie an a.b7@example.org."),
    ],
)
def test_forms_of_correct_german_count(fact, answer):
    assert fact.is_in(answer)


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        (number(12500), "Es gibt 12.50 Bücher."),
        (number(12500), "Es gibt 112.500 Bücher."),
        (number(12500), "Es gibt 12.500.000 Bücher."),
        (number(75), "Es waren 7,75."),
        (date(14, 3, 2026), "bis 2026"),
        (date(14, 3, 2026), "am 14. Mai 2026"),
        (time(7, 0, afternoon=False), "um 19 Uhr"),
        (time(7, 0, afternoon=True), "um 7 Uhr morgens"),
        (time(7, 0, afternoon=True), "um 19:30 Uhr"),
        (time(7, 0, afternoon=True), "um 19 Uhr 30"),
        (time(7, 0, afternoon=True), "um 17:19 Uhr"),
        (time(7, 0, afternoon=True), "am 19. Mai um 8 Uhr"),
        (time(7, 0, afternoon=True), "Das Konzert am 19 beginnt"),
        (time(7, 30, afternoon=True), "um 7 Uhr"),
        (amount(25, euros=True), "25 Dollar"),
        (amount(25, euros=True), "125 Euro"),
        (name("Anna", "Becker"), "Anna"),
        (address(12, "Oak"), "in der Oak-Straße 112"),
        (literal("a.b7@example.org"), "a.b77@example.org"),
    ],
)
def test_other_facts_do_not_count(fact, answer):
    assert not fact.is_in(answer)


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        (german.number(12500), "There are 12,500 books."),
        (german.number(12500), "12500 books"),
        (german.date(14, 3, 2026), "The meeting is on 14 March 2026."),
        (german.date(14, 3, 2026), "on March 14th, 2026"),
        (german.date(1, 5, 2001), "on the 1st of May 2001"),
        (german.time(7, 0, afternoon=True), "at 7 pm"),
        (german.time(7, 0, afternoon=True), "It opens at 7:00 p.m."),
        (german.time(7, 0, afternoon=True), "at 7 o'clock in the evening"),
        (german.time(7, 0, afternoon=True), "at 19:00"),
        (german.time(7, 30, afternoon=True), "at 7.30 p.m. on 3 May"),
        (german.time(7, 30, afternoon=False), "at 7:30"),
        (german.time(7, 0, afternoon=False), "opens at 7 and closes at 8 pm"),
        (german.time(7, 0, afternoon=False), "7 am"),
        (german.time(7, 0, afternoon=False), "at 7:00am"),
        (german.time(7, 15, afternoon=False), "at 7:15am"),
        (german.amount(1250, euros=False), "US$1,250"),
        (german.amount(1250, euros=True), "It costs €1,250."),
        (german.amount(25, euros=True), "25 euros"),
        (german.amount(25, euros=False), "$25.00"),
        (german.name("Anna", "Becker"), "Anna Becker's dog"),
        (german.address(12, "Garten"), "at 12 Garten Street"),
        (german.address(12, "Garten"), "in Gartenstraße 12"),
    ],
)
def test_forms_of_correct_english_count(fact, answer):
    assert fact.is_in(answer)


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        (german.number(12500), "There are 12.500 books."),
        (german.number(12500), "There are 12,50 books."),
        (german.number(75), "There were 75.7."),
        (german.date(14, 3, 2026), "on 14 May 2026"),
        (german.date(4, 3, 2026), "on 14 March 2026"),
        (german.time(7, 0, afternoon=True), "at 7"),
        (german.time(7, 0, afternoon=True), "at 7 am"),
        (german.time(7, 0, afternoon=True), "at 7:30 pm"),
        (german.time(7, 0, afternoon=False), "at 7 pm"),
        (german.time(7, 0, afternoon=False), "at 7:00pm"),
        (german.time(7, 15, afternoon=False), "at 7:15pm"),
        (german.time(7, 0, afternoon=False), "at 7:30"),
        (german.time(7, 0, afternoon=False), "at 7 in the evening"),
        (german.time(7, 30, afternoon=False), "at 7:30 p.m."),
        (german.amount(25, euros=True), "25 dollars"),
        (german.amount(25, euros=False), "$125"),
        (german.name("Anna", "Becker"), "Anna"),
        (german.address(12, "Garten"), "12 Station Street"),
    ],
)
def test_other_facts_do_not_count_in_english(fact, answer):
    assert not fact.is_in(answer)


@pytest.mark.parametrize("languages", FORMS, ids="-".join)
def test_sentences_are_repeatable_and_use_every_template(languages):
    templates = FORMS[languages].TEMPLATES
    sentences = made_up_sentences(len(templates), languages, seed=3)
    assert sentences == made_up_sentences(len(templates), languages, seed=3)
    for template, sentence in zip(templates, sentences, strict=True):
        assert len(sentence.facts) == template.count("{") > 0
        assert "{" not in sentence.text
    assert {fact.kind for it in sentences for fact in it.facts} == {
        "address",
        "amount",
        "date",
        "name",
        "number",
        "time",
    }


def test_shares_count_facts_and_whole_sentences():
    facts = (number(12), number(13))
    sentences = [Sentence("12 and 13", facts), Sentence("12 and 13", facts)]
    assert carried_over(sentences, ["12 und 13", "12 und 14"]) == {
        "sentences": 2,
        "all": 0.75,
        "whole_sentences": 0.5,
        "kinds": {"number": 0.75},
    }


def test_both_languages_have_the_same_facts_in_the_same_order():
    kinds = [
        [
            [fact.kind for fact in sorted(it.facts, key=lambda f: f.kind)]
            for it in made_up_sentences(20, pair)
        ]
        for pair in FORMS
    ]
    assert kinds[0] == kinds[1]
