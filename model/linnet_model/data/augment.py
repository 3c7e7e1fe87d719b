"""Data augmentation: random changes to training pairs that teach copying and tolerance of case and
punctuation.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict

from linnet_model.capitals import in_capitals
from linnet_model.data.extracts import extracts
from linnet_model.data.fact_pairs import fact_pairs, german_nouns
from linnet_model.data.renaming import has_time, renamed, same_names, with_other_time
from linnet_model.data.synthetic import address, name, number
from linnet_model.data_config import MAX_PLACEHOLDERS, PLACEHOLDERS_USED, DataConfig
from linnet_model.text_files import Pair, turned

EMOJI = [
    chr(c) for c in (*range(0x1F600, 0x1F640), *range(0x1F400, 0x1F440), 0x2764, 0x2600, 0x1F44D)
]


def copied_pairs(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Makes pairs of two equal texts: names, numbers and addresses, alone or in a short frame that
    is the same in English and German."""
    pairs = []
    for _ in range(count):
        thing = rng.choice([name, address, number])(rng)
        frame = rng.randrange(6)
        if frame == 0:
            text = f"{name(rng)} {name(rng)}"
        elif frame == 1:
            text = f"{thing} {rng.choice(EMOJI)}"
        elif frame == 2:
            text = f"{thing}: {rng.choice([name, address, number])(rng)}"
        elif frame == 3:
            text = f"{thing}, {rng.choice([name, address, number])(rng)}"
        else:
            text = thing
        pairs.append((text, text))
    return pairs


# Opening and closing mark of an English text, and of its German translation.
QUOTES = [('"', '"', "„", "“"), ("“", "”", "„", "“"), ("‘", "’", "‚", "‘")]
ANY_QUOTE = re.compile('["“”„‘‚«»]')


def quoted(source: str, target: str, rng: random.Random) -> tuple[str, str]:
    """Makes direct speech of an English text and its German translation, with or without a speaker.
    A pair that has quotation marks is returned unchanged."""
    if ANY_QUOTE.search(source + target) or not source or not target:
        return source, target
    left, right, target_left, target_right = rng.choice(QUOTES)
    if rng.random() < 0.5:
        return f"{left}{source}{right}", f"{target_left}{target}{target_right}"
    speaker = rng.choice([name(rng), "Tom", "Mary"])
    said, sagte = ("asked", "fragte") if source.endswith("?") else ("said", "sagte")
    # English puts the comma inside the quotation marks, German after them.
    inside = source[:-1] + "," if source.endswith(".") else source
    return (
        f"{left}{inside}{right} {said} {speaker}.",
        f"{target_left}{target.removesuffix('.')}{target_right}, {sagte} {speaker}.",
    )


SHARED_WORD = re.compile(r"[^\W_]+(?:[-.'][^\W_]+)*")


def with_placeholders(source: str, target: str, mark: str, rng: random.Random) -> tuple[str, str]:
    """Replaces some of the words that occur exactly once on both sides by <ph0>, <ph1>, ... in the
    order of the source, and sometimes appends one to both sides, where emoji occur. `mark` is the
    placeholder that marks capitals; it is not used."""
    names = [f"<ph{n}>" for n in range(PLACEHOLDERS_USED) if f"<ph{n}>" != mark]
    in_target = SHARED_WORD.findall(target)
    words = SHARED_WORD.findall(source)
    shared = [w for w in words if words.count(w) == 1 == in_target.count(w)]
    count = min(len(shared), rng.randint(1, MAX_PLACEHOLDERS))
    chosen = set(rng.sample(shared, count))
    number = {w: names[n] for n, w in enumerate(w for w in words if w in chosen)}

    def put(text: str) -> str:
        return SHARED_WORD.sub(lambda found: number.get(found[0], found[0]), text)

    suffix = f" {names[len(number)]}" if rng.random() < 0.2 else ""
    return put(source) + suffix, put(target) + suffix


def upper(text: str) -> str:
    """Returns the text in upper case but for the names of placeholders."""
    return re.sub("<PH[0-9]+>", lambda name: name[0].lower(), text.upper())


def uppercased(source: str, target: str, mark: str) -> tuple[str, str]:
    """Returns both sides in upper case. The target of a source that gets the mark has the mark too
    and is unchanged otherwise, because decoding restores the capitals (capitals.py); but a target
    that is in capitals by itself has none that could be restored."""
    source = upper(source)
    if mark and in_capitals(source) and not in_capitals(target):
        return source, f"{mark} {target}"
    return source, upper(target)


