"""Scores a run of linnet-train on its test sets without a bundle: language models, pre-trained
models, classifiers and parsers, which cannot be exported.

Perplexities of a language model and labels stand beside those of a trivial model with the same
training texts.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy
import sentencepiece
import torch

from linnet_model.bundle import default_options
from linnet_model.config import ANSWERED, BundleConfig, ConfigError, Recipe
from linnet_model.data_config import PLAIN_DOMAIN, DataConfig
from linnet_model.export.search import Options, answer_texts
from linnet_model.network import ops
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.text_files import (
    DataError,
    Pair,
    Reading,
    read_lines,
    read_pairs,
    read_plain,
    turned,
)
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.checkpoint import averaged_model
from linnet_model.train.datasets import PairDataset, labelled, training_pairs
from linnet_model.train.objectives import make_dataset
from linnet_model.train.validation import (
    exact_match,
    label_scores,
    perplexities,
    token_losses,
)


def test_domains(folder: Path, wanted: list[str]) -> list[str]:
    """Returns the domains of a folder's test.<domain>.tsv, or `wanted` if they exist."""
    found = sorted(
        path.name.removeprefix("test.").removesuffix(".tsv") for path in folder.glob("test.*.tsv")
    )
    for domain in wanted:
        if domain not in found:
            raise ConfigError(
                f"no test.{domain}.tsv in {folder}, there are {', '.join(found) or 'none'}"
            )
    if not found:
        raise ConfigError(f"no test.<domain>.tsv in {folder}")
    return wanted or found


def test_rows(folder: Path, config: DataConfig, wanted: list[str]) -> dict[str, list[Pair]]:
    """Reads the rows of each test set: the recipe's plain files, or every test.<domain>.tsv."""
    empty = config.empty_lines
    if any(config.plain("test")):
        others = [domain for domain in wanted if domain != PLAIN_DOMAIN]
        if others:
            raise ConfigError(
                f"there is no test set {others[0]}, that of data.test_source and data.test_target "
                f"has the name {PLAIN_DOMAIN}"
            )
        source, target = (folder / name if name else None for name in config.plain("test"))
        return {PLAIN_DOMAIN: turned(read_plain(source, target, "warn", empty), config)}
    if any(config.plain("train")):
        raise ConfigError("data.test_source and data.test_target are missing, name the test files")
    return {
        domain: turned(read_pairs(folder / f"test.{domain}.tsv", None, "warn", empty), config)
        for domain in test_domains(folder, wanted)
    }


def lines_read(folder: Path, config: DataConfig, domain: str) -> list[bool]:
    """Returns of each line of a test set whether it is one of test_rows, which leave out those with
    an empty side if the recipe does."""
    plain = [folder / name for name in config.plain("test") if name]
    rows: Iterable[Sequence[str]]
    if plain:
        rows = zip(*map(read_lines, plain), strict=True)
    else:
        rows = (line.split("\t") for line in read_lines(folder / f"test.{domain}.tsv"))
    return [all(column.strip() for column in row) for row in rows]


def unigram_perplexities(training: PairDataset, test: PairDataset) -> dict[str, float]:
    """Returns the perplexities of a unigram model of the training tokens, with add-one
    smoothing."""
    counts = numpy.bincount(training.target_ids, minlength=int(test.target_ids.max()) + 1) + 1.0
    logs = numpy.log(counts / counts.sum())
    nll = -float(logs[test.target_ids].sum())
    return perplexities(test, {"all": (nll, len(test.target_ids))})


def score_texts(
    model: EncoderDecoder,
    recipe: Recipe,
    tests: dict[str, PairDataset],
    training: PairDataset | None = None,
) -> list[dict[str, Any]]:
    """Returns the perplexities of a language model or a pre-trained model, per test set; those of
    the training's tokens are the baseline of a language model."""
    rows = []
    for name, dataset in tests.items():
        losses = token_losses(
            model,
            dataset,
            torch.device("cpu"),
            recipe.train.batch_target_tokens,
            recipe.train.batch_source_tokens,
        )
        rows.append(
            {
                "domain": name,
                "rows": len(dataset),
                "model": perplexities(dataset, losses),
                "baseline": unigram_perplexities(training, dataset) if training else {},
            }
        )
    return rows


def answers_of(
    model: EncoderDecoder,
    recipe: Recipe,
    tokenizer: sentencepiece.SentencePieceProcessor,
    texts: list[str],
) -> list[str]:
    """Returns the answers of a model to texts by the search in Python, as a bundle's would be."""
    ops.load()
    return answer_texts(
        torch.jit.script(model.eval()),
        tokenizer,
        tokenizer,
        texts,
        Options(**default_options(recipe.bundle)),
        recipe.bundle.max_target_tokens,
        recipe.data.max_source_tokens,
    )


def answers_of_run(run: Path, texts: list[str], bundle: BundleConfig) -> list[str]:
    """Returns the answers of the averaged weights of a run's last checkpoint, by the limits and
    search options of `bundle`."""
    model, recipe, _ = averaged_model([run])
    recipe.bundle = bundle
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    tokenizer = load_tokenizer(run / "source.spm", recipe.data.capitals_mark)
    return answers_of(model, recipe, tokenizer, texts)


