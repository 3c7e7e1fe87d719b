"""python -m linnet_research.data.messages: makes up messages with summaries of them.

There are hardly any mails, minutes, news, reviews or articles with summaries that may be passed on.
So these rows are of three kinds:

- texts of texts/messages-en.txt.bz2, written one by one, with other talk beside what matters in
  each row
- points of texts/points-en.txt.bz2, each a title and the sentences that matter of a text that was
  not written, among the talk of texts of the same kind
- sentences of en-de, which have more words, but do not belong together: everyday ones of
  train.tsv.xz and of english.tsv (linnet_research.data.tatoeba), of which some ask for something or
  tell of an event, and those of debates in english_debates.tsv (linnet_research.data.debates)

The rows go to summarize/messages.tsv of the data folder, in the domains

  message_title, message_sentence, message_paragraph

None has a sentence of the tests or of the validation of en-de. Tests of these domains go beside
them: the messages of texts/messages-test-en.txt.bz2.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import NamedTuple

from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.data_config import STYLES
from linnet_model.sentences import END
from linnet_model.text_files import Pair, read_pairs
from linnet_research.data.diversify import write_rows
from linnet_research.data.held_out import folded, held_out
from linnet_research.texts import lines_of

SEED = 1
WORDS = {  # of the sentences that are used, by domain
    "tatoeba": range(4, 19),
    "tatoeba_english": range(4, 19),
    "europarl_english": range(8, 31),
}
FEWEST = 10  # sentences of each kind
LONG = 6  # sentences; the paragraph of so long a piece of news has three, else two
CLOSING_WORDS = 5  # at most, in each part of a closing: "Kind regards,", a name
KEPT_TALK, KEPT_DETAIL = 0.7, 0.85  # shares of the parts of a message that are kept
MAX_FOREIGN_TALK = 3  # sentences of other messages
TALK_AROUND_POINT = (3, 10)  # sentences, least and most
NEWS_SHARE = 0.3  # of the messages of single sentences
WRITTEN_SHARE, POINT_SHARE = 0.4, 0.4  # of all rows
LEAD_SHARE = 0.4  # of the points of news that stand first
# A reader wants to know what a message asks for, what happened, and when, how many or how much.
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


class Part(NamedTuple):
    """A sentence, a greeting or a name of a message, with one of the marks below."""

    mark: str
    text: str


NEWS = "news"
GREETING = ("mails", "notices", "minutes", "letters")  # kinds that begin with one, or a heading
MATTERS, DETAIL, TALK = "*", "+", ""  # the one that matters most; those that matter next; others


class Message(NamedTuple):
    """A message, what matters in it, and a title."""

    kind: str
    title: str
    parts: list[Part]

    @property
    def opening(self) -> list[Part]:
        """A greeting, a heading or a first sentence of talk; nothing of news."""
        return self.parts[:1] if self.kind != NEWS and not self.parts[0].mark else []

    @property
    def closing(self) -> list[Part]:
        begin = len(self.parts)
        while not self.parts[begin - 1].mark and (
            len(self.parts[begin - 1].text.split()) <= CLOSING_WORDS
        ):
            begin -= 1
        return self.parts[begin:]

    @property
    def body(self) -> list[Part]:
        return self.parts[len(self.opening) : len(self.parts) - len(self.closing)]

    def source(self) -> str:
        return " ".join(part.text for part in self.parts)

    def summaries(self) -> dict[str, str]:
        """Returns a summary in each style, empty if it would not differ from a shorter one's."""
        marked = [part for part in self.parts if part.mark]
        sentence = next(part.text for part in marked if part.mark == MATTERS)
        return {
            "title": self.title,
            "sentence": upper_first(sentence),
            "paragraph": " ".join(upper_first(part.text) for part in marked) if marked[1:] else "",
        }


def read_messages(name: str) -> list[Message]:
    """Reads a file of texts: a line "# KIND" before the messages of a kind, each a line with the
    title, a tab, and the parts between bars, some with their mark before them. Points have only
    parts with a mark."""
    kind = ""
    messages = []
    for line in lines_of(name):
        if line.startswith("# "):
            kind = line.removeprefix("# ")
            continue
        title, text = line.split("\t")
        parts = [
            Part(part[0], part[1:]) if part[0] in (MATTERS, DETAIL) else Part(TALK, part)
            for part in text.split(" | ")
        ]
        messages.append(Message(kind, title, parts))
    return messages


def mixed(first: list[Part], second: list[Part], rng: random.Random) -> list[Part]:
    """Returns both lists as one, each in its order."""
    order = [*[True] * len(first), *[False] * len(second)]
    rng.shuffle(order)
    one, other = iter(first), iter(second)
    return [next(one if is_first else other) for is_first in order]


