"""linnet-compare: compares the mixers on the same data, with equal sizes and updates.

One recipe is trained for each mixer and seed; the feed-forward width is changed so that all models
have as many parameters as the recipe's. The learning rate is the recipe's, or for mixers of --tune
the one of --rates with the lowest validation loss of seed 1. Every model is exported, decodes the
test set with linnet-decode, and is timed. Timed updates and decoding take turns between the models,
so that load on the machine affects all alike. Results are written to --out as they come. Existing
ones are not made again; they are refused if recipe, data or arguments have changed since.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import sacrebleu
import torch
from rouge_score import rouge_scorer, scoring
from sacrebleu.metrics.base import Metric

from linnet_model import __version__
from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError, Recipe, read_recipe, to_tables
from linnet_model.decode_command import decode_texts, find_decode
from linnet_model.evaluation.compare_models import (
    ABLATION,
    CSAN,
    MIXERS,
    ROWS,
    as_settings,
    recipe_of,
    weights_in,
)
from linnet_model.evaluation.compare_speed import decoding_speed, training_speed
from linnet_model.evaluation.score import read_references
from linnet_model.evaluation.score_run import test_domains, test_rows
from linnet_model.export.command import export
from linnet_model.network.model_config import require
from linnet_model.train.command import prepare_tokenizer

BOOTSTRAP_SAMPLES = 1000


def train(recipe: Recipe, path: Path, data: Path, run: Path, device: str) -> None:
    """Runs linnet-train --resume in a subprocess."""
    command = [sys.executable, "-m", "linnet_model.train", "--recipe", str(path)]
    command += ["--data", str(data), "--out", str(run), "--device", device, "--resume"]
    threads = str(recipe.train.threads or os.cpu_count())
    package = str(Path(__file__).resolve().parents[2])  # also where it is not installed
    environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    environment["PYTHONPATH"] = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    with (run / "output.txt").open("a", encoding="utf-8") as output:
        done = subprocess.run(
            command + as_settings(recipe),
            stdout=output,
            stderr=output,
            env=environment,
            check=False,
        )
    if done.returncode != 0:
        text = (run / "output.txt").read_text(encoding="utf-8")
        raise ConfigError(f"training of {run.name} failed: {text.strip()[-800:]}")


def in_plain_floats(metric: Metric) -> Metric:
    """Makes a metric compute from Python floats. sacrebleu's resampling mixes numpy's float32 with
    Python's 0.0 for scores without a match, and its mean of the two fails."""
    compute = metric._compute_score_from_stats

    def from_plain(stats: list[Any]) -> Any:
        return compute([float(count) for count in stats])

    setattr(metric, "_compute_score_from_stats", from_plain)  # noqa: B010 - mypy: a method
    return metric


def interval(task: str, references: list[list[str]], answers: list[str]) -> dict[str, list[float]]:
    """Returns measure -> [score, low, high], with the 95 % bootstrap interval."""
    if task == "translate":
        first = [[r[0] for r in references]]
        found = {}
        for name, metric in (("BLEU", sacrebleu.BLEU()), ("chrF", sacrebleu.CHRF())):
            score = in_plain_floats(metric).corpus_score(
                answers, first, n_bootstrap=BOOTSTRAP_SAMPLES
            )
            middle, half = float(score._mean), float(score._ci)
            found[name] = [float(score.score), middle - half, middle + half]
        return found
    kinds = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    scorer = rouge_scorer.RougeScorer(list(kinds), use_stemmer=True)
    aggregator = scoring.BootstrapAggregator(n_samples=BOOTSTRAP_SAMPLES)
    for wanted, answer in zip(references, answers, strict=True):
        scores = [scorer.score(reference, answer) for reference in wanted]
        aggregator.add_scores(
            {k: max((s[k] for s in scores), key=lambda x: x.fmeasure) for k in kinds}
        )
    low_mid_high = aggregator.aggregate()
    return {
        shown: [
            100.0 * float(getattr(low_mid_high[k], part).fmeasure)
            for part in ("mid", "low", "high")
        ]
        for k, shown in kinds.items()
    }


def train_run(recipe: Recipe, run: Path, options: argparse.Namespace) -> float:
    """Trains the model of a recipe in the folder `run`; returns its last validation loss, in nats
    per token."""
    run.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.out / "source.spm", run / "source.spm")
    train(recipe, options.recipe, options.data, run, options.device)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    return float([entry["nll_all"] for entry in log if entry["kind"] == "valid"][-1])


