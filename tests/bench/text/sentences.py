"""Compares where sentences end with Universal Dependencies treebanks, beside ICU, Moses and pysbd.

Needs a folder with checkouts of the treebanks (UD_Portuguese-Bosque and so on, as
https://universaldependencies.org names them) and two packages:

    pip install --target build/peers/sentences sentence-splitter==1.4 pysbd==0.3.4

The sentences of a paragraph are joined by a blank, and in Chinese and Japanese by nothing; a
treebank without paragraphs has groups of 20 sentences. Each splitter gets the paragraphs, and its
boundaries are compared with those of the treebank by the number of characters before them that are
no white space. F1 is of the boundaries inside of paragraphs. A sentence that is only the number of
an item ("1.") counts as the start of the next one: Ukrainian-IU cuts most lists so, other treebanks
hardly any. Writes DIR/sentences.json; the machine does not matter for F1.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "build/peers/sentences"
GROUP = 20
LIST_NUMBER = re.compile(r"\d{1,3}[.)]")
TREEBANKS = {
    "ar": ["Arabic-PUD"],
    "bg": ["Bulgarian-BTB"],
    "cs": ["Czech-CAC", "Czech-FicTree"],
    "da": ["Danish-DDT"],
    "de": ["German-GSD"],
    "el": ["Greek-GDT"],
    "en": ["English-EWT", "English-GUM"],
    "es": ["Spanish-GSD"],
    "et": ["Estonian-EDT"],
    "fa": ["Persian-Seraji"],
    "fi": ["Finnish-TDT"],
    "fr": ["French-GSD", "French-Sequoia"],
    "he": ["Hebrew-HTB"],
    "hi": ["Hindi-PUD"],
    "hr": ["Croatian-SET"],
    "hu": ["Hungarian-Szeged"],
    "id": ["Indonesian-GSD"],
    "it": ["Italian-ISDT", "Italian-VIT"],
    "ja": ["Japanese-GSD"],
    "ko": ["Korean-GSD"],
    "lt": ["Lithuanian-ALKSNIS"],
    "nb": ["Norwegian-Bokmaal"],
    "nl": ["Dutch-Alpino", "Dutch-LassySmall"],
    "pl": ["Polish-PDB", "Polish-LFG"],
    "pt": ["Portuguese-Bosque", "Portuguese-GSD"],
    "ro": ["Romanian-RRT"],
    "ru": ["Russian-GSD", "Russian-Taiga"],
    "sk": ["Slovak-SNK"],
    "sl": ["Slovenian-SSJ"],
    "sv": ["Swedish-Talbanken"],
    "tr": ["Turkish-BOUN", "Turkish-IMST"],
    "uk": ["Ukrainian-IU"],
    "zh": ["Chinese-GSDSimp"],
}
UNSPACED = ("ja", "zh")
Boundaries = list[set[int]]  # of each paragraph
Splitter = Callable[[str, list[str]], Boundaries | None]  # None: it does not know the language


def paragraphs_of(conllu: str) -> list[list[str]]:
    """The sentences of each paragraph of a treebank's file."""
    has_paragraphs = conllu.count("# newpar") > 10
    paragraphs: list[list[str]] = [[]]
    for block in conllu.split("\n\n"):
        text = re.search(r"^# text = (.*)$", block, re.MULTILINE)
        if text is None:
            continue
        if has_paragraphs:
            new = re.search(r"^# new(par|doc)", block, re.MULTILINE) is not None
        else:
            new = len(paragraphs[-1]) == GROUP
        if new and paragraphs[-1]:
            paragraphs.append([])
        sentence = " ".join(text[1].split())
        if paragraphs[-1] and LIST_NUMBER.fullmatch(paragraphs[-1][-1]):
            sentence = f"{paragraphs[-1].pop()} {sentence}"
        paragraphs[-1].append(sentence)
    return [paragraph for paragraph in paragraphs if paragraph]


def visible(text: str) -> int:
    """The number of characters that are no white space."""
    return len("".join(text.split()))


def true_boundaries(paragraph: list[str]) -> set[int]:
    """The boundaries between the sentences of a paragraph."""
    found, count = set(), 0
    for sentence in paragraph[:-1]:
        count += visible(sentence)
        found.add(count)
    return found


def boundaries_of(pieces: list[str]) -> set[int]:
    found, count = set(), 0
    for piece in pieces:
        count += visible(piece)
        found.add(count)
    return found


