"""Measures what a second thread costs small models, beside the programs of an earlier commit.

Decodes everyday sentences with linnet-decode of both, in turn: user and system time, and wall time,
of all sentences less those of the first one, which is mostly loading. Medians of rounds. With
--realtime (root) no other process takes the cores meanwhile. Writes DIR/MACHINE/small-models.json
and .md. Fetch en-pt first: linnet-model fetch en-pt --out MODELS.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
SENTENCES = ROOT / "tests/data/everyday-en.txt"
SETTINGS = ((1, 1, "int8"), (1, 4, "int8"), (1, 1, "float32"), (32, 1, "int8"))


def run(command: list[str], lines: list[str]) -> tuple[float, float]:
    """CPU and wall seconds."""
    text = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=text, text=True, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def spent(command: list[str], lines: list[str]) -> tuple[float, float]:
    one, every = run(command, lines[:1]), run(command, lines)
    return every[0] - one[0], every[1] - one[1]


def measure(options: argparse.Namespace, bundle: Path) -> list[dict[str, Any]]:
    rows = []
    texts = SENTENCES.read_text("utf-8").splitlines()
    first = ["chrt", "--rr", "1"] if options.realtime else []
    for batch, beam, compute in SETTINGS:
        if compute not in options.compute:
            continue
        lines = texts * options.repeat * (4 if batch > 1 else 1)
        commands = {}
        for name, programs in (("before", options.before), ("after", options.programs)):
            for threads in (1, 2):
                command = [*first, str(programs / "linnet-decode"), "--bundle", str(bundle)]
                command += ["--batch", str(batch), "--beam", str(beam), "--compute", compute]
                commands[f"{name}, {threads}"] = [*command, "--threads", str(threads)]
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                found[name].append(spent(command, lines))
        rows.append(
            {"bundle": machine.bundle_name(bundle), "batch": batch, "beam": beam}
            | {"compute": compute, "sentences": len(lines) - 1}
            | {
                name: {"cpu": median(cpu for cpu, _ in times), "wall": median(w for _, w in times)}
                for name, times in found.items()
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/engine/small_models.py`: milliseconds a sentence, CPU and wall"
        f" time; before is {data['before']}, medians of {data['rounds']} rounds in turn, "
        + ("without other processes" if data["realtime"] else "beside other processes")
        + f". {machine.sentence(data['machine'])}."
    )
    ways = ("before, 1", "before, 2", "after, 1", "after, 2")
    heads = ["bundle, compute, batch, beam"]
    heads += [f"{way} thread{'s' if way.endswith('2') else ''}" for way in ways]
    rows = []
    for row in data["rows"]:
        name = f"{row['bundle']}, {row['compute']}, {row['batch']}, {row['beam']}"
        share = 1000 / row["sentences"]
        cells = [f"{row[way]['cpu'] * share:.2f} / {row[way]['wall'] * share:.2f}" for way in ways]
        rows.append([name, *cells])
    return machine.report("Threads of small models", about, heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--before", type=Path, required=True, help="programs of an earlier commit")
    parser.add_argument("--before-version", required=True, help="and that commit")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--compute", nargs="+", default=["int8", "float32"])
    parser.add_argument("--repeat", type=int, default=1, help="times of the hundred sentences")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--realtime", action="store_true", help="keep other processes away")
    options = machine.parse(parser)
    data = {
        "machine": machine.facts([0, 1]),
        "before": options.before_version,
        "rounds": options.rounds,
        "realtime": options.realtime,
        "rows": [row for bundle in options.bundles for row in measure(options, bundle)],
    }
    machine.publish(options.out, "small-models", data, markdown(data))


if __name__ == "__main__":
    main()