class Written:
    """The written messages and points, from which others are made."""

    def __init__(self, messages: list[Message], points: list[Message]) -> None:
        self.messages, self.points = messages, points
        self.of = {
            kind: [message for message in messages if message.kind == kind]
            for kind in sorted({message.kind for message in messages})
        }
        # A sentence in lower case goes on after a greeting.
        self.talk = {
            kind: [
                part
                for message in of_kind
                for part in message.body
                if part.mark == TALK and not part.text[0].islower()
            ]
            for kind, of_kind in self.of.items()
        }

    def varied(self, rng: random.Random) -> Message:
        """Returns one of the messages with what matters most and some of the rest, and with talk of
        others of its kind after its first sentence."""
        message = rng.choice(self.messages)
        kept = {MATTERS: 1.0, DETAIL: KEPT_DETAIL, TALK: KEPT_TALK}
        body = [part for part in message.body if rng.random() < kept[part.mark]]
        foreign = rng.sample(self.talk[message.kind], rng.randint(0, MAX_FOREIGN_TALK))
        body = [*body[:1], *mixed(body[1:], foreign, rng)]
        return message._replace(parts=[*message.opening, *body, *message.closing])

    def around_point(self, rng: random.Random) -> Message:
        """Returns what matters in one of the points among talk of messages of its kind."""
        point = rng.choice(self.points)
        main, *details = point.parts
        told = [main, *(part for part in details if rng.random() < KEPT_DETAIL)]
        talk = rng.sample(self.talk[point.kind], rng.randint(*TALK_AROUND_POINT))
        if point.kind == NEWS and rng.random() < LEAD_SHARE:
            body = [main, *mixed(told[1:], talk, rng)]
        else:
            body = mixed(told, talk, rng)
        if point.kind not in GREETING:
            return point._replace(parts=body)
        frame = rng.choice(self.of[point.kind])
        return point._replace(parts=[*frame.opening, *body, *frame.closing])


def of_sentences(written: Written, known: Sentences, rng: random.Random) -> Message:
    """Returns a message of sentences that do not belong together: news of formal ones, of which the
    first matters most; or a message of another kind with one to three that matter among others that
    do not, of which the first that matters does most."""
    kind = NEWS if rng.random() < NEWS_SHARE else rng.choice(GREETING)
    frame = rng.choice(written.of[kind])
    talk = rng.sample(written.talk[kind], rng.randint(0, 2))
    if kind == NEWS:
        body = rng.sample(known.formal, rng.randint(4, 8))
        count = 2 if len(body) < LONG else 3
        told = [Part(MATTERS, body[0]), *(Part(DETAIL, text) for text in body[1:count])]
        rest = [Part(TALK, text) for text in body[count:]]
        parts = [told[0], *mixed([*told[1:], *rest], talk, rng)]
    else:
        kinds = (known.requests, known.events, known.figures)
        matter = [rng.choice(rng.choice(kinds)) for _ in range(rng.choice([1, 1, 2, 3]))]
        told = [Part(MATTERS, matter[0]), *(Part(DETAIL, text) for text in matter[1:])]
        rest = [Part(TALK, text) for text in rng.sample(known.others, rng.randint(2, 6))]
        parts = mixed(told, [*rest, *talk], rng)
    return Message(kind, headline(told[0].text), [*frame.opening, *parts, *frame.closing])


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


def rows(written: Written, known: Sentences, count: int) -> list[Pair]:
    """Makes `count` rows, each with a summary in one of three styles."""
    rng = random.Random(SEED)
    made = []
    for _ in range(count):
        place = rng.random()
        if place < WRITTEN_SHARE:
            message = written.varied(rng)
        elif place < WRITTEN_SHARE + POINT_SHARE:
            message = written.around_point(rng)
        else:
            message = of_sentences(written, known, rng)
        summaries = message.summaries()
        style = rng.choice([style for style in STYLES if summaries[style]])
        made.append(Pair(message.source(), summaries[style], f"message_{style}"))
    return made


def tests() -> dict[str, list[Pair]]:
    """Returns the rows of the messages to test with, of each style."""
    messages = read_messages("messages-test-en")
    return {
        style: [
            Pair(message.source(), message.summaries()[style], f"message_{style}")
            for message in messages
        ]
        for style in STYLES
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
    banned = held_out(folder)
    if not banned:
        raise ConfigError(f"{folder} has no test.*.tsv and no valid.tsv.xz, name the folder of it")
    known = read_sentences(folder, banned)
    counts = ", ".join(f"{len(texts):,} {name}" for name, texts in known._asdict().items())
    if min(map(len, known)) < FEWEST:
        raise ConfigError(f"{folder} has {counts}, at least {FEWEST} of each are needed")
    written = Written(read_messages("messages-en"), read_messages("points-en"))
    made = rows(written, known, options.rows)
    summaries = options.data / "summarize"
    file = summaries / "messages.tsv"
    write_rows(file, made)
    for style, pairs in tests().items():
        write_rows(summaries / f"test.message_{style}.tsv", pairs)
    print(f"{file}: {len(made):,} rows, sentences: {counts}")


if __name__ == "__main__":
    sys.exit(main())
