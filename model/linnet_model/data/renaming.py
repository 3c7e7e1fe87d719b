"""Replaces the names, times and numbers of training pairs, so that a model carries over any of
them, not only those that its texts have.
"""

from __future__ import annotations

import random
import re

from linnet_model.data.synthetic import given_name, number

# Given names common in the everyday sentences; a name is replaced only if both sides have it.
NAME = re.compile(
    r"\b(Tom|Mary|Maria|John|Bill|Jack|Bob|Jim|Alice|Jane|Mike|Ken|Nancy|Paul|Peter|Marie|Boston|Kyoto)\b"
)
NUMBER = re.compile(
    r"(?<![\w.,:])\d{1,4}(?![\w.,:]\d|\w| ?[ap]\.?m\b| o'clock| Uhr)", re.IGNORECASE
)
# Names that translators between English and German put into the other language.
TRANSLATED_NAMES = (("Mary", "Maria"), ("Mary", "Marie"), ("John", "Johannes"), ("Tom", "Thomas"))
# Hour, minutes, and what follows: 7 pm, 7:30, 7 o'clock; 19 Uhr, 7.30 Uhr.
ENGLISH_TIME = re.compile(
    r"(?<![\w.,:$€£-])(\d{1,2})(?:[:.]([0-5]\d))?( ?[ap]\.?m\b\.?| o'clock)?(?![:.,]?\d|[\w%])",
    re.IGNORECASE,
)
GERMAN_TIME = re.compile(r"(?<![\w.,:-])(\d{1,2})(?:([:.])([0-5]\d))? Uhr\b")
MINUTES = (0, 0, *range(5, 60, 5), 15, 30, 45, 12, 27, 38)


def same_names(source: str, target: str) -> str:
    """Returns the target with the names of the source where a translator has put them into the
    other language; a name may have an ending ("Marias")."""
    for names in TRANSLATED_NAMES:
        for name, translated in (names, names[::-1]):
            whole = re.compile(rf"\b{name}(?=s?\b)")
            if whole.search(source) and not whole.search(target):
                target = re.sub(rf"\b{translated}(?=s?\b)", name, target)
    return target


def renamed(source: str, target: str, rng: random.Random) -> tuple[str, str]:
    """Replaces a name, time of day or number that occurs exactly once on both sides by a random
    one. In the target a name may have an ending ("Toms"), but 1 is not the number in 13. A time is
    replaced in an English and a German text."""
    for found in NAME.findall(source):
        if source.count(found) == 1 == target.count(found):
            new = given_name(rng)
            return source.replace(found, new), target.replace(found, new)
    if has_time(source, target):
        return with_other_time(source, target, rng)
    if has_time(target, source):
        target, source = with_other_time(target, source, rng)
        return source, target
    numbers = NUMBER.findall(target)
    for found in NUMBER.findall(source):
        if found in numbers and source.count(found) == 1 == target.count(found):
            new = number(rng)
            return source.replace(found, new), target.replace(found, new)
    return source, target


def times(english: str, german: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """Finds the only time of day of an English text, and of its German translation."""
    found = [m for m in ENGLISH_TIME.finditer(english) if m[2] is not None or m[3] is not None]
    found_german = list(GERMAN_TIME.finditer(german))
    if len(found) != 1 or len(found_german) != 1:
        return None
    time, german_time = found[0], found_german[0]
    hour, german_hour = int(time[1]), int(german_time[1])
    same = german_hour - hour in (0, 12) and int(time[2] or 0) == int(german_time[3] or 0)
    # Twelve o'clock is am or pm by other rules.
    return (time, german_time) if same and hour % 12 != 0 else None


def has_time(english: str, german: str) -> bool:
    return times(english, german) is not None


def with_other_time(english: str, german: str, rng: random.Random) -> tuple[str, str]:
    """Returns both texts with another time of the same half of the day. Requires has_time."""
    found = times(english, german)
    assert found is not None
    time, german_time = found
    later = int(german_time[1]) - int(time[1])  # 12 for 2:30 pm and 14:30 Uhr
    hour = rng.randint(1, 11) if int(time[1]) < 12 else rng.randint(13, 23)
    suffix = time[3] or ""
    full_hour = suffix.lower() == " o'clock"
    minute = 0 if full_hour else rng.choice(MINUTES)
    short = minute == 0 and (full_hour or german_time[3] is None or rng.random() < 0.5)
    new = f"{hour}{suffix}" if short and suffix else f"{hour}:{minute:02}{suffix}"
    mark = german_time[2] or rng.choice(":.")
    new_german = f"{hour + later} Uhr" if short else f"{hour + later}{mark}{minute:02} Uhr"
    return (
        english[: time.start()] + new + english[time.end() :],
        german[: german_time.start()] + new_german + german[german_time.end() :],
    )