def varied(source: str, target: str, config: DataConfig, rng: random.Random) -> tuple[str, str]:
    """Applies each change to a pair with the probability that the recipe gives it."""
    if config.same_names:
        target = same_names(source, target)
    if rng.random() < config.rename_share:
        source, target = renamed(source, target, rng)
    if rng.random() < config.no_stop_share and source.endswith(".") and target.endswith("."):
        source, target = source[:-1], target[:-1]
    if rng.random() < config.quote_share:
        if config.reverse:
            target, source = quoted(target, source, rng)
        else:
            source, target = quoted(source, target, rng)
    case = rng.random()
    if case < config.lowercase_share:
        source = source.lower()
    if rng.random() < config.placeholder_share:
        source, target = with_placeholders(source, target, config.capitals_mark, rng)
    # After the placeholders: only the words that they leave decide whether the text gets the mark.
    if config.lowercase_share <= case < config.lowercase_share + config.uppercase_share:
        source, target = uppercased(source, target, config.capitals_mark)
    return source, target


CLOSED = """["'”’“)」』）]*$"""  # marks behind the end of a sentence
END_OF_SENTENCE = re.compile(f"[.!?…؟।。！？]{CLOSED}")
FULL_WIDTH_END = re.compile(f"[。！？]{CLOSED}")  # Chinese and Japanese have no blank behind it
MAX_JOINED = 4  # rows


def joined_pairs(
    pairs: list[Pair], shares: dict[str, float], count: int, rng: random.Random
) -> list[Pair]:
    """Joins two to four random rows of a domain, on both sides, so that a model of short
    sentences meets longer texts (Kondo et al. 2021, arXiv 2104.08478, who join two). Takes rows
    that are sentences on both sides; a domain is drawn as often as its share says."""
    whole = [
        pair
        for pair in pairs
        if END_OF_SENTENCE.search(pair.source) and END_OF_SENTENCE.search(pair.target)
    ]
    of_domain: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in whole:
        of_domain[pair.domain].append(pair)
    weights = [shares.get(pair.domain, 1.0) for pair in whole]
    result = []
    for first in rng.choices(whole, weights, k=count) if whole else []:
        rows = [first, *rng.choices(of_domain[first.domain], k=rng.randint(1, MAX_JOINED - 1))]
        source, target = as_text([p.source for p in rows]), as_text([p.target for p in rows])
        result.append(Pair(source, target, "joined"))
    return result


def fact_rows(pairs: list[Pair], config: DataConfig, rng: random.Random) -> list[Pair]:
    """Makes the rows of fact_share: made-up sentences, and one in ten is a row that has a time of
    day, with another time."""
    count = round(len(pairs) * config.fact_share)
    if count == 0:
        return []
    english = turned(pairs, config)  # as the texts have them: the source is English
    nouns = german_nouns(pair.target for pair in english)
    made_up = [Pair(source, target, "facts") for source, target in fact_pairs(count, rng, nouns)]
    timed = [pair for pair in english if has_time(pair.source, pair.target)]
    for at in range(0, count if timed else 0, 10):
        pair = rng.choice(timed)
        made_up[at] = Pair(*with_other_time(pair.source, pair.target, rng), "facts")
    return turned(made_up, config)


def as_text(sentences: list[str]) -> str:
    """Joins sentences with blanks, where their language has any."""
    text = "".join(it if FULL_WIDTH_END.search(it) else it + " " for it in sentences)
    return text.removesuffix(" ")


def augmented(pairs: list[Pair], config: DataConfig, seed: int) -> list[Pair]:
    """Varies all pairs and adds the recipe's joined rows, copies, echoes, facts and extracts."""
    rng = random.Random(seed)
    # Joined before they vary: marks and placeholders are numbered over a whole text.
    joined = joined_pairs(pairs, config.domains, round(len(pairs) * config.join_share), rng)
    texts = pairs
    pairs = [Pair(*varied(p.source, p.target, config, rng), p.domain) for p in pairs]
    copies = copied_pairs(round(len(pairs) * config.copy_share), rng)
    echoes = rng.sample(pairs, round(len(pairs) * config.echo_share))
    facts = fact_rows(texts, config, rng)
    chosen = config.extract_domains
    summed_up = [pair for pair in pairs if not chosen or pair.domain in chosen]
    return [
        *pairs,
        *(Pair(*varied(p.source, p.target, config, rng), p.domain) for p in joined),
        *(Pair(source, target, "copies") for source, target in copies),
        *facts,
        *(Pair(pair.target, pair.target, "echoes") for pair in echoes),
        *extracts(summed_up, config.domains, round(len(pairs) * config.extract_share), rng),
    ]