def row_of(source: str, target: str, answer: str) -> str:
    """Returns a line of three columns. A model may write any character, also those between lines
    and columns, which become blanks."""
    cell = re.sub("[\t\n\r]", " ", answer)
    return f"{source}\t{target}\t{cell}\n"


def write_answers(folder: Path | None, name: str, pairs: list[Pair], answers: list[str]) -> None:
    """Writes source, target and answer of each row to name.tsv, if a folder is given."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = [row_of(p.source, p.target, a) for p, a in zip(pairs, answers, strict=True)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def score_parses(
    decode: Any, tests: dict[str, list[Pair]], answers_folder: Path | None
) -> list[dict[str, Any]]:
    """Returns the share of answers that are the target, per test set."""
    rows = []
    for name, pairs in tests.items():
        answers = decode([pair.source for pair in pairs])
        write_answers(answers_folder, name, pairs, answers)
        match = exact_match([pair.target for pair in pairs], answers)
        rows.append(
            {
                "domain": name,
                "rows": len(pairs),
                "model": {"exact_match": match},
                "baseline": {},
            }
        )
    return rows


def score_labels(
    decode: Any, training: list[Pair], tests: dict[str, list[Pair]], answers_folder: Path | None
) -> list[dict[str, Any]]:
    """Returns accuracy and macro-F1 over all test rows with a label of the training, and the recall
    of each label. Says how many rows have another one."""
    known = {pair.target for pair in training}
    every = [pair for rows in tests.values() for pair in rows]
    pairs = [pair for pair in every if pair.target in known]
    if len(pairs) < len(every):
        others = sorted({pair.target for pair in every} - known)
        print(
            f"linnet-score: {len(every) - len(pairs)} of {len(every)} rows left out, the training "
            f"has no {', '.join(others)}",
            file=sys.stderr,
        )
    if not pairs:
        raise DataError(f"no test row has one of the labels {', '.join(sorted(known))}")
    answers = decode([pair.source for pair in pairs])
    write_answers(answers_folder, "labels", pairs, answers)
    wanted = [pair.target for pair in pairs]
    most_frequent = Counter(pair.target for pair in training).most_common(1)[0][0]
    right = Counter(w for w, a in zip(wanted, answers, strict=True) if w == a)
    total = Counter(wanted)
    return [
        {
            "domain": "all labels",
            "rows": len(pairs),
            "model": label_scores(wanted, answers),
            "baseline": label_scores(wanted, [most_frequent] * len(wanted)),
            "found_of_label": {k: 100.0 * right[k] / total[k] for k in sorted(total)},
            "answers_without_label": sum(answer not in known for answer in answers),
        }
    ]


def score_run(
    run: Path, data: Path, limit: int, wanted: list[str], answers_folder: Path | None = None
) -> dict[str, Any]:
    """Scores the averaged weights of the run's last checkpoint on the first `limit` rows of each
    test set; 0: all rows."""
    model, recipe, position = averaged_model([run])
    model.eval()
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    config, folder = recipe.data, data / recipe.data.folder
    file = (run if run.is_dir() else run.parent) / "source.spm"
    tokenizer = load_tokenizer(file, config.capitals_mark)
    tests = {
        name: labelled(rows[: limit or None], config)
        for name, rows in test_rows(folder, config, wanted).items()
    }
    seed, baseline = recipe.train.seed, "none"
    if recipe.bundle.task in ("language_model", "pretrain"):
        if answers_folder is not None:
            raise ConfigError(
                f"{run} has the task {recipe.bundle.task}, which gives no answers: leave out "
                "--answers"
            )
        sets = {name: make_dataset(pairs, tokenizer, config, seed) for name, pairs in tests.items()}
        training = None
        if recipe.bundle.task == "language_model":
            read = training_pairs(folder, config, seed, Reading())
            training = make_dataset(read, tokenizer, config, seed)
            baseline = "frequencies of the training's tokens"
        rows = score_texts(model, recipe, sets, training)
    elif recipe.bundle.task in ANSWERED:
        decode = functools.partial(answers_of, model, recipe, tokenizer)
        if recipe.bundle.task == "parse":
            rows = score_parses(decode, tests, answers_folder)
        else:
            pairs = training_pairs(folder, config, seed, Reading())
            rows = score_labels(decode, pairs, tests, answers_folder)
            baseline = "the most frequent label of the training"
    else:
        raise ConfigError(
            f"{run} has the task {recipe.bundle.task}, export it with linnet-export and score the "
            "bundle: linnet-score --bundle"
        )
    for row in rows:
        shown = "  ".join(
            f"{name} {value:.2f}"
            + (f" ({row['baseline'][name]:.2f})" if name in row["baseline"] else "")
            for name, value in row["model"].items()
        )
        print(f"{row['domain']:12} {row['rows']:6} rows  {shown}", flush=True)
    return {
        "run": str(run),
        "task": recipe.bundle.task,
        "update": position.update,
        "baseline": baseline,
        "tests": rows,
    }


__all__ = ["lines_read", "row_of", "score_run", "test_domains", "test_rows"]
