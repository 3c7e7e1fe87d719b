"""Made-up English sentences with facts, and whether a German translation carries the facts over.

BLEU hardly notices a wrong number. Each of 20 templates holds one or two facts: a number, a date, a
time, an amount of money, a name or an address, with random values. The forms that count as carried
over are those of correct German, and the English form where German texts use it as well.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

TEMPLATES = (
    "The meeting has been moved to {date}.",
    "Please book a table for four people tomorrow at {time}.",
    "The invoice of {amount} is due on {date}.",
    "{name} lives at {address}.",
    "The library has {number} books.",
    "Our office opens at {time} and closes at {later}.",
    "You can reach {name} at {email}.",
    "The ticket costs {amount} for adults.",
    "On {date}, {number} people visited the museum.",
    "The train to Hamburg leaves at {time}.",
    "{name} was born on {date}.",
    "I paid {amount} for this bicycle.",
    "The factory made {number} cars last year.",
    "Send the parcel to {address}, please.",
    "{name} won the race in {number} seconds.",
    "The file is {number} bytes long, see {url}.",
    "The concert on {date} begins at {time}.",
    "{name} owes me {amount}.",
    "There are {number} students and {count} teachers at our school.",
    "For questions, write to {email} before {date}.",
)
MONTHS = (
    ("January", "Januar"),
    ("February", "Februar"),
    ("March", "März"),
    ("April", "April"),
    ("May", "Mai"),
    ("June", "Juni"),
    ("July", "Juli"),
    ("August", "August"),
    ("September", "September"),
    ("October", "Oktober"),
    ("November", "November"),
    ("December", "Dezember"),
)
FIRST = ("Anna", "Peter", "Maria", "Thomas", "Laura", "David", "Emma", "Robert", "Julia", "Frank")
LAST = ("Becker", "Miller", "Novak", "Jensen", "Rossi", "Taylor", "Schmitt", "Carter", "Lindgren")
STREETS = ("Oak", "Mill", "Church", "Station", "Garden", "Park", "Queen", "Victoria")
HOURS = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf")


@dataclass(frozen=True)
class Fact:
    kind: str  # number, date, time, amount, name or address
    text: str  # as in the English sentence
    german: str  # a regular expression for the forms that carry it over

    def is_in(self, answer: str) -> bool:
        return re.search(rf"(?<![\w.,:]){self.german}(?![\w])(?![.,]\d)", answer) is not None


@dataclass(frozen=True)
class Sentence:
    text: str
    facts: tuple[Fact, ...]


def digits(number: int) -> str:
    """A pattern for a number with or without marks of thousands."""
    return r"[.,\s]?".join(f"{number:,}".split(","))


def number(value: int) -> Fact:
    return Fact("number", f"{value:,}", digits(value))


def date(day: int, month: int, year: int) -> Fact:
    english, german = MONTHS[month - 1]
    months = rf"(?:{german}|0?{month}\.)"
    return Fact("date", f"{day} {english} {year}", rf"0?{day}\.\s?{months}\s?{year}")


def time(hour: int, minute: int, afternoon: bool) -> Fact:
    """An hour of 1 to 11 on the clock of twelve hours. An hour needs "um" before it or "Uhr" or
    "pm" behind it, or it may be the day of a date. Other minutes, or the other half of the day in
    words, are another time."""
    english = f"{hour}:{minute:02}" if minute else f"{hour}"
    hours = rf"(?:0?{hour}|{hour + 12})" if afternoon else rf"0?{hour}"
    half = "pm" if afternoon else "am"
    other = "morgens|am Morgen|vormittags" if afternoon else "nachmittags|abends|am Abend"
    if minute:
        form = rf"{hours}[:.]{minute:02}"
    else:
        unit = rf"(?:[:.]00|\s?Uhr(?!\s?\d)|\s?{half})"
        form = rf"(?:{hours}{unit}|um {hours}(?!\.\s?\w|\s?Uhr)|{HOURS[hour - 1]} Uhr)"
    return Fact("time", f"{english} {half}", rf"{form}(?!:\d)(?!(?:\s?Uhr)?\s(?:{other})\b)")


def amount(value: int, euros: bool) -> Fact:
    sign, names = ("€", "Euro|EUR|€") if euros else ("$", r"US-Dollar|Dollar|USD|\$")
    behind = rf"{digits(value)}(?:,00|,-)?\s?(?:{names})"
    return Fact("amount", f"{sign}{value:,}", rf"(?:{behind}|(?:{names})\s?{digits(value)})")


def name(first: str, last: str) -> Fact:
    return Fact("name", f"{first} {last}", rf"{first} {last}s?")


def address(building: int, street: str) -> Fact:
    streets = rf"{street}[ -](?:Street|Straße|Strasse)"
    forms = rf"(?:{building},? {streets}|{streets},? {building})"
    return Fact("address", f"{building} {street} Street", forms)


def literal(text: str) -> Fact:
    return Fact("address", text, re.escape(text))


def made_up_sentences(count: int, seed: int = 1) -> list[Sentence]:
    """`count` sentences, the templates in turn. The same for the same count and seed."""
    rng = random.Random(seed)
    found = []
    for at in range(count):
        first, last, hour = rng.choice(FIRST), rng.choice(LAST), rng.randint(1, 10)
        values = {
            "amount": amount(rng.choice((5, 18, 25, 49, 120, 350, 1250, 2400)), rng.random() < 0.5),
            "address": address(rng.randint(2, 199), rng.choice(STREETS)),
            "count": number(rng.randint(13, 99)),
            "date": date(rng.randint(1, 28), rng.randint(1, 12), rng.randint(1990, 2035)),
            "email": literal(f"{first}.{last}{rng.randint(1, 99)}@example.org".lower()),
            "later": time(hour + 1, 0, afternoon=True),
            "name": name(first, last),
            "number": number(rng.randint(13, 99999)),
            "time": time(hour, rng.choice((0, 0, 15, 30, 45)), rng.random() < 0.5),
            "url": literal(f"https://example.org/{last.lower()}/{rng.randint(1, 999)}"),
        }
        template = TEMPLATES[at % len(TEMPLATES)]
        facts = {key: values[key] for key in re.findall(r"{(\w+)}", template)}
        text = template.format(**{key: fact.text for key, fact in facts.items()})
        found.append(Sentence(text, tuple(facts.values())))
    return found


def carried_over(sentences: list[Sentence], answers: list[str]) -> dict[str, Any]:
    """The share of facts that the answers carry over, per kind and of all, and of the sentences all
    of whose facts are."""
    found: Counter[str] = Counter()
    of: Counter[str] = Counter()
    whole = 0
    for sentence, answer in zip(sentences, answers, strict=True):
        kept = [fact.is_in(answer) for fact in sentence.facts]
        whole += all(kept)
        for fact, is_kept in zip(sentence.facts, kept, strict=True):
            found[fact.kind] += is_kept
            of[fact.kind] += 1
    return {
        "sentences": len(sentences),
        "all": found.total() / of.total(),
        "whole_sentences": whole / len(sentences),
        "kinds": {kind: found[kind] / of[kind] for kind in sorted(of)},
    }
