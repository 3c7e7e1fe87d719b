"""python -m linnet_model.train.messages: makes up messages with summaries of them.

There are hardly any mails, minutes, news or notices with summaries that may be passed on. Half of
these rows are made of the parts in texts/messages.toml: what matters, details of it, and talk that
can be left out. The other half are made of sentences of en-de, which have more words, but do not
belong together: everyday ones of train.tsv.xz and of english.tsv (linnet_model.train.tatoeba), of
which some ask for something or tell of an event, and those of debates in english_debates.tsv
(linnet_model.train.debates). The rows go to summarize/messages.tsv of the data folder, in the
domains

  message_title, message_sentence, message_paragraph

None has a sentence of the tests or of the validation of en-de. Tests of these domains go beside
them: the messages of texts/summaries-en.txt, written one by one with their summaries.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.data_config import STYLES
from linnet_model.sentences import END
from linnet_model.text_files import Pair, read_pairs
from linnet_model.texts import FOLDER, lines_of
from linnet_model.train.diversify import write_rows
from linnet_model.train.kept_back import folded, kept_back
from linnet_model.train.made_up import given_name

SEED = 1
WORDS = {  # of the sentences that are used, by domain
    "tatoeba": range(4, 19),
    "tatoeba_english": range(4, 19),
    "europarl_english": range(8, 31),
}
FEWEST = 10  # sentences of each kind
LONG = 6  # sentences; the paragraph of so long a message has three, else two
# Who reads a message wants to know what it asks for, what happened, and when, how many or how much.
REQUEST = re.compile(
    r"^(?:Please|Could you|Can you|Would you mind|Don't forget|Make sure|Let me know|Remember to|"
    r"(?:I|We) need|You (?:need to|must|have to|should)|We (?:must|have to|should)|"
    r"I'd like (?:you to|to (?:order|book|buy|cancel|return|reserve|rent)))\b"
)
EVENT = re.compile(
    r"\b(?:cancel+ed|postponed|delayed|arrested|approved|elected|resigned|decided to|sold out|"
    r"out of order|has been (?:closed|changed|stolen|moved|found)|will be (?:closed|held|late)|"
    r"accident|hospital|injured|wounded|killed|died|burglar|fire broke|stole|stolen|earthquake|"
    r"got (?:married|fired|hired|divorced)|(?:won|lost) the|for sale|broke (?:his|her|my|down)|"
    r"doesn't work|isn't working|don't work)\b"
)
FIGURE = re.compile(
    r"\d|o'clock|tomorrow|on (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|next (?:week|month|year)"
)
POLITE = re.compile(
    r"^(?:Please,? |(?:Could|Can) you (?:please )?|Don't forget to |Make sure (?:to |that )?|"
    r"Remember to |You (?:must|have to|need to|should) |We (?:must|have to|should) |"
    r"I'd like (?:you )?to )",
)
# A clause that a title can do without, where enough of the sentence is before it.
CLAUSE = re.compile(
    r",? (?:because|so|since|although|if|when|before|after|while|until|which|who) .*|[,:;] .*"
)
MIN_TITLE_WORDS, MAX_TITLE_WORDS = 3, 9


class Sentences(NamedTuple):
    """Single sentences: everyday ones of three kinds that matter to a reader, other everyday ones,
    and those of debates."""

    requests: list[str]
    events: list[str]
    figures: list[str]
    others: list[str]
    formal: list[str]


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def headline(sentence: str) -> str:
    """Returns a request without its politeness, or another sentence, without a full stop and, where
    enough is left, without its clauses. Empty if that is too long for a title."""
    asked = POLITE.sub("", sentence).rstrip(".?!")
    short = CLAUSE.sub("", asked)
    title = short if len(short.split()) >= MIN_TITLE_WORDS else asked
    return upper_first(title) if len(title.split()) <= MAX_TITLE_WORDS else ""


def slots(text: str) -> set[str]:
    return {slot.lower() for slot in re.findall(r"{(\w+)}", text)}


class Parts:
    """The parts that messages are made of."""

    def __init__(self, path: Path = FOLDER / "messages.toml") -> None:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        self.slots: dict[str, list[str]] = read.pop("slots")
        self.matters: list[dict[str, Any]] = read.pop("matter")
        self.kinds: dict[str, dict[str, list[str]]] = read

    def filler(self, rng: random.Random) -> Callable[[str], str]:
        """Returns a function that fills the slots of one message; {Slot} begins with a capital."""
        words = {name: rng.choice(choices) for name, choices in self.slots.items()}
        words |= {name: given_name(rng) for name in ("who", "who2", "who3")}
        words |= {"digit": str(rng.randint(2, 9)), "number": str(rng.randrange(1000, 10**6))}
        words |= {name.capitalize(): upper_first(word) for name, word in words.items()}

        def fill(text: str) -> str:
            filled = text.format_map(words)
            return filled if filled.endswith(",") else upper_first(filled)

        return fill


def assembled(kind: str, lines: dict[str, list[str]], body: list[str], rng: random.Random) -> str:
    """Returns the message: an opening, the body and a closing, as one line of text."""
    opening, closing = rng.choice(lines["open"]), rng.choice(lines["close"])
    if kind == "minutes" and rng.random() < 0.5:  # a list, as minutes often are
        body = [f"{number}. {sentence}" for number, sentence in enumerate(body, 1)]
    return " ".join(part for part in (opening, *body, closing) if part)


def mixed(told: list[str], talk: list[str], rng: random.Random) -> list[str]:
    """Returns both lists as one, each in its order."""
    order = [*[True] * len(told), *[False] * len(talk)]
    rng.shuffle(order)
    first, second = iter(told), iter(talk)
    return [next(first if is_told else second) for is_told in order]


def made_up(parts: Parts, rng: random.Random) -> dict[str, str]:
    """Returns source, title, sentence and paragraph of a message about one matter. A piece of news
    begins with what happened; in the others there is talk before, between and after."""
    fill = parts.filler(rng)
    matter = rng.choice(parts.matters)
    kind = matter["kind"]
    lines = {name: [fill(text) for text in texts] for name, texts in parts.kinds[kind].items()}
    chosen = rng.choice(matter["point"])
    chosen_details = rng.sample(matter["detail"], rng.randint(1, 3))
    point, *details = map(fill, [chosen, *chosen_details])
    # A title with more than its text would teach to make things up.
    known = slots(chosen)
    titles = [fill(title) for title in matter["title"] if slots(title) <= known]
    told = [point, *details]
    if kind == "news":
        body = [point, *mixed(details, rng.sample(lines["chat"], rng.randint(0, 3)), rng)]
    else:
        if rng.random() < 0.3:  # a reason or a circumstance comes before the point
            told = [details[0], point, *details[1:]]
        body = mixed(told, rng.sample(lines["chat"], rng.randint(0, 4)), rng)
    kept = [point, *details][: 2 if len(body) < LONG else 3]
    return {
        "source": assembled(kind, lines, body, rng),
        "title": rng.choice(titles or [headline(point)]),
        "sentence": point,
        "paragraph": " ".join(sentence for sentence in told if sentence in kept),
    }


def of_sentences(parts: Parts, known: Sentences, rng: random.Random) -> dict[str, str]:
    """Returns a message of sentences that do not belong together: a mail, notice or complaint with
    one to three that matter among others that do not, of which the first that matters is its
    sentence; or news of formal ones, of which the first is."""
    fill = parts.filler(rng)
    kind = rng.choice(["mail", "mail", "mail", "notice", "review", "news", "news"])
    lines = {name: [fill(text) for text in texts] for name, texts in parts.kinds[kind].items()}
    chat = rng.sample(lines["chat"], rng.randint(0, 2))
    if kind == "news":
        body = rng.sample(known.formal, rng.randint(4, 8))
        told = body[: 2 if len(body) < LONG else 3]
        body = [body[0], *mixed(body[1:], chat, rng)]
    else:
        kinds = (known.requests, known.events, known.figures)
        told = [rng.choice(rng.choice(kinds)) for _ in range(rng.choice([1, 1, 2, 3]))]
        others = rng.sample(known.others, rng.randint(2, 6)) + chat
        rng.shuffle(others)
        body = mixed(told, others, rng)
    return {
        "source": assembled(kind, lines, body, rng),
        "title": headline(told[0]),
        "sentence": told[0],
        "paragraph": " ".join(told) if len(told) > 1 else "",
    }


def single_sentences(files: list[Path], domains: list[str], banned: set[str]) -> list[str]:
    """Returns the sources that are one sentence of WORDS, each once, without those of `banned`."""
    found: dict[str, str] = {}
    for pair in read_pairs(files, domains, mojibake="drop", empty="drop"):
        text = pair.source
        if text[-1] in ".?!" and text[0].isupper() and len(text.split()) in WORDS[pair.domain]:
            found.setdefault(folded(text), text)
    return [text for key, text in found.items() if key not in banned and not END.search(text)]


def read_sentences(folder: Path, banned: set[str]) -> Sentences:
    everyday = [folder / "train.tsv.xz", folder / "english.tsv"]
    texts = single_sentences(everyday, ["tatoeba", "tatoeba_english"], banned)
    formal = single_sentences([folder / "english_debates.tsv"], ["europarl_english"], banned)
    known = Sentences([], [], [], [], [text for text in formal if text.endswith(".")])
    for text in texts:
        if REQUEST.search(text):
            known.requests.append(text)
        elif EVENT.search(text):
            known.events.append(text)
        elif FIGURE.search(text):
            known.figures.append(text)
        elif text.endswith("."):
            known.others.append(text)
    return known


def rows(parts: Parts, known: Sentences, count: int) -> list[Pair]:
    """Makes `count` rows, every second one of everyday sentences, each in one of three styles."""
    rng = random.Random(SEED)
    made = []
    for number in range(count):
        even = number % 2 == 0
        message = made_up(parts, rng) if even else of_sentences(parts, known, rng)
        styles = [style for style in STYLES if message[style]]
        style = rng.choice(styles)
        made.append(Pair(message["source"], message[style], f"message_{style}"))
    return made


def written_messages() -> dict[str, list[Pair]]:
    """Returns the rows of the messages that were written one by one, of each style."""
    columns = [line.split("\t") for line in lines_of("summaries-en")]
    return {
        style: [Pair(row[0], row[number], f"message_{style}") for row in columns]
        for number, style in enumerate(STYLES, 1)
    }


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR",
        help="folder with en-de and summarize, the folders of training and test files")  # fmt: skip
    add("--rows", type=count_from(1), default=60_000, metavar="N", help="rows [%(default)s]")
    options = parser.parse_args(arguments)
    folder = options.data / "en-de"
    banned = kept_back(folder)
    if not banned:
        raise ConfigError(f"{folder} has no test.*.tsv and no valid.tsv.xz, name the folder of it")
    known = read_sentences(folder, banned)
    counts = ", ".join(f"{len(texts):,} {name}" for name, texts in known._asdict().items())
    if min(map(len, known)) < FEWEST:
        raise ConfigError(f"{folder} has {counts}, at least {FEWEST} of each are needed")
    made = rows(Parts(), known, options.rows)
    summaries = options.data / "summarize"
    file = summaries / "messages.tsv"
    write_rows(file, made)
    for style, pairs in written_messages().items():
        write_rows(summaries / f"test.message_{style}.tsv", pairs)
    print(f"{file}: {len(made):,} rows, sentences: {counts}")


if __name__ == "__main__":
    sys.exit(main())
