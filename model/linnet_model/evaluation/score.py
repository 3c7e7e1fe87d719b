"""linnet-score: scores a model on the test sets of its data, beside baselines that need no model.

A bundle is decoded by linnet-decode in float32 if that is built, else by the search in Python.
Translations get BLEU (of characters in languages without blanks) and chrF of sacreBLEU; summaries
get ROUGE-1, 2 and L (F1, stemmed, the best of several references), and answers that repeat
themselves are counted. --run scores models that cannot be exported: perplexity of a language model
or a pre-trained model, accuracy and macro-F1 of a classifier, exact matches of a parser.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import time
from itertools import compress
from pathlib import Path
from typing import Any

import sacrebleu
from sentencepiece import SentencePieceProcessor

from linnet_model.bundle import model_sha256, read_manifest
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError, from_tables
from linnet_model.data_config import DataConfig
from linnet_model.evaluation.baselines import baselines, described
from linnet_model.evaluation.decoding import Decoding, choose_decoding, tokenizer_of
from linnet_model.evaluation.score_run import lines_read, row_of, score_run, test_rows
from linnet_model.export.card import write_card
from linnet_model.json_files import read_json, write_json
from linnet_model.languages import is_unspaced
from linnet_model.loops import looping_share
from linnet_model.new_file import writing
from linnet_model.styles import before_source, styles_of
from linnet_model.text_files import DataError, Pair, read_lines
from linnet_model.texts import card_examples
from linnet_model.train.rouge import ROUGE, rouge, rouge_signature
from linnet_model.train.stages import result_of
from linnet_model.train.validation import bleu

WEIGHTS_AND_SEARCH = ("model_sha256", "engine", "options")  # keys of scores.json
EXAMPLES = """examples:
  linnet-score --bundle model/bundles/en-de --data DATA --write
  linnet-score --bundle model/bundles/en-de --data DATA --domain tatoeba --limit 200
  linnet-score --run runs/lm-de --data DATA
"""


def read_references(
    folder: Path, config: DataConfig, domain: str, pairs: list[Pair]
) -> list[list[str]]:
    """Returns all references of `pairs`, the first rows of the test set: of refs.<domain>.tsv, line
    n of which belongs to line n of the test set, or else the targets."""
    path = folder / f"refs.{domain}.tsv"
    if config.reverse or not path.is_file():  # the file has references of the second column
        return [[pair.target] for pair in pairs]
    lines, read = list(read_lines(path)), lines_read(folder, config, domain)
    if len(lines) != len(read):
        raise DataError(
            f"{path} has {len(lines)} lines for {len(read)} rows of test.{domain}.tsv, line n must "
            "have the references of row n: add or remove lines"
        )
    return [line.split("\t") for line in compress(lines, read)][: len(pairs)]


def fits_a_model(tokenizer: SentencePieceProcessor, text: str, longest: int) -> bool:
    """Returns whether the text and the end token are at most `longest` tokens."""
    return len(tokenizer.encode(text)) + 1 <= longest


def measure(
    task: str, references: list[list[str]], answers: list[str], language: str = ""
) -> dict[str, float]:
    """Returns the scores of answers in `language`, BCP-47."""
    if task == "translate":
        first = [[r[0] for r in references]]
        return {
            "BLEU": bleu(language).corpus_score(answers, first).score,
            "chrF": sacrebleu.corpus_chrf(answers, first).score,
        }
    found = rouge(references, answers, language)
    names = ("ROUGE-1", "ROUGE-2", "ROUGE-L")
    return {name: found[kind] for name, kind in zip(names, ROUGE, strict=True)}


def length_ratio(references: list[list[str]], answers: list[str], language: str = "") -> float:
    """Returns the words of all answers divided by the words of their first references; in a
    language without blanks between words, the characters."""

    def length(text: str) -> int:
        words = text.split()
        return len("".join(words) if is_unspaced(language) else words)

    wanted = sum(length(r[0]) for r in references)
    return sum(map(length, answers)) / max(1, wanted)


def signatures(task: str, language: str = "") -> dict[str, str]:
    if task != "translate":
        version = importlib.metadata.version("rouge-score")
        return {"ROUGE": rouge_signature(version, language)}
    found = {"BLEU": bleu(language), "chrF": sacrebleu.CHRF()}
    for metric in found.values():
        metric.corpus_score(["a"], [["a"]])
    return {name: str(metric.get_signature()) for name, metric in found.items()}


def keep_other_tests(scores: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Keeps the results of other test sets, and those that another command has added, if weights,
    engine and options are the same, else says which are left out."""
    if before is not None and all(before.get(key) == scores[key] for key in WEIGHTS_AND_SEARCH):
        scores |= {key: value for key, value in before.items() if key not in scores}
    measured = {test["domain"] for test in scores["tests"]}
    others = [t for t in (before or {}).get("tests", []) if t["domain"] not in measured]
    if before is None or not others:
        return
    same = (*WEIGHTS_AND_SEARCH, "measures", "signatures")
    different = [key for key in same if before.get(key) != scores[key]]  # older files lack some
    if different:
        print(
            f"linnet-score: {', '.join(t['domain'] for t in others)} left out, scored with another "
            f"{', '.join(different)}",
            file=sys.stderr,
        )
        return
    scores["tests"] += others
    scores["tests"].sort(key=lambda test: test["domain"])


