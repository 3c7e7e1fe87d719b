"""python -m linnet_research.data.debates: makes sentences of debates to be translated.

Tatoeba's sentences are short and about little; debates speak of what newspapers write about. Two
files of rows are written, with a sentence on both sides of each, for linnet-diversify:

  german_debates.tsv    from the protocols of the German Bundestag (domain bundestag), a folder of
                        files *.xml as its open data has them
  english_debates.tsv   from those of the European Parliament (domain europarl_english), a folder of
                        files ep-*.txt with the markup of Europarl (Koehn 2005)

Each file has --rows whole sentences, chosen at random among those of at most --max-words that are
in no test, in no validation and not among the everyday sentences of the cards.
"""

from __future__ import annotations

import html
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.sentences import split_german_sentences, split_sentences, whole_sentence
from linnet_model.text_files import Pair
from linnet_research.data.diversify import write_rows
from linnet_research.data.held_out import folded, held_out
from linnet_research.data.tatoeba import cleaned

OF_SPEECHES = frozenset({"J", "J_1", "O"})  # classes of the paragraphs of a speech
MARKUP = re.compile(r"<[^>]*>")
SEED = 1


def files_of(folder: Path, pattern: str) -> list[Path]:
    files = sorted(folder.glob(pattern))
    if not files:
        raise ConfigError(f"{folder} has no file {pattern}, name the folder of the protocols")
    return files


def german_paragraphs(folder: Path) -> Iterator[str]:
    for file in files_of(folder, "*.xml"):
        for speech in ElementTree.parse(file).iter("rede"):
            for paragraph in speech.iter("p"):
                if paragraph.get("klasse") in OF_SPEECHES:
                    yield "".join(paragraph.itertext())


def english_paragraphs(folder: Path) -> Iterator[str]:
    for file in files_of(folder, "ep-*.txt"):
        for paragraph in MARKUP.split(file.read_text(encoding="utf-8", errors="replace")):
            # The corpus was tokenized and put together again, which left a blank at the genitive.
            yield re.sub(r"(?<=\w)' s\b", "'s", html.unescape(paragraph))


def is_clean(sentence: str) -> bool:
    """Returns whether every character could be decoded and every quotation is whole."""
    return (
        "\ufffd" not in sentence
        and sentence.count("„") == sentence.count("“")
        and sentence.count('"') % 2 == 0
    )


def sentences(
    paragraphs: Iterable[str],
    split: Callable[[str], list[str]],
    max_words: int,
    banned: set[str],
) -> list[str]:
    """Returns the whole sentences, each once and in the order of the text."""
    found: dict[str, str] = {}
    for paragraph in paragraphs:
        for sentence in split(cleaned(paragraph)):
            short = len(sentence.split()) <= max_words
            if short and whole_sentence(sentence) and is_clean(sentence):
                found.setdefault(folded(sentence), sentence)
    return [sentence for key, sentence in found.items() if key not in banned]


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--german", type=Path, metavar="DIR", help="protocols of the Bundestag")
    add("--english", type=Path, metavar="DIR", help="protocols of the European Parliament")
    add("--data", type=Path, required=True, metavar="DIR",
        help="folder of the training and test files, to which the rows go")  # fmt: skip
    add("--rows", type=count_from(1), default=150_000, metavar="N",
        help="sentences of each language, at most [%(default)s]")  # fmt: skip
    add("--max-words", type=count_from(1), default=35, metavar="N",
        help="words of a sentence, at most [%(default)s]")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.german is None and options.english is None:
        raise ConfigError("neither --german nor --english names protocols, name a folder")
    banned = held_out(options.data)
    if not banned:
        raise ConfigError(f"{options.data} has no test.*.tsv and no valid.tsv.xz, name its folder")
    german = german_paragraphs, split_german_sentences
    english = english_paragraphs, split_sentences
    for folder, name, domain, (read, split) in (
        (options.german, "german_debates", "bundestag", german),
        (options.english, "english_debates", "europarl_english", english),
    ):
        if folder is None:
            continue
        found = sentences(read(folder), split, options.max_words, banned)
        chosen = random.Random(SEED).sample(found, min(options.rows, len(found)))
        write_rows(options.data / f"{name}.tsv", [Pair(text, text, domain) for text in chosen])
        print(f"{options.data / name}.tsv: {len(chosen):,} of {len(found):,} {domain}")


if __name__ == "__main__":
    sys.exit(main())