def run_of(mixer: str, seed: int, rate: float | None, out: Path) -> Path:
    return out / (f"{mixer}-{seed}" if rate is None else f"{mixer}-{seed}-rate-{rate:g}")


def validation_losses(mixer: str, base: Recipe, options: argparse.Namespace) -> dict[str, float]:
    """Trains seed 1 of a mixer with each of --rates; returns rate -> validation loss."""
    return {
        f"{rate:g}": train_run(
            recipe_of(mixer, base, 1, rate), run_of(mixer, 1, rate, options.out), options
        )
        for rate in options.rates
    }


def train_and_score(
    mixer: str,
    seed: int,
    rate: float | None,
    options: argparse.Namespace,
    base: Recipe,
    domain: str,
    command: Path,
) -> dict[str, Any]:
    """Trains with that learning rate, or with the recipe's."""
    recipe = recipe_of(mixer, base, seed, rate)
    run = run_of(mixer, seed, rate, options.out)
    bundle = options.out / "bundles" / f"{mixer}-{seed}"
    valid_nll = train_run(recipe, run, options)
    export(run, bundle, 1, "float32", "comparison", False)
    folder = options.data / recipe.data.folder
    pairs = test_rows(folder, recipe.data, [domain])[domain][: options.rows or None]
    answers = decode_texts(
        command,
        bundle,
        [pair.source for pair in pairs],
        [f"--device={options.device}", f"--threads={recipe.train.threads}", "--compute=float32"],
    )
    return {
        "mixer": mixer,
        "seed": seed,
        "learning_rate": recipe.train.learning_rate,
        "parameters": weights_in(recipe.model),
        "ffn_width": recipe.model.ffn_width,
        "valid_nll": valid_nll,
        "test": domain,
        "rows": len(pairs),
        "scores": interval(
            recipe.bundle.task, read_references(folder, recipe.data, domain, pairs), answers
        ),
    }


def machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.processor()}, {len(names)} cores"


def version() -> str:
    """Returns the commit of the checkout that this package is in, else the package's version."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or __version__


def kept(path: Path, settings: dict[str, Any], make: Callable[[], Any]) -> Any:
    """Returns the result stored in `path`, else stores and returns that of `make`."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        text = json.dumps({"settings": settings, "result": make()}, indent=1)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))["result"]


def refuse_changed(path: Path, settings: dict[str, Any]) -> None:
    """Refuses a result in `path` that was made with other settings."""
    if not path.exists():
        return
    made_with = json.loads(path.read_text(encoding="utf-8")).get("settings", {})
    changed = [name for name, value in settings.items() if made_with.get(name) != value]
    require(
        not changed,
        f"{path} was made with another {', '.join(changed)}: remove it to make it again, or choose "
        "another --out",
    )


def test_set(recipe: Recipe, options: argparse.Namespace) -> str:
    """Returns the domain of the test set, which must exist."""
    domains = [options.test] if options.test else recipe.data.valid_domains[:1]
    require(
        len(domains) == 1,
        f"data.valid_domains of {options.recipe} is empty and --test is not given: name a test set",
    )
    return test_domains(options.data / recipe.data.folder, domains)[0]


