"""Target tokens a second of linnet-train, at this commit and at an earlier one.

Each round trains every setting for a few updates at both commits, one after the other, in rotating
order, with the same rows, vocabulary and batches; ratios are taken within rounds. The first updates
of a training warm up and do not count. Reading the data, validation and checkpoints do not count
either.

The rows are the first of a domain of DATA/en-de, tokenised with the vocabulary of the bundle en-de.
Takes about 40 minutes on a machine that does nothing else. Writes
DIR/MACHINE/training-speed.json and training-speed.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/bench/engine"))
import drift
import engines
import machine

ROOT = Path(__file__).resolve().parents[2]
EARLIER = "31d0341~1"  # before batches were accumulated, dropout and loss were made faster
DOMAIN = "tatoeba"
ROWS = 6000
VALID_ROWS = 20
VOCABULARY = ROOT / "model/bundles/en-de/source.spm"

RECIPE = """\
[model]
vocabulary = 6000
width = {width}
ffn_width = {ffn_width}
heads = 8
encoder_kernels = [3, 7, 15, 31]
decoder_kernels = [3, 7, 15]
dropout = 0.1
weight_dropout = 0.1
[data]
folder = "rows"
max_source_tokens = 100
max_target_tokens = 100
[data.domains]
{domain} = 1.0
[train]
updates = {updates}
batch_target_tokens = {batch}
batch_source_tokens = {source}
bfloat16 = {bfloat16}
threads = {threads}
log_updates = {every}
valid_updates = 1000000
valid_rows = 1
checkpoint_seconds = 100000
[bundle]
name = "speed"
task = "translate"
source_language = "en"
target_language = "de"
"""


@dataclass(frozen=True)
class Setting:
    width: int
    batch: int  # target tokens
    bfloat16: bool
    threads: int

    def name(self) -> str:
        kind = "bfloat16" if self.bfloat16 else "float32"
        return (
            f"width {self.width}, batches of {self.batch:,} tokens, {kind}, {self.threads} thread"
            + ("s" if self.threads > 1 else "")
        )


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A work tree of a commit of this repository."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run(
            [*git, "add", "--detach", str(tree), commit], check=True, capture_output=True
        )
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)


def write_rows(data: Path, folder: Path, train: int = ROWS, valid: int = VALID_ROWS) -> None:
    """The first rows of the domain, for validation and then for training."""
    with lzma.open(data / "en-de/train.tsv.xz", "rt", encoding="utf-8") as lines:
        rows = (line for line in lines if line.rstrip("\n").endswith(f"\t{DOMAIN}"))
        kept = list(itertools.islice(rows, train + valid))
    (folder / "rows").mkdir()
    (folder / "rows/train.tsv").write_text("".join(kept[valid:]), encoding="utf-8")
    (folder / "rows/valid.tsv").write_text("".join(kept[:valid]), encoding="utf-8")


def rate(log: list[dict[str, Any]]) -> float:
    """Target tokens a second after the first line of a training's log."""
    lines = [line for line in log if line["kind"] == "train"]
    if len(lines) < 2:
        raise SystemExit(f"error: the log has {len(lines)} lines of a training, 2 are needed")
    first, last = lines[0], lines[-1]
    tokens: float = last["target_tokens"] - first["target_tokens"]
    return tokens / float(last["seconds"] - first["seconds"])


def write_recipe(path: Path, setting: Setting, updates: int, every: int) -> None:
    """A training of `updates`, with a line in the log for each `every` of them."""
    text = RECIPE.format(
        width=setting.width,
        ffn_width=3 * setting.width,
        domain=DOMAIN,
        updates=updates,
        batch=setting.batch,
        source=setting.batch * 3 // 2,
        bfloat16=str(setting.bfloat16).lower(),
        threads=setting.threads,
        every=every,
    )
    path.write_text(text, encoding="utf-8")


def command_of(recipe: Path, data: Path, out: Path) -> list[str]:
    command = [sys.executable, "-m", "linnet_model.train.command", "--recipe", str(recipe)]
    command += ["--data", str(data), "--out", str(out), "--device", "cpu"]
    return [*command, "--tokenizer-from", str(VOCABULARY)]


