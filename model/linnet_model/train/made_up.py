"""Random words, names, numbers and addresses, which a model learns to copy and not to recall."""

from __future__ import annotations

import random

ONSETS = [
    "b",
    "br",
    "d",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "v",
    "w",
    "z",
]
NUCLEI = ["a", "e", "i", "o", "u", "ei", "ou", "ä", "ö", "é"]
CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "ck", "nd", "x"]
ENDINGS = ["com", "org", "net", "de", "eu", "io", "example"]


def word(rng: random.Random, syllables: int) -> str:
    return "".join(
        rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS) for _ in range(syllables)
    )


def name(rng: random.Random) -> str:
    return word(rng, rng.randint(1, 3)).capitalize()


def address(rng: random.Random) -> str:
    host = f"{word(rng, 2)}.{rng.choice(ENDINGS)}"
    kind = rng.randrange(4)
    if kind == 0:
        return f"{word(rng, 1)}@{host}"
    if kind == 1:
        return host
    path = "/".join(word(rng, rng.randint(1, 2)) for _ in range(rng.randint(0, 3)))
    query = f"?{rng.choice('abcpqx')}={rng.randrange(1000)}" if rng.random() < 0.3 else ""
    start = rng.choice(["http://", "https://", "https://www."])
    return f"{start}{host}/{path}{query}"


def number(rng: random.Random) -> str:
    return str(rng.randrange(10 ** rng.randint(1, 6)))