def native(program: Path, *flags: str) -> Splitter:
    """Linnet's splitter, or with --icu ICU's rules alone."""

    def split(language: str, texts: list[str]) -> Boundaries:
        done = subprocess.run(
            [program, language, *flags],
            input="".join(text + "\n" for text in texts),
            capture_output=True,
            text=True,
            check=True,
        )
        found = []
        for text, line in zip(texts, done.stdout.splitlines(), strict=True):
            raw = text.encode()
            found.append({visible(raw[: int(end)].decode()) for end in line.split()})
        return found

    return split


def moses(language: str, texts: list[str]) -> Boundaries | None:
    from sentence_splitter import SentenceSplitter, SentenceSplitterException

    try:
        splitter = SentenceSplitter("no" if language == "nb" else language)
    except SentenceSplitterException:
        return None
    return [boundaries_of(splitter.split(text)) for text in texts]


def pysbd(language: str, texts: list[str]) -> Boundaries | None:
    from pysbd import Segmenter

    try:
        splitter = Segmenter(language=language, clean=False)
    except ValueError:
        return None
    return [boundaries_of(splitter.segment(text)) for text in texts]


def f1(paragraphs: list[list[str]], found: Boundaries) -> float:
    """F1 of the boundaries inside of the paragraphs, in percent."""
    right = wrong = missed = 0
    for paragraph, boundaries in zip(paragraphs, found, strict=True):
        truth = true_boundaries(paragraph)
        inner = boundaries - {0, visible("".join(paragraph))}
        right += len(truth & inner)
        wrong += len(inner - truth)
        missed += len(truth - inner)
    return 200 * right / max(2 * right + wrong + missed, 1)


def measure(folder: Path, split: str, splitters: dict[str, Splitter]) -> dict[str, Any]:
    """F1 of every splitter in every language."""
    languages = {}
    for language, names in TREEBANKS.items():
        paragraphs, files = [], {}
        for name in names:
            paths = sorted((folder / f"UD_{name}").glob(f"*-ud-{split}.conllu"))
            if not paths:
                sys.exit(f"{folder / f'UD_{name}'} has no file *-ud-{split}.conllu: check it out")
            files[name] = hashlib.sha256(paths[0].read_bytes()).hexdigest()[:12]
            paragraphs += paragraphs_of(paths[0].read_text("utf-8"))
        blank = "" if language in UNSPACED else " "
        texts = [blank.join(paragraph) for paragraph in paragraphs]
        scores = {}
        for splitter, function in splitters.items():
            found = function(language, texts)
            scores[splitter] = None if found is None else round(f1(paragraphs, found), 2)
        languages[language] = {
            "files": files,
            "boundaries": sum(len(paragraph) - 1 for paragraph in paragraphs),
            "f1": scores,
        }
        print(language, languages[language]["boundaries"], scores, flush=True)
    return languages


def means(languages: dict[str, Any]) -> dict[str, Any]:
    """The mean F1 of each peer in the languages that it knows, and of Linnet in the same."""
    found = {}
    for peer in next(iter(languages.values()))["f1"]:
        if peer == "linnet":
            continue
        known = [it["f1"] for it in languages.values() if it["f1"][peer] is not None]
        found[peer] = {
            "languages": len(known),
            "peer": round(sum(it[peer] for it in known) / len(known), 2),
            "linnet": round(sum(it["linnet"] for it in known) / len(known), 2),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--treebanks", type=Path, required=True, help="folder with UD_* checkouts")
    parser.add_argument("--split", default="test", choices=["train", "dev", "test"])
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/bench_sentences")
    options = machine.parse(parser)
    sys.path.insert(0, str(PEERS))
    splitters: dict[str, Splitter] = {
        "icu": native(options.program, "--icu"),
        "moses": moses,
        "pysbd": pysbd,
        "linnet": native(options.program),
    }
    languages = measure(options.treebanks, options.split, splitters)
    result = {
        "version": machine.version_of(ROOT),
        "split": options.split,
        "peers": {"moses": "sentence-splitter 1.4", "pysbd": "pysbd 0.3.4"},
        "languages": languages,
        "means": means(languages),
    }
    print(result["means"])
    machine.write_result(options.out / "sentences.json", result)


if __name__ == "__main__":
    main()