def environment_of(tree: Path, programs: Path) -> dict[str, str]:
    """linnet-train is that of `tree`, its operators are those of the build."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "model")}
    environment.setdefault("LINNET_OPS_LIBRARY", str(programs.parent / "lib/liblinnet_ops.so"))
    return environment


def read_log(out: Path) -> list[dict[str, Any]]:
    """The lines of a training's log that are complete."""
    text = (out / "log.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def train(
    tree: Path, setting: Setting, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains at the commit of `tree`; returns tokens a second and the number of parameters."""
    recipe = folder / "recipe.toml"
    write_recipe(recipe, setting, (1 + options.parts) * options.every, options.every)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        out = Path(name)
        environment = environment_of(tree, options.programs)
        command = command_of(recipe, folder, out)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"error: linnet-train at {tree}: {done.stderr.strip()[-500:]}")
        log = read_log(out)
        settings = json.loads((out / "settings.json").read_text())
    return {"tokens_per_second": rate(log), "parameters": settings["parameters"]}


def measure(
    options: argparse.Namespace, settings: list[Setting]
) -> tuple[list[dict[str, Any]], int]:
    """A row for each setting: its rounds, and tokens a second of both commits in each."""
    cores = len(os.sched_getaffinity(0))
    steady = drift.Drift(options.max_drift, lambda: machine.loop_seconds(cores), options.rounds)
    with tempfile.TemporaryDirectory() as name, checkout(options.earlier) as tree:
        folder = Path(name)
        write_rows(options.data, folder)
        trees = {"earlier": tree, "now": ROOT}
        rows: dict[Setting, dict[str, Any]] = {
            setting: {"name": setting.name(), "earlier": [], "now": []} for setting in settings
        }
        for number in range(options.rounds):
            for setting in settings:
                order = list(trees) if number % 2 == 0 else list(reversed(trees))

                def both(
                    setting: Setting = setting, order: list[str] = order
                ) -> dict[str, dict[str, Any]]:
                    return {name: train(trees[name], setting, folder, options) for name in order}

                found = steady.steady(both)
                for which, result in found.items():
                    rows[setting][which].append(result["tokens_per_second"])
                rows[setting]["parameters"] = found["now"]["parameters"]
                shown = {
                    key: round(value[-1])
                    for key, value in rows[setting].items()
                    if isinstance(value, list)
                }
                print(f"{setting.name()}: {shown}", file=sys.stderr, flush=True)
    return list(rows.values()), steady.thrown


HEADS = ["training", "parameters", "tokens/s before", "tokens/s now", "ratio"]


def ratio_cell(now: list[float], before: list[float]) -> str:
    """The median of the ratios within rounds, and their range."""
    ratios = [a / b for a, b in zip(now, before, strict=True)]
    return f"{median(ratios):.2f} × ({min(ratios):.2f} to {max(ratios):.2f})"


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    found = []
    for row in data["rows"]:
        found.append(
            [
                row["name"],
                f"{row['parameters'] / 1e6:.1f}M",
                f"{median(row['earlier']):,.0f}",
                f"{median(row['now']):,.0f}",
                ratio_cell(row["now"], row["earlier"]),
            ]
        )
    return found


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `research/bench/training_speed.py`. "
        f"{machine.sentence(data['machine'])}, compared with {data['earlier']}. Medians of "
        f"{data['rounds']} rounds, ratios within rounds with their range; {data['updates']} "
        f"updates each, after {data['warm_up']} that do not count." + drift.note(data["max_drift"])
    )
    return machine.report("Speed of training", about, HEADS, rows_of(data))


def settings_of(options: argparse.Namespace) -> list[Setting]:
    return [
        Setting(width, batch, kind == "bfloat16", threads)
        for width, batch in zip(options.widths, options.batches, strict=True)
        for kind in options.types
        for threads in options.threads
    ]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="training_speed.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with en-de/train.tsv.xz")
    add("--earlier", default=EARLIER, metavar="COMMIT", help="[%(default)s]")
    add("--widths", type=int, nargs="+", default=[256, 256, 512], help="[%(default)s]")
    add("--batches", type=int, nargs="+", default=[1100, 6000, 4000],
        help="target tokens, one for each of --widths [%(default)s]")  # fmt: skip
    add("--types", nargs="+", choices=("float32", "bfloat16"), default=["float32"])
    add("--threads", type=int, nargs="+", default=[1], help="[%(default)s]")
    add("--rounds", type=int, default=5, metavar="N", help="[%(default)s]")
    add(
        "--every",
        type=int,
        default=4,
        metavar="N",
        help="updates of a line of the log [%(default)s]",
    )
    add("--parts", type=int, default=3, metavar="N", help="lines that count [%(default)s]")
    drift.add_max_drift(parser)
    engines.add_folders(parser, programs="the build", bundles=False)
    options = parser.parse_args(words)
    for name in ("rounds", "every", "parts"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)} must be at least 1")
    if len(options.widths) != len(options.batches):
        given = f"{len(options.widths)} --widths and {len(options.batches)} --batches"
        parser.error(f"{given}: give one for each")
    machine.require_commit(options.out)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    rows, thrown = measure(options, settings_of(options))
    data = {
        "machine": facts,
        "earlier": options.earlier,
        "rounds": options.rounds,
        "warm_up": options.every,
        "updates": options.parts * options.every,
        "max_drift": options.max_drift,
        "thrown": thrown,
        "rows": rows,
    }
    machine.publish(options.out, "training-speed", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
