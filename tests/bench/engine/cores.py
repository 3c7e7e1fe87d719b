"""Compares one engine with a thread for each core to one single-threaded engine for each core.

Both decode as many sentences at once in all. Each engine is a process of linnet-decode; those with
one thread are pinned to a core each and run at the same time, and their speeds are added. In each
round both are measured, and the ratio is taken within the round. Writes DIR/MACHINE/cores.json and
.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from decoding import SIZES
from engines import Sizes, add_folders, bundle_for, settle

TYPES = ("float32", "int8")


def start(
    options: argparse.Namespace, compute: str, batch: int, beam: int, cores: list[int]
) -> subprocess.Popen[str]:
    command = ["taskset", "-c", ",".join(map(str, cores))]
    command += [str(options.programs / "linnet-decode"), "--synthetic"]
    command += ["--bundle", str(options.bundle), "--compute", compute]
    numbers = {"source-tokens": 30, "target-tokens": 30, "batch": batch, "beam": beam}
    numbers |= {"threads": len(cores), "repeat": max(2, 60 // (batch * beam))}
    for flag, value in numbers.items():
        command += [f"--{flag}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[float, int]:
    """Target tokens per second, and the peak memory of the process in bytes."""
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"error: linnet-decode ended with {process.returncode}")
    return json.loads(text)["tokens_per_second"], 1024 * usage.ru_maxrss


def measure(options: argparse.Namespace, compute: str, batch: int, beam: int) -> dict[str, Any]:
    cores = options.cores
    found: dict[str, Any] = {"compute": compute, "batch": batch, "beam": beam, "rounds": []}
    for _ in range(options.rounds):
        settle()
        one, one_bytes = finish(start(options, compute, batch, beam, cores))
        settle()
        share = batch // len(cores)
        several = [start(options, compute, share, beam, [core]) for core in cores]
        ended = [finish(process) for process in several]
        found["rounds"].append([round(one, 1), round(sum(speed for speed, _ in ended), 1)])
        found["bytes"] = [one_bytes, sum(taken for _, taken in ended)]
    return found


def markdown(data: dict[str, Any]) -> str:
    count = data["machine"]["cores"]
    lines = [
        "# One engine with all threads, or an engine for each core",
        "",
        "Written by `tests/bench/engine/cores.py`. "
        f"{machine.sentence(data['machine'])}. The base "
        "DynamicConv with random weights, sources and targets of 30 tokens; target tokens a second "
        f"of all engines together, medians of {data['rounds']} rounds, and the ratio's median.",
        "",
        f"| type | sentences | beam | 1 engine, {count} threads | {count} engines, 1 thread "
        "| ratio | memory of one, MB | of all |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for group in data["groups"]:
        one, several = (median(pair[i] for pair in group["rounds"]) for i in range(2))
        ratio = median(pair[1] / pair[0] for pair in group["rounds"])
        memory = " | ".join(f"{taken / 1e6:.0f}" for taken in group["bytes"])
        lines.append(
            f"| {group['compute']} | {group['batch']} | {group['beam']} | {one:.0f} | "
            f"{several:.0f} | {ratio:.2f} | {memory} |"
        )
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="cores.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    usable = sorted(os.sched_getaffinity(0))
    add("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    add("--batch", nargs="+", type=int, default=[2, 32], metavar="N",
        help="sentences in all, multiples of the cores [2 32]")  # fmt: skip
    add("--beam", nargs="+", type=int, default=[5], metavar="N", help="hypotheses [5]")
    add_folders(parser)
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    options.cores = usable
    if any(batch % len(usable) for batch in options.batch):
        parser.error(f"--batch must be multiples of the {len(usable)} cores")
    options.bundle = bundle_for(
        "dynamic", Sizes("base", source=30, target=30, **SIZES["base"]), options.bundles
    )
    facts = machine.facts(usable)
    groups = []
    for compute in TYPES:
        for batch in options.batch:
            for beam in options.beam:
                print(f"{compute}, {batch} sentences, beam {beam} …", file=sys.stderr)
                groups.append(measure(options, compute, batch, beam))
    data = {"machine": facts, "rounds": options.rounds, "groups": groups}
    machine.publish(options.out, "cores", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
