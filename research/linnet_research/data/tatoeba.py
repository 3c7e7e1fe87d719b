"""python -m linnet_research.data.tatoeba: makes training rows of a mirror of Tatoeba's sentences.

The mirror is a folder of files LANGUAGE-LANGUAGE.json.gz, each a list of pairs of sentences, such
as the folder data of github.com/tomasr8/tatoeba-mirror. Three files of rows are written:

  mirror.tsv   pairs of English and German: those of the mirror (domain tatoeba_mirror), and those
               that are translations of the same sentence in a third language (tatoeba_pivot)
  german.tsv   sentences in German that are in no pair, on both sides (tatoeba_german), for
               back-translation by linnet-diversify
  english.tsv  the same in English (tatoeba_english)

Pairs of the training files are left out, and all that the tests, the validation and the everyday
sentences of the cards have on either side (held_out), as far as letters and digits go. So are the
translations of those texts, in all three files: each is the other side of a pair.
"""

from __future__ import annotations

import gzip
import json
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError
from linnet_model.text_files import Pair, read_pairs, rows_file
from linnet_research.data.diversify import write_rows
from linnet_research.data.held_out import folded, held_out

ENGLISH, GERMAN = "eng", "deu"
MAX_WORDS = 80
MAX_RATIO = 2.3  # of the characters of both sides
MIN_LETTERS = 0.7  # share of letters and blanks
MAX_TRANSLATIONS = 3  # of one source
# Constructed languages, and those that leave number, gender or tense open: a pair by way of one of
# them alone is often loose.
LOOSE = frozenset({"tok", "jbo", "ina", "ile", "cmn", "jpn", "yue", "wuu", "lzh"})


def cleaned(text: str) -> str:
    """Returns the text in NFC, with single blanks and without what cannot be seen."""
    normal = unicodedata.normalize("NFC", text)
    seen = (c for c in normal if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join("".join(seen).split())


def is_text(text: str) -> bool:
    if not 0 < len(text.split()) <= MAX_WORDS:
        return False
    return sum(c.isalpha() or c == " " for c in text) >= MIN_LETTERS * len(text)


def read_mirror(folder: Path) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yields both languages and the pairs of each file with English or German."""
    files = sorted(folder.glob("*-*.json.gz"))
    if not files:
        raise ConfigError(f"{folder} has no file like deu-eng.json.gz, name the mirror's folder")
    for file in files:
        first, second = file.name.removesuffix(".json.gz").split("-")
        if {first, second} & {ENGLISH, GERMAN}:
            yield first, second, json.loads(gzip.decompress(file.read_bytes()))


class Mirror:
    """The sentences of a mirror: `direct` pairs of English and German, and of each sentence of a
    third language its translations into both."""

    def __init__(self, folder: Path) -> None:
        self.direct: set[tuple[str, str]] = set()
        self.into: dict[str, dict[tuple[str, str], set[str]]] = {
            ENGLISH: defaultdict(set),
            GERMAN: defaultdict(set),
        }
        for first, second, pairs in read_mirror(folder):
            for one, other in pairs:
                sides = {first: cleaned(one), second: cleaned(other)}
                if sides.keys() == {ENGLISH, GERMAN}:
                    self.direct.add((sides[ENGLISH], sides[GERMAN]))
                    continue
                language = ENGLISH if ENGLISH in sides else GERMAN
                third = first if language == second else second
                self.into[language][third, sides[third]].add(sides[language])

    def pivoted(self) -> Iterator[tuple[tuple[str, str], bool]]:
        """Yields the pairs that have the same translation in a third language, and whether that is
        no loose one."""
        languages: dict[tuple[str, str], set[str]] = defaultdict(set)
        for key, german in self.into[GERMAN].items():
            for english in self.into[ENGLISH].get(key, ()):
                for sentence in german:
                    languages[english, sentence].add(key[0])
        for pair, third in languages.items():
            yield pair, len(third) > 1 or not third <= LOOSE

    def sentences(self, language: str) -> set[str]:
        side = 0 if language == ENGLISH else 1
        found = {pair[side] for pair in self.direct}
        return found.union(*self.into[language].values())


def translations_of(pairs: Iterable[tuple[str, str]], texts: Set[str]) -> set[str]:
    """Returns the other sides, folded, of the pairs with a side in `texts`."""
    found: set[str] = set()
    for key in ((folded(source), folded(target)) for source, target in pairs):
        if not texts.isdisjoint(key):
            found.update(key)
    return found


class Rows:
    """Collects rows whose sides are not among the `banned` ones, and pairs that are not `known`."""

    def __init__(self, banned: set[str], known: set[tuple[str, str]]) -> None:
        self.banned = banned
        self.known = known
        self.translations: Counter[str] = Counter(source for source, _ in known)
        self.sides = {text for pair in known for text in pair}

    def pairs(self, pairs: Iterable[tuple[str, str]], domain: str) -> list[Pair]:
        rows = []
        for source, target in sorted(pairs):
            key = folded(source), folded(target)
            ratio = len(source) / max(len(target), 1)
            if (
                not (is_text(source) and is_text(target))
                or not 1 / MAX_RATIO <= ratio <= MAX_RATIO
                or key in self.known
                or not self.banned.isdisjoint(key)
                or self.translations[key[0]] >= MAX_TRANSLATIONS
            ):
                continue
            self.known.add(key)
            self.sides.update(key)
            self.translations[key[0]] += 1
            rows.append(Pair(source, target, domain))
        return rows

    def sentences(self, texts: Iterable[str], domain: str) -> list[Pair]:
        """Returns rows of sentences that no row has, on both sides of each."""
        rows = []
        for text in sorted(texts):
            key = folded(text)
            if is_text(text) and key not in self.sides and key not in self.banned:
                self.sides.add(key)
                rows.append(Pair(text, text, domain))
        return rows


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--mirror", type=Path, required=True, metavar="DIR", help="folder of the mirror's files")
    add("--data", type=Path, required=True, metavar="DIR",
        help="folder of the training and test files, to which the rows go")  # fmt: skip
    options = parser.parse_args(arguments)
    banned = held_out(options.data)
    if not banned:
        raise ConfigError(f"{options.data} has no test.*.tsv and no valid.tsv.xz, name its folder")
    files = [rows_file(options.data, name) for name in ("train", "more")]
    known = read_pairs([file for file in files if file.exists()], None, mojibake="warn")
    mirror = Mirror(options.mirror)
    pivoted = list(mirror.pivoted())
    banned |= translations_of((*mirror.direct, *(pair for pair, _ in pivoted)), banned)
    rows = Rows(banned, {(folded(pair.source), folded(pair.target)) for pair in known})
    pairs = rows.pairs(mirror.direct, "tatoeba_mirror")
    pairs += rows.pairs((pair for pair, good in pivoted if good), "tatoeba_pivot")
    for name, found in (
        ("mirror", pairs),
        ("german", rows.sentences(mirror.sentences(GERMAN), "tatoeba_german")),
        ("english", rows.sentences(mirror.sentences(ENGLISH), "tatoeba_english")),
    ):
        write_rows(options.data / f"{name}.tsv", found)
        counts = Counter(pair.domain for pair in found)
        told = ", ".join(f"{count:,} {domain}" for domain, count in counts.items())
        print(f"{options.data / name}.tsv: {told}")


if __name__ == "__main__":
    sys.exit(main())
