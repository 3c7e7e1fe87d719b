"""Measures targets whose tokens are known: scores and alignments, beside an earlier commit.

linnet-decode of both commits answers the same lines in turn, each with bundles of its own code: a
random model of base size, and bundles that are given, each as its commit has it. Sources and
targets have 30 tokens. Scores: the time of a line with a target. Alignments: the time of a
translation of a given length, with and without. Times are of processor and of the wall, medians of
rounds; with one thread, which never waits for another one, that of the processor does not depend on
what else runs. Writes DIR/MACHINE/known-tokens.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from decoding import SIZES

ROOT = Path(__file__).resolve().parents[3]
TOKENS, BEAM = 30, 4
BATCHES = {1: 8, 32: 64}  # sequences in flight, and lines of a round
Times = tuple[float, float]  # processor and wall seconds of a line


class Program:
    """linnet-decode of a checkout with a bundle."""

    def __init__(self, root: Path, bundle: Path, compute: str, threads: int, batch: int):
        command = [str(root / "build/release/bin/linnet-decode"), "--bundle", str(bundle)]
        command += ["--compute", compute, "--batch", str(batch), "--beam", str(BEAM)]
        command += ["--threads", str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _processor(self) -> float:
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def answer(self, lines: list[dict[str, Any]]) -> Times:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        processor, wall = self._processor(), time.perf_counter()
        self._process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        self._process.stdin.flush()
        for _ in lines:
            answer = self._process.stdout.readline()
            if "hypotheses" not in answer:
                raise SystemExit(f"linnet-decode answered {answer!r}")
        spent = (self._processor() - processor, time.perf_counter() - wall)
        return spent[0] / len(lines), spent[1] / len(lines)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def random_bundle(root: Path) -> Path:
    """A model of base size with random weights, written by the code of that checkout, once."""
    out = root / "build/bench/known-tokens-base"
    if not out.exists():
        environment = os.environ | {
            "PYTHONPATH": str(root / "model"),
            "LINNET_OPS_LIBRARY": str(root / "build/release/lib/liblinnet_ops.so"),
        }
        words = ["--out", str(out), "--preset", "dynamic_base"]
        words += ["--vocab", str(SIZES["base"]["vocabulary"])]
        command = [sys.executable, "-m", "linnet_model.export.random_bundle", *words]
        subprocess.run(command, check=True, env=environment, stdout=sys.stderr)
    return out


def lines_of(bundle: Path, count: int) -> dict[str, list[dict[str, Any]]]:
    """The lines of each measurement."""
    vocabulary = json.loads((bundle / "manifest.json").read_text())["vocabulary"]
    eos = vocabulary["eos_id"]
    draw = random.Random(1)

    def tokens() -> list[int]:
        ids = [draw.randrange(10, vocabulary["size"]) for _ in range(TOKENS - 1)]
        return [*ids, eos]

    pairs = [{"source_ids": tokens(), "target_ids": tokens()} for _ in range(count)]
    options = {"min_target_tokens": TOKENS - 1, "max_target_tokens": TOKENS - 1}
    searched = [{"source_ids": pair["source_ids"], "options": options} for pair in pairs]
    aligned = [line | {"align": True} for line in searched]
    return {"score": pairs, "translation": searched, "aligned": aligned}


def measure(
    bundles: dict[str, Path], roots: dict[str, Path], compute: str, batch: int, options: Any
) -> dict[str, Any]:
    """Medians of the rounds: {measurement: {commit: milliseconds of processor and wall}}, and what
    alignments add to the processor's time of a round, {"share": {commit: part}}."""
    lines = lines_of(bundles["after"], BATCHES[batch])
    programs = {
        name: Program(roots[name], bundles[name], compute, options.threads, batch) for name in roots
    }
    found: dict[str, dict[str, list[Times]]] = {what: {n: [] for n in roots} for what in lines}
    for turn in range(options.rounds + 1):
        for what, asked in lines.items():
            for name in sorted(roots, reverse=turn % 2 == 0):
                time.sleep(0.2)  # the threads of the last one stop spinning
                times = programs[name].answer(asked)
                if turn > 0:  # the first fills caches
                    found[what][name].append(times)
    for program in programs.values():
        program.close()

    def share(name: str) -> float:
        pairs = zip(found["aligned"][name], found["translation"][name], strict=True)
        return median(aligned[0] / plain[0] for aligned, plain in pairs) - 1

    medians: dict[str, Any] = {
        what: {
            name: [1000 * median(column) for column in zip(*times, strict=True)]
            for name, times in of.items()
        }
        for what, of in found.items()
    }
    return medians | {"share": {name: share(name) for name in roots}}


def markdown(data: dict[str, Any]) -> str:
    about = (
        f"Written by `tests/bench/engine/known_tokens.py`: sources and targets of {TOKENS} tokens, "
        f"beam {BEAM}, threads {data['threads']}, medians of {data['rounds']} rounds in turn. "
        "Milliseconds of the processors "
        f"and of the wall for a line; before is {data['before']}. An alignment's share is what it "
        "adds to a translation's processor time, the median of the rounds' ratios. "
        f"{machine.sentence(data['machine'])}."
    )
    heads = ["model, type, batch", "score before", "after", "ratio", "translation before", "after"]
    heads += ["alignment before", "share", "alignment after", "share"]
    rows = []
    for row in data["rows"]:

        def both(times: list[float]) -> str:
            return f"{times[0]:.2f} / {times[1]:.2f}"

        score, plain, aligned = row["score"], row["translation"], row["aligned"]
        ratios = [a / b for a, b in zip(score["before"], score["after"], strict=True)]
        cells = [f"{row['bundle']}, {row['compute']}, {row['batch']}"]
        cells += [both(score["before"]), both(score["after"]), both(ratios)]
        cells += [both(plain[name]) for name in ("before", "after")]
        for name in ("before", "after"):
            added = [a - b for a, b in zip(aligned[name], plain[name], strict=True)]
            cells += [both(added), f"{100 * row['share'][name]:.0f} %"]
        rows.append(cells)
    return machine.report("Known tokens", about, heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--before", type=Path, required=True, metavar="DIR",
        help="checkout of an earlier commit, with its build/release")  # fmt: skip
    add("--bundles", type=Path, nargs="*", default=[], metavar="DIR", help="of both checkouts")
    add("--compute", nargs="+", default=["int8", "float32"])
    add("--threads", type=int, default=1)
    add("--rounds", type=int, default=5)
    options = machine.parse(parser)
    roots = {"before": options.before.resolve(), "after": ROOT}
    models = [("random base", {name: random_bundle(root) for name, root in roots.items()})]
    models += [
        (machine.bundle_name(ROOT / bundle), {name: root / bundle for name, root in roots.items()})
        for bundle in options.bundles
    ]
    rows = []
    for name, bundles in models:
        for compute in options.compute:
            for batch in BATCHES:
                found = measure(bundles, roots, compute, batch, options)
                rows.append({"bundle": name, "compute": compute, "batch": batch, **found})
                print(rows[-1], file=sys.stderr)
    data = {
        "machine": machine.facts([0, 1]),
        "before": machine.version_of(options.before),
        "threads": options.threads,
        "rounds": options.rounds,
        "rows": rows,
    }
    machine.publish(options.out, "known-tokens", data, markdown(data))


if __name__ == "__main__":
    main()
