"""German sentences with facts, and the forms of correct English that carry a fact over; the German
form of a street or a time counts as well, where English texts keep it."""

from __future__ import annotations

from linnet_model.data.fact_pairs import MONTHS
from linnet_research.evaluation.fact import Fact

TEMPLATES = (
    "Die Besprechung wurde auf den {date} verschoben.",
    "Bitte reservieren Sie für morgen um {time} einen Tisch für vier Personen.",
    "Die Rechnung über {amount} ist am {date} fällig.",
    "{name} wohnt in der {address}.",
    "Die Bibliothek hat {number} Bücher.",
    "Unser Büro öffnet um {time} und schließt um {later}.",
    "Sie erreichen {name} unter {email}.",
    "Die Eintrittskarte kostet für Erwachsene {amount}.",
    "Am {date} besuchten {number} Menschen das Museum.",
    "Der Zug nach Hamburg fährt um {time}.",
    "{name} wurde am {date} geboren.",
    "Ich habe für dieses Fahrrad {amount} bezahlt.",
    "Die Fabrik hat im letzten Jahr {number} Autos hergestellt.",
    "Schicken Sie das Paket bitte in die {address}.",
    "{name} hat das Rennen in {number} Sekunden gewonnen.",
    "Die Datei ist {number} Bytes groß, siehe {url}.",
    "Das Konzert am {date} beginnt um {time}.",
    "{name} schuldet mir {amount}.",
    "An unserer Schule gibt es {number} Schüler und {count} Lehrer.",
    "Bei Fragen schreiben Sie vor dem {date} an {email}.",
)
STREETS = ("Eichen", "Mühlen", "Kirch", "Bahnhof", "Garten", "Park", "Königin", "Victoria")


def digits(number: int) -> str:
    """A pattern for a number with or without marks of thousands. A point would mark decimals."""
    return r"[,\s]?".join(f"{number:,}".split(","))


def grouped(value: int) -> str:
    return f"{value:,}".replace(",", ".")


def number(value: int) -> Fact:
    return Fact("number", grouped(value), digits(value))


def date(day: int, month: int, year: int) -> Fact:
    english, german = MONTHS[month - 1]
    days = rf"0?{day}(?:st|nd|rd|th)?"
    forms = rf"(?:{days}(?: of)? {english}|{english} {days}),? {year}"
    return Fact("date", f"{day}. {german} {year}", forms)


def time(hour: int, minute: int, afternoon: bool) -> Fact:
    """An hour of 1 to 11 on the clock of twelve hours, with the half of the day. German has the
    clock of 24 hours, so that in the afternoon an English hour needs "pm" or an evening, and in the
    morning neither may be there. An hour needs "at", "o'clock" or the half of the day, or it may be
    another number."""
    half, other = (r"a\.?m\b\.?", r"p\.?m\b\.?")[:: -1 if afternoon else 1]
    late = r"in the (?:afternoon|evening)|tonight|at night"
    minutes = rf"[:.]{minute:02}"
    clock = rf"{hour}{minutes}" if minute else rf"{hour}(?:[:.]00)?(?: o'clock)?"
    if afternoon:
        forms = rf"(?:{clock} ?(?:{half}|{late})|{hour + 12}{minutes})"
    elif minute:
        forms = rf"0?{clock}(?: ?{half})?(?! ?(?:{other}|{late}))"
    else:
        marked = rf"{hour}(?:[:.]00(?: ?{half})?| ?{half}| o'clock| in the morning)"
        forms = rf"(?:0?{marked}|at {hour}(?![:.]?\d))(?! ?(?:{other}|{late}))"
    german = (
        f"{hour + 12 * afternoon}:{minute:02} Uhr" if minute else f"{hour + 12 * afternoon} Uhr"
    )
    return Fact("time", german, forms)


def amount(value: int, euros: bool) -> Fact:
    name, names = (
        ("Euro", "euros?|EUR|€") if euros else ("Dollar", r"(?:US )?dollars?|USD|(?:US)?\$")
    )
    forms = rf"(?:{digits(value)}(?:\.00)? ?(?:{names})|(?:{names}) ?{digits(value)}(?:\.00)?)"
    return Fact("amount", f"{grouped(value)} {name}", forms)


def name(first: str, last: str) -> Fact:
    return Fact("name", f"{first} {last}", rf"{first} {last}(?:'s)?")


def address(building: int, street: str) -> Fact:
    streets = rf"{street}(?:stra(?:ß|ss)e| Street)"
    forms = rf"(?:{building},? {streets}|{streets},? {building})"
    return Fact("address", f"{street}straße {building}", forms)