def write_answers(
    path: Path, texts: list[str], references: list[list[str]], answers: list[str]
) -> None:
    """Writes texts, references and answers for inspection. They are not part of a bundle, because
    some test texts are share-alike."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path), path.open("w", encoding="utf-8") as file:
        for text, wanted, answer in zip(texts, references, answers, strict=True):
            file.write(row_of(text, wanted[0], answer))


def score(
    bundle: Path,
    data: Path,
    limit: int,
    domains: list[str],
    decoding: Decoding,
    answers_folder: Path | None = None,
) -> dict[str, Any]:
    manifest = read_manifest(bundle)
    training = read_json(bundle / "training.json")
    if training is None:
        raise ConfigError(f"{bundle} has no training.json, which names its data folder")
    config = from_tables(DataConfig, training["recipe"]["data"], "data.")
    task, folder = training["recipe"]["bundle"]["task"], data / config.folder
    language = manifest.get("source_language_code", "")
    into = manifest.get("target_language_code", "")
    reading = tokenizer_of(bundle, manifest, "source")
    longest = manifest["limits"]["max_source_tokens"]
    before = before_source(manifest)  # of any style, as all have as many

    def answered(texts: list[str], style: str = "") -> list[str]:
        return decoding.answers(bundle, manifest, texts, style) if texts else []

    tests: list[dict[str, Any]] = []
    for domain, every in test_rows(folder, config, domains).items():
        pairs = every[:limit] if limit else every
        references = read_references(folder, config, domain, pairs)
        fits = [fits_a_model(reading, pair.source, longest - len(before)) for pair in pairs]
        pairs, references = list(compress(pairs, fits)), list(compress(references, fits))
        if not pairs:
            print(
                f"linnet-score: {domain} left out, none of its {len(every)} rows has a text of at "
                f"most the {longest} tokens that the model reads",
                file=sys.stderr,
            )
            continue
        texts = [pair.source for pair in pairs]
        style = config.styles.get(domain, "")
        begin = time.monotonic()
        answers = answered(texts, style)
        seconds = time.monotonic() - begin
        trivial = baselines(task, language, texts, references)
        if answers_folder is not None:
            write_answers(answers_folder / f"{domain}.tsv", texts, references, answers)
        tests.append(
            {
                "domain": domain,
                **({"style": style} if style else {}),
                "rows": len(pairs),
                "rows_of_file": len(every),
                "seconds": round(seconds, 1),
                "length_ratio": round(length_ratio(references, answers, into), 3),
                "looping_share": round(looping_share(texts, answers), 5),
                "model": measure(task, references, answers, into),
                "baselines": {
                    name: measure(task, references, found, into) for name, found in trivial.items()
                },
            }
        )
        if not all(fits):
            print(
                f"{domain}: {fits.count(False)} of {len(fits)} texts left out, they are longer "
                f"than the {longest} tokens that the model reads",
                file=sys.stderr,
            )
        best = {k: max(b[k] for b in tests[-1]["baselines"].values()) for k in tests[-1]["model"]}
        shown = "  ".join(f"{k} {v:.2f} ({best[k]:.2f})" for k, v in tests[-1]["model"].items())
        ratio = f"length ratio {tests[-1]['length_ratio']:.3f}"
        print(f"{domain:12} {len(pairs):5} rows  {shown}  {ratio}  {seconds:.1f} s", flush=True)
    if not tests:
        raise DataError(f"no test set of {folder} has a text that the model reads")
    examples = training["recipe"]["bundle"].get("examples", [])
    examples = [*examples, *card_examples(task, language)]
    styles = styles_of(manifest)
    columns = {style: answered(examples, style) for style in styles} or {
        "answer": answered(examples)
    }
    return {
        "bundle_version": manifest["version"],
        "model_sha256": model_sha256(manifest),
        "engine": decoding.name,
        "options": decoding.options(manifest),
        "measures": list(tests[0]["model"]),
        "signatures": signatures(task, into) | described(list(tests[0]["baselines"])),
        "tests": tests,
        "examples": [
            {"text": text, **dict(zip(columns, row, strict=True))}
            for text, *row in zip(examples, *columns.values(), strict=True)
        ],
    }


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__, epilog=EXAMPLES)
    what = parser.add_argument_group("model and data")
    which = what.add_mutually_exclusive_group(required=True)
    which.add_argument("--bundle", type=Path, metavar="DIR", help="bundle of linnet-export")
    which.add_argument(
        "--run",
        type=Path,
        metavar="DIR",
        help="run folder of linnet-train, or a checkpoint in it: a language model, a pre-trained "
        "model, a classifier or a parser",
    )
    what.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder that contains the recipe's data.folder",
    )
    what.add_argument(
        "--domain", action="append", default=[], help="only this test set (repeatable)"
    )
    what.add_argument(
        "--limit",
        type=count_from(0),
        default=0,
        metavar="N",
        help="first N rows of each test set; 0: all",
    )
    how = parser.add_argument_group("how a bundle is decoded")
    how.add_argument(
        "--engine",
        choices=("auto", "command", "python"),
        default="auto",
        help="command: linnet-decode; auto: linnet-decode if it is built, else python",
    )
    how.add_argument(
        "--decode",
        type=Path,
        metavar="FILE",
        help="path of linnet-decode [that of the release build]",
    )
    how.add_argument(
        "--decode-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="flag for linnet-decode, such as --threads=1 (repeatable) [--compute=float32]",
    )
    out = parser.add_argument_group("output")
    out.add_argument(
        "--write",
        action="store_true",
        help="write scores.json into the bundle or the run, and the bundle's MODEL_CARD.md",
    )
    out.add_argument(
        "--answers",
        type=Path,
        metavar="DIR",
        help="write source, reference and answer of all rows, one .tsv per test set, of a "
        "classifier labels.tsv",
    )
    options = parser.parse_args(arguments)
    if options.run and (options.engine != "auto" or options.decode or options.decode_flag):
        parser.error(
            "--engine, --decode and --decode-flag are for --bundle, --run does not use them"
        )
    if options.answers and options.answers.is_file():
        parser.error(f"--answers is {options.answers}, which is a file: name a folder")
    return options


@command
def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    if options.run:
        run = result_of(options.run)
        scores = score_run(run, options.data, options.limit, options.domain, options.answers)
        if options.write:
            folder = run if run.is_dir() else run.parent
            write_json(folder / "scores.json", scores)
    else:
        scores = score(
            options.bundle,
            options.data,
            options.limit,
            options.domain,
            choose_decoding(options.engine, options.decode, options.decode_flag, options.write),
            options.answers,
        )
        if options.write:
            keep_other_tests(scores, read_json(options.bundle / "scores.json"))
            write_json(options.bundle / "scores.json", scores)
            write_card(options.bundle)
    facts = {k: v for k, v in scores.items() if k != "tests"}
    print(json.dumps(facts, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
