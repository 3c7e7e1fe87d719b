"""English sentences with facts, and the forms of correct German that carry a fact over; the English
form counts where German texts use it as well."""

from __future__ import annotations

from linnet_model.data.fact_pairs import MONTHS
from linnet_research.evaluation.fact import Fact

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
STREETS = ("Oak", "Mill", "Church", "Station", "Garden", "Park", "Queen", "Victoria")
HOURS = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf")


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
