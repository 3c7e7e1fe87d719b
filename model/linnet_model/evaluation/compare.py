"""linnet-compare: compares the mixers on the same data, with equal sizes and updates.

One recipe is trained for each mixer and seed; the feed-forward width is changed so that all models
have as many parameters as dynamic. Every model is exported, decodes the test set with
linnet-decode, and is timed. Timed updates and decoding take turns between the models, so that load
on the machine affects all alike. Results are written to --out as they come; existing ones are not
made again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import dataclasses
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import sacrebleu
import torch
from rouge_score import rouge_scorer, scoring
from sacrebleu.metrics.base import Metric

from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError, ModelConfig, Recipe, read_recipe, to_tables
from linnet_model.decode_command import decode_texts, find_decode
from linnet_model.evaluation.score import read_references
from linnet_model.export.command import export
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.text_files import read_pairs
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.command import Trainer, pick_device, prepare_tokenizer
from linnet_model.train.data import PairDataset, training_pairs

MIXERS = (
    "dynamic",
    "light",
    "depthwise",
    "dilated",
    "self_attention",
    "csan_1d",
    "csan_2d",
    "ssru",
)
BOOTSTRAP_SAMPLES = 1000
# With 3 heads the best of Yang et al. 2019; here all layers of both sides have it.
CSAN_WINDOW = 11


# --- One model for each mixer -------------------------------------------------------------------


def settings_of(mixer: str, base: ModelConfig) -> ModelConfig:
    """Returns the base model with another mixer and as many parameters, by its feed-forward width.

    A dilated filter has 3 taps that span the base's filter of the same layer; attention sees the
    whole sequence, or CSAN_WINDOW positions. SSRU replaces the decoder's mixers only.
    """
    config = copy.deepcopy(base)
    for side in ("encoder", "decoder"):
        kernels: list[int] = getattr(base, f"{side}_kernels")
        layers = len(kernels)
        if mixer == "ssru" and side == "encoder":
            continue
        setattr(config, f"{side}_mixers", [mixer] * layers)
        setattr(config, f"{side}_dilations", [1] * layers)
        if mixer == "dilated":
            setattr(config, f"{side}_kernels", [3] * layers)
            setattr(config, f"{side}_dilations", [max(1, k // 2) for k in kernels])
        elif mixer in ("self_attention", "ssru"):
            setattr(config, f"{side}_kernels", [0] * layers)
        elif mixer.startswith("csan"):
            setattr(config, f"{side}_kernels", [CSAN_WINDOW] * layers)
    wanted = weights_in(base)
    with_none = weights_in(dataclasses.replace(config, ffn_width=8))
    each = (weights_in(dataclasses.replace(config, ffn_width=16)) - with_none) / 8
    config.ffn_width = max(8, round((8 + (wanted - with_none) / each) / 8) * 8)
    config.check()
    return config


def weights_in(config: ModelConfig) -> int:
    config = copy.deepcopy(config)
    config.check()
    with torch.device("meta"):
        return parameter_count(EncoderDecoder(config))


def recipe_of(mixer: str, base: Recipe, seed: int) -> Recipe:
    recipe = copy.deepcopy(base)
    recipe.model = settings_of(mixer, base.model)
    recipe.train.seed = seed
    return recipe


def as_settings(recipe: Recipe) -> list[str]:
    """Returns the model and seed of a recipe as --set arguments of linnet-train."""
    model = to_tables(recipe.model)
    keys = [k for k in model if "mixers" in k or "kernels" in k or "dilations" in k]
    values = {f"model.{k}": model[k] for k in [*keys, "ffn_width"]}
    values["train.seed"] = recipe.train.seed
    return [f"--set={name}={json.dumps(value)}" for name, value in values.items()]


# --- Train, export, decode ----------------------------------------------------------------------


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


def train_and_score(
    mixer: str, seed: int, options: argparse.Namespace, base: Recipe, command: Path
) -> dict[str, Any]:
    recipe = recipe_of(mixer, base, seed)
    run, bundle = options.out / f"{mixer}-{seed}", options.out / "bundles" / f"{mixer}-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.out / "source.spm", run / "source.spm")
    train(recipe, options.recipe, options.data, run, options.device)
    export(run, bundle, 1, "float32", "comparison", False)
    folder = options.data / recipe.data.folder
    domain = options.test or recipe.data.valid_domains[0]
    pairs = read_pairs(folder / f"test.{domain}.tsv")[: options.rows or None]
    answers = decode_texts(
        command,
        bundle,
        [pair.source for pair in pairs],
        [f"--device={options.device}", f"--threads={recipe.train.threads}", "--compute=float32"],
    )
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    return {
        "mixer": mixer,
        "seed": seed,
        "parameters": weights_in(recipe.model),
        "ffn_width": recipe.model.ffn_width,
        "valid_nll": [e["nll_all"] for e in log if e["kind"] == "valid"][-1],
        "test": domain,
        "rows": len(pairs),
        "scores": interval(recipe.bundle.task, read_references(folder, domain, pairs), answers),
    }


# --- Speed --------------------------------------------------------------------------------------


def training_speed(options: argparse.Namespace, base: Recipe) -> dict[str, list[float]]:
    """Returns mixer -> target tokens per second of each round, by CPU time on a CPU and by wall
    time on a GPU. All models take turns in one process; a first round warms up."""
    device = pick_device(options.device)
    if base.train.threads:
        torch.set_num_threads(base.train.threads)
    folder = options.data / base.data.folder
    dataset = PairDataset(
        training_pairs(folder, base.data, base.train.seed)[:20_000],
        load_tokenizer(options.out / "source.spm", base.data.capitals_mark),
        base.data,
        random.Random(base.train.seed),
    )
    trainers = {m: Trainer(recipe_of(m, base, 1), dataset, device) for m in options.mixers}
    clock = time.process_time if device.type == "cpu" else time.monotonic
    rates: dict[str, list[float]] = {mixer: [] for mixer in options.mixers}
    for turn in range(options.rounds + 1):
        for mixer, trainer in trainers.items():
            begin, tokens = clock(), 0.0
            for _ in range(options.updates_timed):
                values = trainer.update()
                float(values["nll"])  # waits for the device
                tokens += values["tokens"]
            if turn > 0:
                rates[mixer].append(tokens / (clock() - begin))
    return rates


def synthetic(
    command: Path, bundle: Path, options: argparse.Namespace, tokens: int, batch: int, repeat: int
) -> dict[str, Any]:
    done = subprocess.run(
        [
            str(command),
            f"--bundle={bundle}",
            "--synthetic",
            f"--device={options.device}",
            f"--source-tokens={tokens}",
            f"--target-tokens={tokens}",
            f"--batch={batch}",
            f"--repeat={repeat}",
            "--threads=1",
            "--compute=float32",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ConfigError(f"linnet-decode --synthetic failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def decoding_speed(command: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns mixer -> target tokens per second of full batches, and seconds of one sentence by its
    length, one value per round. One thread, the beam of the recipe."""
    found: dict[str, dict[str, Any]] = {
        m: {"batch": [], "sentence": {str(n): [] for n in options.lengths}} for m in options.mixers
    }
    for _ in range(options.rounds):
        for mixer in options.mixers:
            bundle = options.out / "bundles" / f"{mixer}-1"
            full = synthetic(command, bundle, options, 30, 32, 1)
            found[mixer]["batch"].append(full["tokens_per_second"])
        for length in options.lengths:
            for mixer in options.mixers:
                bundle = options.out / "bundles" / f"{mixer}-1"
                one = synthetic(command, bundle, options, length, 1, 3)
                found[mixer]["sentence"][str(length)].append(one["seconds"])
    return found


