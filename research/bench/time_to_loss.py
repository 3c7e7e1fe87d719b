"""Time that linnet-train needs to reach a validation loss, in float32 and in bfloat16.

Each round trains a model of every batch size from scratch in both types at once, each on a core of
its own, and exchanges the cores in the next round. Both have the same rows, vocabulary, rates and
random numbers. A training ends at the first validation whose loss is low enough; between two
validations the time is interpolated. The time is that of the updates: reading the data, validation
and checkpoints do not count.

The rows are the first of a domain of DATA/en-de, tokenised with the vocabulary of the bundle en-de.
Takes about 40 minutes on two cores with AVX512-BF16 that do nothing else. Writes
DIR/MACHINE/time-to-loss.json and time-to-loss.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/bench/engine"))
import engines
import machine
import training_speed
from training_speed import Setting

ROWS = 60_000
VALID_ROWS = 1000
WARM_UP_TOKENS = 200_000
VALID_TOKENS = 100_000  # target tokens between two validations
MAX_TOKENS = 10_000_000
POLL_SECONDS = 0.5
TYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Point:
    """A validation."""

    seconds: float  # of updates before it
    tokens: int  # target tokens of these updates
    loss: float  # nats a token


def points(log: list[dict[str, Any]]) -> list[Point]:
    """The validations of a training's log. A line of the training gives the tokens so far, and the
    speed since the line before it, without validations."""
    found = []
    seconds, tokens = 0.0, 0
    for line in log:
        if line["kind"] == "train":
            seconds += (line["target_tokens"] - tokens) / line["tokens_per_second"]
            tokens = line["target_tokens"]
        elif line["kind"] == "valid":
            found.append(Point(seconds, tokens, line["nll_all"]))
    return found


def reached(found: list[Point], loss: float) -> tuple[float, float] | None:
    """Seconds and target tokens at which the loss was first reached; None: it was not."""
    for before, after in itertools.pairwise(found):
        if after.loss <= loss < before.loss:
            share = (before.loss - loss) / (before.loss - after.loss)
            return (
                before.seconds + share * (after.seconds - before.seconds),
                before.tokens + share * (after.tokens - before.tokens),
            )
    return None


class Training:
    """A training on one core, that is stopped once it has the lowest of the losses."""

    def __init__(self, command: list[str], environment: dict[str, str], out: Path, core: int):
        self._out = out
        self._output = (out / "output.txt").open("w+")
        pinned = ["taskset", "--cpu-list", str(core), *command]
        self._process = subprocess.Popen(
            pinned, env=environment, stdout=self._output, stderr=subprocess.STDOUT, cwd=out
        )

    def done(self, losses: list[float]) -> list[tuple[float, float]] | None:
        """Seconds and tokens of each loss once all are reached, else None. Raises SystemExit if the
        training ended without one."""
        ended = self._process.poll() is not None
        log = self._out / "run/log.jsonl"
        found = points(training_speed.read_log(log.parent)) if log.exists() else []
        results = [result for loss in losses if (result := reached(found, loss))]
        if len(results) == len(losses):
            return results
        if ended:
            self._output.seek(0)
            last = f"its last loss is {found[-1].loss:.3f}" if found else self._output.read()[-500:]
            raise SystemExit(f"error: the training ended without a loss of {min(losses)}: {last}")
        return None

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads((self._out / "run/settings.json").read_text())
        return settings

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()


def overrides(batch: int, rate: float) -> list[str]:
    validate = max(1, VALID_TOKENS // batch)
    keys = {
        "learning_rate": rate,
        "warmup_updates": max(1, WARM_UP_TOKENS // batch),
        "decay_updates": 0,
        "average_decay": 0,  # an average over few updates would mostly show the first ones
        "valid_updates": validate,
        "log_updates": validate,
        "valid_rows": 1,  # that are decoded
    }
    return [word for key, value in keys.items() for word in ("--set", f"train.{key}={value}")]


def race(
    types: tuple[str, ...], batch: int, rate: float, folder: Path, options: argparse.Namespace
) -> tuple[dict[str, list[tuple[float, float]]], int]:
    """Trains in both types at once, in the first on the first core. Returns the seconds and the
    tokens of each loss, and the number of parameters."""
    cores = sorted(os.sched_getaffinity(0))
    environment = training_speed.environment_of(training_speed.ROOT, options.programs)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        running: dict[str, Training] = {}
        try:
            for core, kind in zip(cores, types, strict=False):
                out = Path(name) / kind
                out.mkdir()
                setting = Setting(options.width, batch, kind == "bfloat16", threads=1)
                # The log has a line for each validation (overrides).
                recipe = out / "recipe.toml"
                training_speed.write_recipe(recipe, setting, MAX_TOKENS // batch, 1)
                command = training_speed.command_of(recipe, folder, out / "run")
                command += overrides(batch, rate)
                running[kind] = Training(command, environment, out, core)
            found: dict[str, list[tuple[float, float]]] = {}
            parameters = 0
            while len(found) < len(running):
                time.sleep(POLL_SECONDS)
                # A training goes on until the other has the losses too, or the other would be
                # faster on a machine whose cores share a memory.
                for kind in running.keys() - found.keys():
                    results = running[kind].done(options.losses)
                    if results is not None:
                        found[kind] = results
                        parameters = running[kind].settings()["parameters"]
        finally:
            for training in running.values():
                training.stop()
    return found, parameters


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each batch size and loss: seconds and tokens in both types in each round. A size
    may occur with several rates."""
    settings = list(zip(options.batches, options.rates, strict=True))
    rows: list[list[dict[str, Any]]] = [
        [{"batch": batch, "learning_rate": rate, "loss": loss} for loss in options.losses]
        for batch, rate in settings
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training_speed.write_rows(options.data, folder, options.rows, VALID_ROWS)
        for number in range(options.rounds):
            types = TYPES if number % 2 == 0 else TYPES[::-1]
            for (batch, rate), of_setting in zip(settings, rows, strict=True):
                found, parameters = race(types, batch, rate, folder, options)
                for place, row in enumerate(of_setting):
                    row["parameters"] = parameters
                    for kind in TYPES:
                        seconds, tokens = found[kind][place]
                        run = {"seconds": seconds, "tokens": round(tokens)}
                        row.setdefault(kind, []).append(run)
                print(f"batches of {batch:,}: {found}", file=sys.stderr, flush=True)
    return [row for of_setting in rows for row in of_setting]


HEADS = [
    "batches",
    "learning rate",
    "parameters",
    "loss",
    "tokens, float32",
    "tokens, bfloat16",
    "seconds, float32",
    "seconds, bfloat16",
    "ratio",
]


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    found = []
    for row in data["rows"]:
        seconds, tokens = (
            {kind: [run[key] for run in row[kind]] for kind in TYPES}
            for key in ("seconds", "tokens")
        )
        cells = [f"{row['batch']:,} tokens", f"{row['learning_rate']:g}"]
        cells += [f"{row['parameters'] / 1e6:.1f}M", f"{row['loss']}"]
        cells += [f"{median(tokens[kind]) / 1e6:.2f}M" for kind in TYPES]
        cells += [f"{median(seconds[kind]):,.0f}" for kind in TYPES]
        found.append([*cells, training_speed.ratio_cell(seconds["bfloat16"], seconds["float32"])])
    return found


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `research/bench/time_to_loss.py`. "
        f"{machine.sentence(data['machine'])}. Target tokens and seconds of updates until the "
        f"validation has a loss, in nats a token; width {data['width']}, one thread; medians of "
        f"{data['rounds']} rounds, in which both types train at once; ratios of bfloat16 to "
        "float32 within rounds with their range."
    )
    return machine.report("Time to a validation loss", about, HEADS, rows_of(data))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="time_to_loss.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with en-de/train.tsv.xz")
    add("--losses", type=float, nargs="+", default=[4.5, 3.5], help="nats a token [%(default)s]")
    add("--width", type=int, default=256, help="[%(default)s]")
    add("--batches", type=int, nargs="+", default=[1100, 4400], help="target tokens [%(default)s]")
    add("--rates", type=float, nargs="+", default=[1e-3, 2e-3],
        help="learning rates, one for each of --batches [%(default)s]")  # fmt: skip
    add("--rows", type=int, default=ROWS, metavar="N", help="of the training [%(default)s]")
    add("--rounds", type=int, default=2, metavar="N", help="[%(default)s]")
    engines.add_folders(parser, programs="the build", bundles=False)
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    if len(options.batches) != len(options.rates):
        given = f"{len(options.batches)} --batches and {len(options.rates)} --rates"
        parser.error(f"{given}: give one for each")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < len(TYPES):
        parser.error("1 core: two trainings run at once, each on one")
    machine.require_commit(options.out)
    facts = machine.facts(cores)
    data = {
        "machine": facts,
        "width": options.width,
        "rounds": options.rounds,
        "rows": measure(options),
    }
    machine.publish(options.out, "time-to-loss", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
