"""python -m linnet_research.evaluation.tasks: makes the tasks on which pre-training is measured.

Writes one data folder per task into --out, with train.tsv, valid.tsv and test.NAME.tsv, of the
texts that are given: of --cogs the folder cogs (sentences and their logical forms, Kim and Linzen
2020), of --trec the folder trec (questions and what they ask for, Li and Roth 2002), of --data the
folders domain (English sentences and where they come from) and difference (two sentences that mean
the same, and the words that only the second has). linnet-compare --pretrain trains on them.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError
from linnet_model.text_files import DataError, Pair, read_pairs, rows_file

SEED = 1
# The cases of COGS whose structures are new; in the other cases known structures have new words.
STRUCTURAL = ("cp_recursion", "obj_pp_to_subj_pp", "pp_recursion")
QUESTIONS = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human",
    "LOC": "location",
    "NUM": "number",
}
TREC_VALID_ROWS = 452  # of 5,452, so that 5,000 are left
# Without mdn, which is share-alike. Rows of each domain: a large one does not dominate.
DOMAINS = ("tatoeba", "debian", "phpdoc", "zfdoc", "mozilla", "tldr")
DOMAIN_ROWS = {"train": 4000, "valid": 100, "test": 200}
DIFFERENCE_ROWS = (2000, 400)  # of the test and the validation set; the others are trained on
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
BETWEEN = " = "  # stands between the two sentences of a source

Splits = dict[str, list[Pair]]


def cogs(folder: Path) -> Splits:
    """Returns the rows of train.tsv, dev.tsv, test.tsv and gen.tsv. The generalisation set is in
    two parts, as its authors ask."""
    read = {
        name: [
            Pair(pair.source, with_fewer_blanks(pair.target), pair.domain)
            for pair in read_pairs(folder / f"{name}.tsv")
        ]
        for name in ("train", "dev", "test", "gen")
    }
    structural = [pair.domain in STRUCTURAL for pair in read["gen"]]
    parts = [
        [pair for pair, new in zip(read["gen"], structural, strict=True) if new is wanted]
        for wanted in (False, True)
    ]
    return {
        "train": read["train"],
        "valid": read["dev"],
        "test.same": read["test"],
        "test.lexical": parts[0],
        "test.structural": parts[1],
    }


def with_fewer_blanks(form: str) -> str:
    """Writes "cake ( x _ 3 )" as "cake (x_3)": the same logical form in three quarters of the
    tokens."""
    return form.replace("x _ ", "x_").replace("( ", "(").replace(" )", ")").replace(" ,", ",")


def questions(path: Path) -> list[Pair]:
    """Reads lines "LABEL:fine question" in Latin-1; the fine label is left out."""
    try:
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        label, _, question = line.partition(" ")
        coarse = label.partition(":")[0]
        if coarse not in QUESTIONS or not question.strip():
            raise DataError(
                f"{path}:{number} begins with {label!r}, expected one of "
                f"{', '.join(QUESTIONS)}, a colon, and a question"
            )
        pairs.append(Pair(" ".join(question.split()), QUESTIONS[coarse], "trec"))
    return pairs


def trec(folder: Path) -> Splits:
    """Returns the rows of train_5500.label and TREC_10.label. Questions that are in the test set
    are left out of the others."""
    test = questions(folder / "TREC_10.label")
    tested = {pair.source.lower() for pair in test}
    rows = [p for p in questions(folder / "train_5500.label") if p.source.lower() not in tested]
    random.Random(SEED).shuffle(rows)
    held_out = min(TREC_VALID_ROWS, len(rows) // 2)
    return {"train": rows[held_out:], "valid": rows[:held_out], "test.trec": test}


def split_of(folder: Path, split: str, domains: tuple[str, ...], rows: int) -> list[Pair]:
    """Returns the first rows of each domain of the folder en-de, in the order of their files."""
    if split == "test":
        paths = [folder / f"test.{domain}.tsv" for domain in domains]
    else:
        paths = [rows_file(folder, split)]
    taken: Counter[str] = Counter()
    pairs = []
    for pair in read_pairs(paths, domains, mojibake="drop"):
        taken[pair.domain] += 1
        if taken[pair.domain] <= rows:
            pairs.append(pair)
    return pairs


def domain(folder: Path) -> Splits:
    """Returns English sentences with the names of their domains."""
    found = {}
    for split, rows in DOMAIN_ROWS.items():
        pairs = split_of(folder, split, DOMAINS, rows)
        name = "test.domain" if split == "test" else split
        found[name] = [Pair(pair.source, pair.domain, pair.domain) for pair in pairs]
    return found


def paraphrases(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns two of the texts that have a translation in common, for each such translation. A text
    is in one of these pairs at most. `pairs` are texts and their translations."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for text, translation in pairs:
        texts[translation].append(text)
    found, taken = [], set()
    for same in texts.values():
        free = [text for text in dict.fromkeys(same) if text not in taken][:2]
        if len(free) == 2:
            found.append((free[0], free[1]))
            taken.update(free)
    return found


def difference(folder: Path) -> Splits:
    """Returns two everyday sentences of one language that mean the same as the source, and the
    words of the second that the first lacks as the target."""
    pairs = split_of(folder, "train", ("tatoeba",), sys.maxsize)
    english = paraphrases([(pair.source, pair.target) for pair in pairs])
    german = paraphrases([(pair.target, pair.source) for pair in pairs])
    rows = [
        Pair(first + BETWEEN + second, " ".join(words), "difference")
        for first, second in english + german
        if (words := words_lacking(first, second))
    ]
    random.Random(SEED).shuffle(rows)
    test, valid = (min(count, len(rows) // 4) for count in DIFFERENCE_ROWS)
    return {
        "train": rows[test + valid :],
        "valid": rows[test : test + valid],
        "test.difference": rows[:test],
    }


def words_lacking(first: str, second: str) -> list[str]:
    """Returns the words of the second text that are not among those of the first, in order."""
    known = set(WORD.findall(first))
    return [word for word in WORD.findall(second) if word not in known]


def write(splits: Splits, folder: Path) -> None:
    """Writes the rows, and prints how many there are. All have the name of the folder as their
    domain."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits.items():
        if not pairs:
            raise DataError(f"no rows for {name} of {folder.name}")
        lines = [f"{pair.source}\t{pair.target}\t{folder.name}\n" for pair in pairs]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    counts = ", ".join(f"{name} {len(pairs):,}" for name, pairs in splits.items())
    print(f"{folder.name}: {counts}", flush=True)


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--cogs", type=Path, help="data folder of COGS: train, dev, test, gen.tsv")
    parser.add_argument("--trec", type=Path, help="folder with train_5500.label, TREC_10.label")
    parser.add_argument("--data", type=Path, help="folder that contains en-de")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tasks' folders")
    options = parser.parse_args(arguments)
    made: dict[str, tuple[Callable[[Path], Splits], Path]] = {}
    if options.cogs:
        made["cogs"] = cogs, options.cogs
    if options.trec:
        made["trec"] = trec, options.trec
    if options.data:
        made["domain"] = domain, options.data / "en-de"
        made["difference"] = difference, options.data / "en-de"
    if not made:
        raise ConfigError("name the texts of at least one task: --cogs, --trec or --data")
    for name, (make, folder) in made.items():
        write(make(folder), options.out / name)


if __name__ == "__main__":
    sys.exit(main())
