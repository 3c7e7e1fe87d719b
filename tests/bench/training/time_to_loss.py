"""Time that linnet-train needs to reach a validation loss, at this commit and at an earlier one.

Each round trains a model of every batch size from scratch at both commits at once, each on a core
of its own, and exchanges the cores in the next round. Both have the same rows, vocabulary and
rates; their random numbers need not be the same. A training ends at the first validation whose
loss is low enough; between the last two validations the time is interpolated. The time is that of
the updates: reading the data, validation and checkpoints do not count.

The rows are the first of a domain of DATA/en-de, tokenised with the vocabulary of the bundle en-de.
Takes about half an hour on two cores that do nothing else. Writes DIR/MACHINE/time-to-loss.json and
time-to-loss.md.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
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
    """A training at the commit of a tree, on one core, that is stopped once it has the loss."""

    def __init__(self, command: list[str], environment: dict[str, str], out: Path, core: int):
        self._out = out
        self._output = (out / "output.txt").open("w+")
        pinned = ["taskset", "--cpu-list", str(core), *command]
        self._process = subprocess.Popen(
            pinned, env=environment, stdout=self._output, stderr=subprocess.STDOUT, cwd=out
        )

    def done(self, loss: float) -> tuple[float, float] | None:
        """Seconds and tokens once the loss is reached, else None. Raises SystemExit if the training
        ended without it."""
        ended = self._process.poll() is not None
        log = self._out / "run/log.jsonl"
        found = points(training_speed.read_log(log.parent)) if log.exists() else []
        result = reached(found, loss)
        if result is None and ended:
            self._output.seek(0)
            last = f"its last loss is {found[-1].loss:.3f}" if found else self._output.read()[-500:]
            raise SystemExit(f"error: the training ended without a loss of {loss}: {last}")
        return result

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
    trees: dict[str, Path],
    setting: Setting,
    rate: float,
    folder: Path,
    options: argparse.Namespace,
) -> tuple[dict[str, tuple[float, float]], int]:
    """Trains at the commits of `trees` at once, the first on the first core. Returns the seconds
    and the tokens of each, and the number of parameters."""
    recipe = folder / "recipe.toml"
    # The log has a line for each validation (overrides).
    training_speed.write_recipe(recipe, setting, MAX_TOKENS // setting.batch, 1)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        running: dict[str, Training] = {}
        try:
            for core, (which, tree) in zip(cores, trees.items(), strict=False):
                out = Path(name) / which
                out.mkdir()
                command = training_speed.command_of(recipe, folder, out / "run")
                command += overrides(setting.batch, rate)
                environment = training_speed.environment_of(tree, options.programs)
                running[which] = Training(command, environment, out, core)
            found: dict[str, tuple[float, float]] = {}
            parameters = 0
            while len(found) < len(running):
                time.sleep(POLL_SECONDS)
                # A training goes on until the other has the loss too, or the other would be faster
                # on a machine whose cores share a memory.
                for which in running.keys() - found.keys():
                    result = running[which].done(options.loss)
                    if result is not None:
                        found[which] = result
                        parameters = running[which].settings()["parameters"]
        finally:
            for training in running.values():
                training.stop()
    return found, parameters


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each batch size: seconds and tokens of both commits in each round."""
    rows: list[dict[str, Any]] = [
        {"batch": batch, "learning_rate": rate, "earlier": [], "now": []}
        for batch, rate in zip(options.batches, options.rates, strict=True)
    ]
    with (
        tempfile.TemporaryDirectory() as name,
        training_speed.checkout(options.earlier) as tree,
    ):
        folder = Path(name)
        training_speed.write_rows(options.data, folder, options.rows, VALID_ROWS)
        trees = {"earlier": tree, "now": training_speed.ROOT}
        for number in range(options.rounds):
            order = trees if number % 2 == 0 else dict(reversed(trees.items()))
            for row in rows:
                setting = Setting(options.width, row["batch"], bfloat16=False, threads=1)
                found, row["parameters"] = race(
                    order, setting, row["learning_rate"], folder, options
                )
                for which, (seconds, tokens) in found.items():
                    row[which].append({"seconds": seconds, "tokens": round(tokens)})
                print(f"batches of {row['batch']:,}: {found}", file=sys.stderr, flush=True)
    return rows


HEADS = [
    "batches",
    "learning rate",
    "parameters",
    "tokens before",
    "tokens now",
    "seconds before",
    "seconds now",
    "ratio",
]


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    found = []
    for row in data["rows"]:
        values = {
            (which, key): [run[key] for run in row[which]]
            for which in ("earlier", "now")
            for key in ("seconds", "tokens")
        }
        found.append(
            [
                f"{row['batch']:,} tokens",
                f"{row['learning_rate']:g}",
                f"{row['parameters'] / 1e6:.1f}M",
                f"{median(values['earlier', 'tokens']) / 1e6:.2f}M",
                f"{median(values['now', 'tokens']) / 1e6:.2f}M",
                f"{median(values['earlier', 'seconds']):,.0f}",
                f"{median(values['now', 'seconds']):,.0f}",
                training_speed.ratio_cell(values["now", "seconds"], values["earlier", "seconds"]),
            ]
        )
    return found


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/training/time_to_loss.py`. "
        f"{machine.sentence(data['machine'])}, compared with {data['earlier']}. Target tokens and "
        f"seconds of updates until the validation has {data['loss']} nats a token; width "
        f"{data['width']}, float32, one thread; medians of {data['rounds']} rounds, in which both "
        "commits train at once, ratios within rounds with their range."
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
    add("--earlier", default=training_speed.EARLIER, metavar="COMMIT", help="[%(default)s]")
    add("--loss", type=float, default=4.5, help="nats a token [%(default)s]")
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
    if len(cores) < 2:
        parser.error("1 core: two trainings run at once, each on one")
    machine.require_commit(options.out)
    facts = machine.facts(cores)
    data = {
        "machine": facts,
        "earlier": options.earlier,
        "loss": options.loss,
        "width": options.width,
        "rounds": options.rounds,
        "rows": measure(options),
    }
    machine.publish(options.out, "time-to-loss", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
