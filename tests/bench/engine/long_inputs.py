"""Measures the cost of long texts: time and memory per source token, time per step as the target
grows, and the convolutions on long sequences compared to a plain copy.

`encoder` and `decoder` run `linnet-decode --synthetic` on random bundles that differ only in their
mixer, one sentence at a time, with the mixers in turn; figures are medians over the rounds. The
steps of `decoder` belong to one target. `operators` runs bench_ops. Parts can be measured alone:
the results of the other parts are kept, and --continue adds rounds to existing results.

Writes DIR/MACHINE/long-inputs.json and long-inputs.md; plots.py draws them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import engines
import machine
from decoding import SIZES
from engines import Broken, Sizes
from long_inputs_report import Part, report

PARTS = ("encoder", "decoder", "operators")
SOURCES = (16, 64, 256, 1024, 4096)
TARGETS = (32, 64, 128, 256, 512)
DECODER_SOURCE = 30  # tokens, while the target grows
SECONDS = 600


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [all]")
    add("--size", choices=SIZES, default="base", help="of the models [%(default)s]")
    add("--mixers", nargs="+", choices=engines.MIXERS, default=list(engines.MIXERS))
    add("--sources", nargs="+", type=int, default=list(SOURCES), metavar="N",
        help="source tokens of the encoder [16 to 4096]")  # fmt: skip
    add("--targets", nargs="+", type=int, default=list(TARGETS), metavar="N",
        help="target lengths between which steps are averaged [32 to 512]")  # fmt: skip
    add("--beam", type=int, default=5, metavar="N", help="of the decoder [%(default)s]")
    add("--compute", default="float32", metavar="TYPE", help="[%(default)s]")
    add("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    add("--seconds", type=float, default=1.0, metavar="N",
        help="per case of bench_ops [%(default)s]")  # fmt: skip
    engines.add_folders(parser, programs="linnet-decode and bench_ops")
    add("--continue", action="store_true", dest="go_on", help="add rounds to existing results")
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    options.parts = options.parts or list(PARTS)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(PARTS)}")
    if min(options.sources) < 2 or min(options.targets) < 2 or options.rounds < 1:
        parser.error("--sources and --targets must be at least 2, --rounds at least 1")
    options.sources, options.targets = sorted(set(options.sources)), sorted(set(options.targets))
    return options


def bundles(options: argparse.Namespace) -> dict[str, Path]:
    """Maps mixers to bundles that accept the longest texts of the run."""
    limits = ["--max-source-tokens", str(max(options.sources))]
    limits += ["--max-target-tokens", str(max(options.targets))]
    sizes = Sizes(options.size, source=0, target=0, **SIZES[options.size])
    name = f"{max(options.sources)}-{max(options.targets)}"
    return {m: engines.bundle_for(m, sizes, options.bundles, limits, name) for m in options.mixers}


def linnet(
    options: argparse.Namespace, bundle: Path, source: int, target: int, *flags: str
) -> engines.Linnet:
    sizes = Sizes(options.size, source=source, target=target, **SIZES[options.size])
    flags = ("--compute", options.compute, *flags)
    return engines.Linnet("linnet", options.programs / "linnet-decode", bundle, sizes, list(flags))


def encoder(options: argparse.Namespace, made: dict[str, Path], found: Part) -> None:
    """Adds a round: an encoder pass and one decoder step for each length of the source."""
    for tokens, mixer in product(options.sources, options.mixers):
        engine = linnet(options, made[mixer], tokens, 1)
        engines.settle()
        print(f"{mixer}, {tokens} source tokens …", file=sys.stderr)
        measured = engine.measure(batch=1, beam=1, repeat=3 if tokens < 4096 else 1)
        run = {"seconds": measured.seconds[0], "peak_bytes": engine.peak}
        found.setdefault(mixer, {}).setdefault(str(tokens), []).append(run)


def decoder(options: argparse.Namespace, made: dict[str, Path], found: Part) -> None:
    """Adds a round: the steps of one long target, averaged between consecutive lengths."""
    for mixer in options.mixers:
        engine = linnet(options, made[mixer], DECODER_SOURCE, options.targets[-1], "--step-seconds")
        engines.settle()
        print(f"{mixer}, {options.targets[-1]} target tokens …", file=sys.stderr)
        steps = engine.measure(batch=1, beam=options.beam, repeat=3).steps
        for begin, end in pairwise([0, *options.targets]):
            run = {"step_seconds": median(steps[begin:end])}
            found.setdefault(mixer, {}).setdefault(str(end), []).append(run)


def operators(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The cases of bench_ops that end in _long."""
    command = [str(options.programs / "bench_ops"), "--benchmark_filter=_long"]
    command += [f"--benchmark_min_time={options.seconds}", "--benchmark_format=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise Broken(f"bench_ops ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    cases = []
    for case in json.loads(done.stdout)["benchmarks"]:
        name, tokens, bits = case["name"].split("/")[:3]
        cases.append(
            {
                "operator": name.removesuffix("_long"),
                "tokens": int(tokens.removeprefix("tokens:")),
                "bits": int(bits.removeprefix("bits:")),
                "bytes_per_second": case["bytes"],
                "flop_per_second": case["flop"],
            }
        )
    return cases


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    facts = {
        "machine": machine.facts(),
        "size": options.size,
        "compute": options.compute,
        "beam": options.beam,
    }
    path = options.out / machine.slug(facts["machine"]) / "long-inputs.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if any(results.get(key) != value for key, value in facts.items() if key != "machine"):
        results = {}
    results.update(facts)
    try:
        if {"encoder", "decoder"} & set(options.parts):
            made = bundles(options)
        for part in options.parts:
            if part == "operators":
                results[part] = operators(options)
                continue
            found = results.get(part, {}) if options.go_on else {}
            for _ in range(options.rounds):
                (encoder if part == "encoder" else decoder)(options, made, found)
            results[part] = found
    except (Broken, engines.Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = report(results)
    machine.write_result(path, results, text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
