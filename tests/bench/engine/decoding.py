"""tests/bench/run: the decoding speed of engines, measured in the same run on the same cores.

For each compute type, batch and beam the engines take turns: in each round every engine measures
once, and the ratios within a round are compared, because a machine's speed drifts. A fixed loop is
timed before and after each round, and a round in which it changed by more than a tenth is thrown
away. Engines without a target take part in the first rounds only. Figures are medians over the
rounds. All targets have the same number of tokens, independent of the weights.

Writes DIR/MACHINE/decoding.json and decoding.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drift
import engines
import machine
import rounds
from decoding_report import OURS, REFERENCES, markdown
from engines import Broken, Sizes

SIZES = {
    "base": {"layers": 6, "width": 512, "ffn": 2048, "heads": 8, "vocabulary": 32000},
    "big": {"layers": 6, "width": 1024, "ffn": 4096, "heads": 16, "vocabulary": 32000},
    "tiny": {"layers": 2, "width": 32, "ffn": 64, "heads": 4, "vocabulary": 600},
}
COMPUTE = ("float32", "bfloat16", "int8")
QUICK = {
    "compute": ["float32"],
    "batch": [1],
    "beam": [5],
    "rounds": 1,
    "engines": ["linnet dynamic", "ctranslate2", "ctranslate2 workers"],
}


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/bench/run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--size", choices=SIZES, default="base", help="of all models [%(default)s]")
    add("--engines", nargs="+", choices=engines.ENGINES, default=engines.ENGINES, metavar="NAME",
        help=f"of {', '.join(repr(e) for e in engines.ENGINES)} [all]")  # fmt: skip
    add("--compute", nargs="+", choices=COMPUTE, default=list(COMPUTE), metavar="TYPE",
        help=f"of {', '.join(COMPUTE)} [all]; an engine without a type is left out with "
        "the reason")  # fmt: skip
    add("--batch", nargs="+", type=int, default=[1, 32], metavar="N", help="sentences [1 32]")
    add("--beam", nargs="+", type=int, default=[1, 5], metavar="N", help="hypotheses [1 5]")
    add("--source", type=int, default=30, metavar="N", help="source tokens [%(default)s]")
    add("--target", type=int, default=30, metavar="N", help="target tokens [%(default)s]")
    add("--vocab", type=int, metavar="N", help="tokens of the vocabulary [32000; tiny: 600]")
    add("--rounds", type=int, default=7, metavar="N",
        help="valid turns of Linnet's dynamic and CTranslate2, of the others "
        f"{rounds.OTHERS_ROUNDS} [%(default)s]")  # fmt: skip
    drift.add_max_drift(parser)
    add("--cores", metavar="LIST", help="cores to use, such as 0,1; as many threads [all]")
    engines.add_folders(parser)
    add("--quick", action="store_true",
        help="one round of float32, one sentence, beam 5, against CTranslate2; a minute; the "
        "results are printed only")  # fmt: skip
    add("--minutes", type=float, metavar="N",
        help="start no new measurement after so long; continue later with --continue")  # fmt: skip
    add("--continue", action="store_true", dest="go_on",
        help="keep the results of a run with the same settings and measure the rest")  # fmt: skip
    options = parser.parse_args(words)
    if options.quick:
        vars(options).update(QUICK)
    else:
        machine.require_commit(options.out)
    for name in ("batch", "beam"):
        if min(getattr(options, name)) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.rounds < 1 or options.source < 2 or options.target < 2:
        parser.error("--rounds must be at least 1, --source and --target at least 2")
    try:
        usable = sorted(os.sched_getaffinity(0))
        options.cores = [int(c) for c in options.cores.split(",")] if options.cores else usable
        if not set(options.cores) <= set(usable):
            parser.error(f"--cores {options.cores}: this process may use {usable}")
    except ValueError:
        parser.error(f"--cores {options.cores!r} is no list such as 0,1")
    return options


def sizes_of(options: argparse.Namespace) -> Sizes:
    sizes = dict(SIZES[options.size])
    if options.vocab:
        sizes["vocabulary"] = options.vocab
    return Sizes(options.size, source=options.source, target=options.target, **sizes)


def groups_of(options: argparse.Namespace) -> list[tuple[str, int, int]]:
    return [(c, n, k) for c in options.compute for n in options.batch for k in options.beam]


class Results:
    """The measurements so far, from the file of results."""

    def __init__(self, path: Path, facts: dict[str, Any], go_on: bool):
        self.path = path
        self.data: dict[str, Any] = {**facts, "groups": []}
        if go_on and path.exists():
            before = json.loads(path.read_text())
            for key, value in facts.items():
                if before[key] != value:
                    raise SystemExit(
                        f"error: {path} was measured with {key} {before[key]}, this is {value}: "
                        "leave out --continue to begin anew"
                    )
            self.data = before

    def has(self, compute: str, batch: int, beam: int) -> bool:
        wanted = (compute, batch, beam)
        return any((g["compute"], g["batch"], g["beam"]) == wanted for g in self.data["groups"])

    def add(self, compute: str, batch: int, beam: int, found: dict[str, Any]) -> None:
        group = {"compute": compute, "batch": batch, "beam": beam, "engines": found}
        self.data["groups"].append(group)
        machine.write_result(self.path, self.data, markdown(self.data))


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    machine.pin(options.cores)
    sizes = sizes_of(options)
    facts = {
        "machine": machine.facts(options.cores),
        "sizes": asdict(sizes),
        "rounds": options.rounds,
        "max_drift": options.max_drift,
        "engines": options.engines,
    }
    folder = options.out / machine.slug(facts["machine"])
    if options.quick:
        folder = options.bundles / "quick"
    name = "decoding.json" if sizes.name == "base" else f"decoding-{sizes.name}.json"
    results = Results(folder / name, facts, options.go_on)
    loop = partial(machine.loop_seconds, len(options.cores))
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    for compute in options.compute:
        runners = [
            engines.make_engine(
                name, sizes, compute, len(options.cores), options.programs, options.bundles
            )
            for name in options.engines
        ]
        try:
            for group in groups_of(options):
                if group[0] != compute or results.has(*group):
                    continue
                if time.monotonic() > end:
                    print("time is over; the same with --continue goes on", file=sys.stderr)
                    return 0
                print(f"{compute}, batch {group[1]}, beam {group[2]} …", file=sys.stderr)
                found = rounds.measure_group(
                    runners,
                    *group[1:],
                    options.rounds,
                    options.max_drift,
                    loop,
                    always=(OURS, *REFERENCES),
                )
                results.add(*group, found)
        except (Broken, drift.Unsteady) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            for runner in runners:
                runner.stop()
    print(results.path.with_suffix(".md").read_text())
    print(f"written to {results.path} and .md", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
