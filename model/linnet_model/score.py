"""linnet-score: measures a bundle on the test sets of its data, beside a trivial baseline.

Texts are decoded by linnet-decode, the engine that serves, where it is built; --engine python
searches in Python. sacreBLEU and chrF for translations; ROUGE-1, 2, L (F1, stemmed) for summaries,
the best of several references.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import sacrebleu
from tqdm import tqdm

from linnet_model.bundle import load_module, read_manifest
from linnet_model.card import read_json, write_card
from linnet_model.config import ConfigError
from linnet_model.data import DataError, Pair, open_text, read_pairs
from linnet_model.evaluate import ROUGE, rouge
from linnet_model.ops import CHECKOUT
from linnet_model.search import Options, beam_search
from linnet_model.tokenizer import load_tokenizer
from linnet_model.transducer import EOS

BATCH = 32


def decode_command(named: Path | None) -> Path | None:
    """linnet-decode: the one named, else the release build of this checkout if it is there."""
    if named is not None:
        if not named.is_file():
            raise ConfigError(
                f"no linnet-decode at {named}, build it with ./start.sh --build or use --engine "
                "python"
            )
        return named
    built = CHECKOUT / "build" / "release" / "bin" / "linnet-decode"
    return built if built.is_file() else None


def decode_with_command(
    command: Path, bundle: Path, texts: list[str], extra: list[str]
) -> list[str]:
    """JSON lines in, JSON lines out; the first error ends the scoring."""
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    done = subprocess.run(
        [str(command), "--bundle", str(bundle), *extra],
        input=lines,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for number, answer in enumerate(answers, 1):
        if "error" in answer:
            raise ConfigError(f"{command.name} refused text {number}: {answer['error']['message']}")
    if done.returncode != 0 or len(answers) != len(texts):
        raise ConfigError(
            f"{command.name} gave {len(answers)} answers to {len(texts)} texts and status "
            f"{done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return [answer["hypotheses"][0]["text"] for answer in answers]


def decode_in_python(bundle: Path, manifest: dict[str, Any], texts: list[str]) -> list[str]:
    module = load_module(bundle / manifest["model_file"])
    reading = load_tokenizer(bundle / manifest["source_tokenizer_file"])
    writing = load_tokenizer(bundle / manifest["target_tokenizer_file"])
    sources = [[*reading.encode(text), EOS] for text in texts]
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    answers = [""] * len(texts)
    options, reach = (
        Options.of_manifest(manifest),
        max(manifest["architecture"]["decoder_kernel_sizes"]),
    )
    for begin in tqdm(range(0, len(order), BATCH), unit="batch", disable=None):
        part = order[begin : begin + BATCH]
        found = beam_search(
            module,
            [sources[i] for i in part],
            options,
            manifest["limits"]["max_target_tokens"],
            reach,
        )
        for i, hypotheses in zip(part, found, strict=True):
            answers[i] = writing.decode(hypotheses[0].ids[:-1])
    return answers


def read_references(folder: Path, domain: str, pairs: list[Pair]) -> list[list[str]]:
    """All references of each row: refs.<domain>.tsv beside the test file, or its targets."""
    path = folder / f"refs.{domain}.tsv"
    if not path.is_file():
        return [[pair.target] for pair in pairs]
    with open_text(path) as lines:
        references = [line.rstrip("\n").split("\t") for line in lines]
    if len(references) < len(pairs):
        raise DataError(
            f"{path} has {len(references)} lines for {len(pairs)} rows of test.{domain}.tsv"
        )
    return references[: len(pairs)]


def measure(task: str, references: list[list[str]], answers: list[str]) -> dict[str, float]:
    if task == "translate":
        first = [[r[0] for r in references]]
        return {
            "BLEU": sacrebleu.corpus_bleu(answers, first).score,
            "chrF": sacrebleu.corpus_chrf(answers, first).score,
        }
    return dict(
        zip(
            ("ROUGE-1", "ROUGE-2", "ROUGE-L"),
            (rouge(references, answers)[k] for k in ROUGE),
            strict=True,
        )
    )


def signatures(task: str) -> dict[str, str]:
    if task != "translate":
        version = importlib.metadata.version("rouge-score")
        return {"ROUGE": f"rouge-score {version}, F1, use_stemmer=True"}
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    bleu.corpus_score(["a"], [["a"]])
    chrf.corpus_score(["a"], [["a"]])
    return {"BLEU": str(bleu.get_signature()), "chrF": str(chrf.get_signature())}


def keep_other_tests(scores: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Adds the test sets that were measured before with the same weights, engine and options."""
    same = ("model_sha256", "engine", "options", "measures", "signatures")
    if before is None or any(before[key] != scores[key] for key in same):
        return
    measured = {test["domain"] for test in scores["tests"]}
    scores["tests"] += [test for test in before["tests"] if test["domain"] not in measured]
    scores["tests"].sort(key=lambda test: test["domain"])