# --- All of it ----------------------------------------------------------------------------------


def machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.processor()}, {len(names)} cores"


def kept(path: Path, make: Any) -> Any:
    """Returns the result stored in `path`, else stores and returns that of `make`."""
    if not path.exists():
        value = make()
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def compare(options: argparse.Namespace) -> dict[str, Any]:
    base = read_recipe(options.recipe)
    command = find_decode(options.decode)
    if command is None:
        raise ConfigError("linnet-decode is not built, build it with ./start.sh --build")
    options.out.mkdir(parents=True, exist_ok=True)
    prepare_tokenizer(base, options.data, options.out, None)
    jobs = [(mixer, seed) for seed in range(1, options.seeds + 1) for mixer in options.mixers]

    def one(job: tuple[str, int]) -> dict[str, Any]:
        path = options.out / f"{job[0]}-{job[1]}.json"
        result = kept(path, lambda: train_and_score(*job, options, base, command))
        shown = "  ".join(f"{k} {v[0]:.2f}" for k, v in result["scores"].items())
        print(
            f"{job[0]:15} seed {job[1]}  {result['parameters']:>11,} parameters  {shown}",
            flush=True,
        )
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(one, jobs))
    return {
        "recipe": to_tables(base),
        "device": options.device,
        "machine": machine(options.device),
        "torch": torch.__version__,
        "runs": runs,
        "training": kept(options.out / "training.json", lambda: training_speed(options, base)),
        "decoding": kept(options.out / "decoding.json", lambda: decoding_speed(command, options)),
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
        choices=MIXERS,
        default=list(MIXERS),
        metavar="NAME",
        help="mixers to compare",
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
        "--readme", type=Path, help="page whose table of this comparison is replaced"
    )
    options = parser.parse_args(arguments)
    results = compare(options)
    if options.report:
        from linnet_model.evaluation.compare_report import write_report

        write_report(results, options.report, options.readme)
    print(
        "training, target tokens per second (median): "
        + ", ".join(f"{m} {median(v):.0f}" for m, v in results["training"].items())
    )


if __name__ == "__main__":
    sys.exit(main())