def command_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Returns the command with the arguments that its results depend on, without the paths of this
    machine."""
    recipe = options.recipe
    words = ["linnet-compare", "--recipe", recipe.name if recipe.is_absolute() else str(recipe)]
    words += ["--data", "DATA", "--out", "OUT"]
    for name, value in vars(options).items():
        if name in ("recipe", "data", "out", "decode", "report", "page"):
            continue
        if value != parser.get_default(name):
            words.append(f"--{name.replace('_', '-')}")
            words += map(str, value if isinstance(value, list) else [value])
    return shlex.join(words)


def compare(options: argparse.Namespace) -> dict[str, Any]:
    base, out = read_recipe(options.recipe), options.out
    domain = test_set(base, options)
    command = find_decode(options.decode)
    if command is None:
        raise ConfigError("linnet-decode is not built, build it with ./start.sh --build")
    jobs = [(mixer, seed) for seed in range(1, options.seeds + 1) for mixer in options.mixers]
    files = (options.data / base.data.folder).iterdir()
    common = {
        "recipe": to_tables(base),
        "data": {file.name: file.stat().st_size for file in files},
        "device": options.device,
    }
    scored = common | {"test": domain, "rows": options.rows}
    timed = common | {"mixers": options.mixers, "rounds": options.rounds}
    rates = common | {"rates": options.rates}
    settings = {
        out / f"{mixer}-{seed}.json": scored | (rates if mixer in options.tune else {})
        for mixer, seed in jobs
    }
    settings |= {out / f"{mixer}-rates.json": rates for mixer in options.tune}
    settings[out / "training.json"] = timed | {"updates_timed": options.updates_timed}
    settings[out / "decoding.json"] = timed | {"lengths": options.lengths}
    for path, wanted in settings.items():
        refuse_changed(path, wanted)
    out.mkdir(parents=True, exist_ok=True)
    prepare_tokenizer(base, options.data, out, None)

    def result_in(path: Path, make: Callable[[], Any]) -> Any:
        return kept(path, settings[path], make)

    def losses_of(mixer: str) -> dict[str, float]:
        found: dict[str, float] = result_in(
            out / f"{mixer}-rates.json", lambda: validation_losses(mixer, base, options)
        )
        return found

    tuned = {mixer: losses_of(mixer) for mixer in options.tune}
    best = {mixer: float(min(losses, key=losses.__getitem__)) for mixer, losses in tuned.items()}

    def one(job: tuple[str, int]) -> dict[str, Any]:
        result: dict[str, Any] = result_in(
            out / f"{job[0]}-{job[1]}.json",
            lambda: train_and_score(*job, best.get(job[0]), options, base, domain, command),
        )
        shown = "  ".join(f"{k} {v[0]:.2f}" for k, v in result["scores"].items())
        print(
            f"{job[0]:15} seed {job[1]}  {result['parameters']:>11,} parameters  {shown}",
            flush=True,
        )
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(one, jobs))
    return {
        "recipe": common["recipe"],
        "device": options.device,
        "machine": machine(options.device),
        "torch": torch.__version__,
        "rates": tuned,
        "runs": runs,
        "training": result_in(out / "training.json", lambda: training_speed(options, base)),
        "decoding": result_in(out / "decoding.json", lambda: decoding_speed(command, options)),
    }


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--recipe", type=Path, required=True, help="recipe of the dynamic model")
    parser.add_argument(
        "--data", type=Path, required=True, help="contains the recipe's data.folder"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for all runs and results")
    parser.add_argument(
        "--mixers",
        nargs="+",
        choices=ROWS,
        default=list(MIXERS),
        metavar="NAME",
        help=f"mixers ({', '.join(MIXERS)}), rows of the ablation of Wu et al. 2019, table 3 "
        f"({', '.join(ABLATION)}), or of Yang et al. 2019 ({', '.join(CSAN)})",
    )
    parser.add_argument(
        "--tune", nargs="+", choices=ROWS, default=[], metavar="NAME", help="mixers with --rates"
    )
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[], help="learning rates to choose from"
    )
    parser.add_argument("--seeds", type=int, default=1, help="trainings per mixer")
    parser.add_argument("--jobs", type=int, default=1, help="concurrent trainings")
    parser.add_argument("--test", default="", help="test set; empty: the first of valid_domains")
    parser.add_argument("--rows", type=int, default=0, help="max rows of the test set; 0: all")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each speed measurement")
    parser.add_argument(
        "--updates-timed", type=int, default=3, help="updates of each model per round"
    )
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[8, 16, 32, 64, 128, 256], help="sentence lengths"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device of training and decoding"
    )
    parser.add_argument("--decode", type=Path, help="path of linnet-decode")
    parser.add_argument(
        "--report", type=Path, help="folder for NAME-DEVICE.json, NAME that of the recipe's bundle"
    )
    parser.add_argument(
        "--page", type=Path, help="with --report: page whose table of this comparison is replaced"
    )
    options = parser.parse_args(arguments)
    require(not options.page or options.report, "--page needs --report, the folder of its results")
    require(
        bool(options.tune) == bool(options.rates),
        "--tune names mixers and --rates the learning rates to choose from: give both",
    )
    unused = [name for name in options.tune if name not in options.mixers]
    require(not unused, f"--tune {' '.join(unused)}: not one of --mixers")
    results = {"command": command_of(parser, options), "version": version(), **compare(options)}
    if options.report:
        from linnet_model.evaluation.compare_report import write_report

        write_report(results, options.report, options.page)
    print(
        "training, target tokens per second (median): "
        + ", ".join(f"{m} {median(v):.0f}" for m, v in results["training"].items())
    )


if __name__ == "__main__":
    sys.exit(main())
