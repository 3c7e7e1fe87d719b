"""What long texts cost: time and memory per source token, time per step as the target grows, and
the convolutions on long sequences beside a plain copy.

`encoder` and `decoder` run `linnet-decode --synthetic` on random bundles that differ in their mixer
alone, one sentence at a time, the mixers in turn; figures are medians over the rounds. `operators`
runs bench_ops. Each part may be measured by itself: what the others found before is kept, and
--continue adds rounds to what is there.

Writes DIR/MACHINE/long-inputs.json, long-inputs.md, long-encoder.svg and long-decoder.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import engines
import machine
from decoding import SIZES
from engines import Broken, Sizes
from long_inputs_report import write_report

ROOT = Path(__file__).resolve().parents[2]
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
        help="target tokens of the decoder, growing [32 to 512]")  # fmt: skip
    add("--beam", type=int, default=5, metavar="N", help="of the decoder [%(default)s]")
    add("--compute", default="float32", metavar="TYPE", help="[%(default)s]")
    add("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    add("--seconds", type=float, default=1.0, metavar="N",
        help="that bench_ops gives each case [%(default)s]")  # fmt: skip
    add("--programs", type=Path, default=ROOT / "build/release/bin", metavar="DIR",
        help="folder of linnet-decode and bench_ops [build/release/bin]")  # fmt: skip
    add("--bundles", type=Path, default=ROOT / "build/bench", metavar="DIR",
        help="folder that keeps the random bundles [build/bench]")  # fmt: skip
    add("--out", type=Path, default=ROOT / "tests/bench/results", metavar="DIR",
        help="folder of the results [tests/bench/results]")  # fmt: skip
    add("--continue", action="store_true", dest="go_on", help="add rounds to what is there")
    options = parser.parse_args(words)
    options.parts = options.parts or list(PARTS)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(PARTS)}")
    if min(options.sources) < 2 or min(options.targets) < 2 or options.rounds < 1:
        parser.error("--sources and --targets must be at least 2, --rounds at least 1")
    options.sources, options.targets = sorted(set(options.sources)), sorted(set(options.targets))
    return options


def bundles(options: argparse.Namespace) -> dict[str, Path]:
    """Mixer -> a bundle that serves the longest texts asked for."""
    limits = ["--max-source-tokens", str(max(options.sources))]
    limits += ["--max-target-tokens", str(max(options.targets))]
    sizes = Sizes(options.size, source=0, target=0, **SIZES[options.size])
    name = f"{max(options.sources)}-{max(options.targets)}"
    return {m: engines.bundle_for(m, sizes, options.bundles, limits, name) for m in options.mixers}


def measure(
    options: argparse.Namespace, bundle: Path, source: int, target: int, beam: int
) -> dict[str, float]:
    sizes = replace(
        Sizes(options.size, source=0, target=0, **SIZES[options.size]), source=source, target=target
    )
    flags = ["--compute", options.compute]
    engine = engines.Linnet("linnet", options.programs / "linnet-decode", bundle, sizes, flags)
    measured = engine.measure(batch=1, beam=beam, repeat=3 if source * target < 4096 else 1)
    return {"seconds": measured.seconds[0], "peak_bytes": engine.peak}


Case = tuple[str, int]  # mixer, tokens


def rounds_of(
    options: argparse.Namespace,
    tokens: list[int],
    run: Callable[[str, int], dict[str, float]],
    found: dict[str, dict[str, list[dict[str, float]]]],
) -> None:
    """Adds to `found` (mixer -> tokens -> a measurement per round)."""

    def cases() -> Iterator[Case]:
        for _ in range(options.rounds):
            for length in tokens:
                for mixer in options.mixers:
                    yield mixer, length

    for mixer, length in cases():
        engines.settle()
        print(f"{mixer}, {length} tokens …", file=sys.stderr)
        found.setdefault(mixer, {}).setdefault(str(length), []).append(run(mixer, length))


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
        "machine": machine.facts(sorted(os.sched_getaffinity(0))),
        "size": options.size,
        "compute": options.compute,
        "beam": options.beam,
    }
    folder = options.out / machine.slug(facts["machine"])
    path = folder / "long-inputs.json"
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
            if part == "encoder":  # and one step
                rounds_of(
                    options,
                    options.sources,
                    lambda mixer, n: measure(options, made[mixer], n, target=1, beam=1),
                    found,
                )
            else:
                rounds_of(
                    options,
                    options.targets,
                    lambda mixer, n: measure(options, made[mixer], DECODER_SOURCE, n, options.beam),
                    found,
                )
            results[part] = found
    except (Broken, engines.Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(write_report(results, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