def write_answers(
    path: Path, texts: list[str], references: list[list[str]], answers: list[str]
) -> None:
    """To read by eye. Not part of a bundle: some test texts are share-alike."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for text, wanted, answer in zip(texts, references, answers, strict=True):
            file.write(f"{text}\t{wanted[0]}\t{answer}\n")


def test_domains(folder: Path, wanted: list[str]) -> list[str]:
    found = sorted(path.name.split(".")[1] for path in folder.glob("test.*.tsv"))
    for domain in wanted:
        if domain not in found:
            raise ConfigError(
                f"no test.{domain}.tsv in {folder}, there are {', '.join(found) or 'none'}"
            )
    if not found:
        raise ConfigError(f"no test.<domain>.tsv in {folder}")
    return wanted or found


def score(
    bundle: Path,
    data: Path,
    limit: int,
    domains: list[str],
    engine: str,
    command: Path | None,
    extra: list[str],
    answers_folder: Path | None = None,
) -> dict[str, Any]:
    manifest = read_manifest(bundle)
    training = read_json(bundle / "training.json")
    if training is None:
        raise ConfigError(f"{bundle} has no training.json, which names its data folder")
    task, folder = training["recipe"]["bundle"]["task"], data / training["recipe"]["data"]["folder"]
    command = None if engine == "python" else decode_command(command)
    if engine == "command" and command is None:
        raise ConfigError(
            "linnet-decode is not built, build it with ./start.sh --build or use --engine python"
        )
    tests = []
    for domain in test_domains(folder, domains):
        every = read_pairs(folder / f"test.{domain}.tsv")
        pairs = every[:limit] if limit else every
        references = read_references(folder, domain, pairs)
        texts = [pair.source for pair in pairs]
        begin = time.monotonic()
        answers = (
            decode_with_command(command, bundle, texts, extra)
            if command
            else decode_in_python(bundle, manifest, texts)
        )
        seconds = time.monotonic() - begin
        if task == "translate":
            trivial = texts
        else:
            words = round(median(len(r[0].split()) for r in references))
            trivial = [" ".join(text.split()[:words]) for text in texts]
        if answers_folder is not None:
            write_answers(answers_folder / f"{domain}.tsv", texts, references, answers)
        tests.append(
            {
                "domain": domain,
                "rows": len(pairs),
                "rows_of_file": len(every),
                "seconds": round(seconds, 1),
                "model": measure(task, references, answers),
                "baseline": measure(task, references, trivial),
            }
        )
        shown = "  ".join(
            f"{k} {v:.2f} ({tests[-1]['baseline'][k]:.2f})" for k, v in tests[-1]["model"].items()
        )
        print(f"{domain:12} {len(pairs):5} rows  {shown}  {seconds:.0f} s", flush=True)
    options = manifest["default_options"]
    return {
        "bundle_version": manifest["version"],
        "model_sha256": next(
            f["sha256"] for f in manifest["files"] if f["name"] == manifest["model_file"]
        ),
        "engine": "linnet-decode"
        if command
        else "the search in Python (linnet_model.search), float32",
        "options": f"beam {options['beam_size']}, length penalty {options['length_penalty']:g}"
        + (
            f", no {options['no_repeat_ngram_size']}-gram twice"
            if options["no_repeat_ngram_size"]
            else ""
        ),
        "baseline": "source copied"
        if task == "translate"
        else "first words (as many as the median reference)",
        "measures": list(tests[0]["model"]),
        "signatures": signatures(task),
        "tests": tests,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="linnet-score", description=__doc__.split("\n\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder that holds the recipe's data.folder"
    )
    parser.add_argument(
        "--limit", type=int, default=0, help="first rows of each test set only; 0: all"
    )
    parser.add_argument(
        "--domain", action="append", default=[], help="only these test sets (repeatable)"
    )
    parser.add_argument("--engine", choices=("auto", "command", "python"), default="auto")
    parser.add_argument(
        "--decode", type=Path, help="linnet-decode, if not that of the release build"
    )
    parser.add_argument(
        "--decode-flag", action="append", default=[], help="passed on, for instance --threads=1"
    )
    parser.add_argument(
        "--write", action="store_true", help="write scores.json and MODEL_CARD.md into the bundle"
    )
    parser.add_argument(
        "--answers", type=Path, help="folder for source, reference, answer of all rows"
    )
    options = parser.parse_args(arguments)
    try:
        scores = score(
            options.bundle,
            options.data,
            options.limit,
            options.domain,
            options.engine,
            options.decode,
            options.decode_flag,
            options.answers,
        )
        print(
            json.dumps(
                {k: v for k, v in scores.items() if k != "tests"}, indent=2, ensure_ascii=False
            )
        )
        if options.write:
            keep_other_tests(scores, read_json(options.bundle / "scores.json"))
            text = json.dumps(scores, indent=2, ensure_ascii=False) + "\n"
            (options.bundle / "scores.json").write_text(text, encoding="utf-8")
            write_card(options.bundle)
    except (ConfigError, DataError) as error:
        print(f"linnet-score: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
