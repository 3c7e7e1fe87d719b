"""Made-up English sentences with facts and their German translations, as training pairs.

Texts that may be trained on hold few amounts of money, dates with a year or times of day, and a
model that saw a number only a few times loses it. Every sentence here has one of our own frames,
with random values in the forms that each language writes. linnet_research.evaluation.facts measures
with other sentences, which are never trained on.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from linnet_model.data.synthetic import address, given_name, name, word
from linnet_model.texts import lines_of

# English and German; a slot has the same values on both sides.
FRAMES = tuple(tuple(line.split("\t")) for line in lines_of("facts-en-de"))
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
# The hours from one to twelve, as they are said.
HOURS = (
    ("one", "eins"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("nine", "neun"),
    ("ten", "zehn"),
    ("eleven", "elf"),
    ("twelve", "zwölf"),
)
CURRENCIES = (("$", "dollars", "Dollar"), ("€", "euros", "Euro"), ("£", "pounds", "Pfund"))
STREETS = ("Street", "Road", "Avenue", "Drive")
GERMAN_STREETS = ("straße", "straße", "straße", "allee", "gasse")  # "in der"
GERMAN_PLACES = ("weg", "platz", "ring", "hof", "markt")
# First parts of German streets, most of them words, which are not translated either. No street of
# linnet_research.evaluation.facts is here.
STREET_WORDS = """
Haupt Schul Berg Linden Wald Ring Goethe Schiller Dorf Wiesen Rosen Markt Brunnen Feld Birken
Schloss Bahn Post Hafen Kloster Sonnen See Ufer Acker Tal Kirchen Kastanien Buchen Tannen Ahorn
Erlen Ulmen Weiden Fichten Pappel Eschen Kiefern Flieder Tulpen Nelken Veilchen Lilien Dahlien Mühl
Burg Turm Tor Rathaus Friedhof Spital Krankenhaus Bäcker Metzger Schmiede Weber Gerber Töpfer Färber
Müller Fischer Jäger Schäfer Bauern Bürger Herren Kaiser König Prinzen Fürsten Grafen Ritter Bischof
Mönch Nonnen Engel Kreuz Kapellen Marien Johannis Martins Nikolai Peters Jakobs Sankt-Anna Mozart
Beethoven Bach Schubert Wagner Lessing Heine Kant Hegel Luther Humboldt Bismarck Einstein Röntgen
Siemens Daimler Zeppelin Adler Falken Amsel Drossel Finken Lerchen Meisen Schwalben Storchen Hirsch
Reh Hasen Fuchs Wolfs Bären Rössle Lamm Ochsen Brücken Fluss Rhein Elbe Donau Main Mosel Berliner
Hamburger Münchner Kölner Bremer Dresdner Leipziger Stuttgarter Frankfurter Wiener Pariser Nord Süd
Ost West Ober Unter Mittel Neue Alte Lange Kurze Hohe Grüne Breite Stein Sand Kies Lehm Kalk Hügel
Höhen Hang Wein Obst Apfel Kirsch Pflaumen Nuss Hopfen Gersten Korn Heide Moor Teich Quellen
Industrie Gewerbe Fabrik Werk Zoll Hütten Gruben Sport Turn Stadion Theater Museums Bibliothek
""".split()  # noqa: SIM905 - a literal would have a line for each
OFTEN = 20
OWN_ADDRESS = 0.6  # share of the addresses of e-mail that hold the name in the sentence
NOUN = re.compile(r"(?<=[a-zäöüß,] )[A-ZÄÖÜ][a-zäöüß]{3,9}\b")
Value = tuple[str, str]


def same(text: str) -> Value:
    return text, text


def number(rng: random.Random) -> Value:
    value = rng.randrange(2, 10 ** rng.randint(2, 6))
    if value >= 1000 and rng.random() < 0.8:
        return f"{value:,}", f"{value:,}".replace(",", ".")
    return same(str(value))


def decimal(rng: random.Random) -> Value:
    text = f"{rng.randrange(100)}.{rng.randrange(10)}"
    return text, text.replace(".", ",")


def percent(rng: random.Random) -> Value:
    english, german = decimal(rng) if rng.random() < 0.3 else same(str(rng.randrange(2, 100)))
    return f"{english}%", f"{german} %"


def date(rng: random.Random) -> Value:
    day, year = rng.randint(1, 28), rng.randint(1900, 2050)
    english, german = rng.choice(MONTHS)
    forms = (f"{day} {english} {year}", f"{english} {day}, {year}", f"{day} {english}")
    form = rng.choice(forms)
    return form, f"{day}. {german}" + (f" {year}" if str(year) in form else "")


def time(rng: random.Random) -> Value:
    hour, minute = rng.randint(1, 12), rng.choice((0, 0, 0, 5, 10, 15, 20, 30, 40, 45, 55))
    afternoon = rng.random() < 0.5
    english = f"{hour}:{minute:02}" if minute else f"{hour}"
    german = hour % 12 + 12 * afternoon
    return (
        f"{english} {'pm' if afternoon else 'am'}",
        f"{german}:{minute:02} Uhr" if minute else f"{german} Uhr",
    )


def clock(rng: random.Random) -> Value:
    """A time in words: "half past nine" is "halb zehn"."""
    at = rng.randrange(12)
    (hour, german), (_, following) = HOURS[at], HOURS[(at + 1) % 12]
    return rng.choice(
        (
            (f"half past {hour}", f"halb {following}"),
            (f"half past {hour}", f"halb {following}"),
            (f"a quarter past {hour}", f"Viertel nach {german}"),
            (f"a quarter to {hour}", f"Viertel vor {german}"),
            (f"{hour} o'clock", f"{'ein' if german == 'eins' else german} Uhr"),
        )
    )


def amount(rng: random.Random) -> Value:
    sign, plural, german = rng.choice(CURRENCIES)
    if rng.random() < 0.2:
        text = f"{rng.randrange(2, 100)}.{rng.randrange(100):02}"
        target = text.replace(".", ",")
    else:
        text, target = number(rng)
    return (f"{sign}{text}" if rng.random() < 0.75 else f"{text} {plural}"), f"{target} {german}"


def person(rng: random.Random) -> Value:
    return same(f"{given_name(rng)} {name(rng)}" if rng.random() < 0.7 else given_name(rng))


def email(rng: random.Random, owner: str = "") -> Value:
    """An address of e-mail; that of `owner` holds the name, as most do."""
    digits = str(rng.randrange(100)) if rng.random() < 0.5 else ""
    box = owner.lower().replace(" ", ".") or f"{given_name(rng).lower()}.{word(rng, 2)}"
    return same(f"{box}{digits}@{word(rng, 2)}.{rng.choice(('com', 'org', 'de'))}")


def street(rng: random.Random, nouns: Sequence[str], german: Sequence[str]) -> Value:
    number = rng.randrange(1, 300)
    if rng.random() < 0.3:
        return same(f"{number} {name(rng)} {rng.choice(STREETS)}")
    kind = rng.random()
    first = (
        name(rng)
        if kind < 0.3
        else rng.choice(STREET_WORDS if kind < 0.6 else nouns or STREET_WORDS)
    )
    return same(f"{first}{rng.choice(german)} {number}")


def german_nouns(texts: Iterable[str]) -> list[str]:
    """Returns the words that German texts often write with a capital within a sentence, each once:
    nouns, whose translations a model knows best, but not where a street is named after one."""
    counts = Counter(noun for text in texts for noun in NOUN.findall(text))
    return sorted(noun for noun, count in counts.items() if count >= OFTEN)


SLOTS: dict[str, Callable[[random.Random], Value]] = {
    "amount": amount,
    "clock": clock,
    "count": number,
    "date": date,
    "decimal": decimal,
    "email": email,
    "later": time,
    "name": person,
    "number": number,
    "percent": percent,
    "person": person,
    "price": amount,
    "time": time,
    "url": lambda rng: same(address(rng)),
    "year": lambda rng: same(str(rng.randint(1900, 2050))),
}


def fact_pairs(count: int, rng: random.Random, nouns: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Makes sentences, English and German. `nouns` are German; streets are named after some."""
    slots = SLOTS | {
        "street": lambda rng: street(rng, nouns, GERMAN_STREETS),
        "place": lambda rng: street(rng, nouns, GERMAN_STREETS + GERMAN_PLACES),
    }
    pairs = []
    for _ in range(count):
        source, target = rng.choice(FRAMES)
        values = {slot: slots[slot](rng) for slot in re.findall(r"{(\w+)}", source)}
        owner, _ = values.get("person") or values.get("name") or same("")
        if "email" in values and owner.isascii() and rng.random() < OWN_ADDRESS:
            values["email"] = email(rng, owner)
        pairs.append(
            (
                source.format(**{slot: value[0] for slot, value in values.items()}),
                target.format(**{slot: value[1] for slot, value in values.items()}),
            )
        )
    return pairs
