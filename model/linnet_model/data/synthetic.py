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
# Common in one of the two languages or elsewhere. No name of linnet_research.evaluation.facts is
# here.
GIVEN_NAMES = """
Eva Sarah Lisa Sophie Clara Helen Mary Alice Jane Marie Irene Martha Susan Karin Monika Petra Rosa
Paul Michael Martin George Henry John James Max Felix Oscar Hugo Simon Stefan Walter Bruno Edward
Ahmed Fatima Olga Ivan Chen Aisha Diego Elena Pablo Nadia Omar Yuki Ingrid Lars Pierre Luca Giulia
Andreas Christian Daniel Markus Sebastian Alexander Johannes Jan Tobias Matthias Florian Philipp
Lukas Jonas Leon Finn Niklas Moritz Julian Julius Fabian Dennis Sven Uwe Jürgen Klaus Wolfgang
Günter Werner Helmut Dieter Manfred Gerhard Heinz Karl Hans Georg Ludwig Rainer Ralf Bernd Holger
Sabine Claudia Andrea Nicole Stefanie Christine Birgit Ute Ursula Renate Brigitte Gisela Heike
Katharina Johanna Charlotte Hannah Lena Lea Mia Luisa Juliane Juliette Nina Sandra Tanja Silke Anja
Antje Marion Marianne Margarete Elisabeth Marta Marina Marlene Mariana Ruth Hilde Frieda Greta Ida
William Richard Charles Joseph Christopher Matthew Anthony Mark Steven Andrew Joshua Kenneth Kevin
Brian Timothy Jason Ryan Jacob Nicholas Eric Jonathan Stephen Justin Scott Benjamin Samuel Gregory
Jack Jerry Tyler Aaron Adam Nathan Douglas Kyle Noah Ethan Jeremy Sean Austin Liam Oliver Harry
Patricia Jennifer Linda Elizabeth Barbara Jessica Karen Nancy Margaret Betty Sandy Ashley Dorothy
Kimberly Emily Donna Michelle Carol Amanda Melissa Deborah Stephanie Rebecca Sharon Cynthia Kathleen
Amy Angela Shirley Brenda Pamela Nicola Catherine Christina Samantha Rachel Carolyn Janet Heather
Mehmet Mustafa Ayşe Emre Leyla Mohammed Hassan Amina Khadija Ali Priya Raj Anil Sunita Wei Ling Hiro
Sakura Kenji Min Tran Nguyen Dmitri Svetlana Natalia Sergei Katarzyna Piotr Agnieszka Pavel Jana
Miloš Zoran Ana João Carlos Sofia Miguel Carmen José Lucía Mateo Camille Antoine Chloé Louis Élise
Matteo Chiara Francesca Giovanni Sanne Daan Björn Astrid Freja Mikkel Aino Eero Kofi Ama Thabo Zola
""".split()  # noqa: SIM905 - a literal would have a line for each


def word(rng: random.Random, syllables: int) -> str:
    return "".join(
        rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS) for _ in range(syllables)
    )


def name(rng: random.Random) -> str:
    return word(rng, rng.randint(1, 3)).capitalize()


def given_name(rng: random.Random) -> str:
    """Draws a common name or a made-up one."""
    return rng.choice(GIVEN_NAMES) if rng.random() < 0.5 else name(rng)


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
