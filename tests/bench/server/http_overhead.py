"""Measures what linnet-http costs: latency of one sentence at a time, and throughput with many.

The server has the first core with one thread of the engine; linnet-http and the clients have the
second one.

- Alone: each sentence by the asyncio client of Python and over HTTP (LibreTranslate's API), in
  turn, one in flight.
- Load: --concurrency requests of one sentence in flight, over HTTP (http_load.py) and over gRPC
  (linnet-load), in turn.

Rounds in which the machine's speed drifted are thrown away (drift.py). Writes
DIR/MACHINE/http-overhead.json and http-overhead.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
import server_overhead
import two_cores
from drift import Drift, note
from sentences import sentences
from server_overhead import Placement, on
from two_cores import cpu_seconds

LOAD = Path(__file__).with_name("http_load.py")
MAX_ADDED_MS = 1.2
MIN_SHARE = 0.85


@contextmanager
def front_end(
    cores: list[int], grpc: str, *flags: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address and the process of a running linnet-http with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "linnet_http", "--server", grpc, "--server-metrics", ""]
        command += ["--listen", "127.0.0.1:0", "--glossaries", f"{folder}/glossaries"]
        command += ["--documents", f"{folder}/documents", *flags]
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(
                on(cores, command), stdout=subprocess.PIPE, stderr=log, text=True
            )
            try:
                assert process.stdout is not None
                ready = process.stdout.readline()
                if not ready.startswith("ready http="):
                    raise SystemExit(f"error: linnet-http ended with {process.wait()}")
                yield ready.strip().removeprefix("ready http="), process
            finally:
                process.terminate()
                process.wait(60)


def http_load(cores: list[int], *flags: str) -> dict[str, Any]:
    command = [sys.executable, str(LOAD), *flags]
    done = subprocess.run(on(cores, command), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: the load over HTTP failed: {done.stderr}")
    return dict(json.loads(done.stdout))


Door = tuple[str, subprocess.Popen[str]]


def alone(cores: list[int], grpc: str, door: Door, file: Path) -> dict[str, float]:
    """Medians of the milliseconds of a sentence, and of what HTTP adds to the same sentence."""
    before = cpu_seconds(door[1].pid)
    found = http_load(cores, "--http", door[0], "--grpc", grpc, "--file", str(file))
    used = 1e3 * (cpu_seconds(door[1].pid) - before)
    added = [one - other for one, other in zip(found["http"], found["grpc"], strict=True)]
    return {
        "grpc_ms": median(found["grpc"]),
        "http_ms": median(found["http"]),
        "added_ms": median(added),
        "cpu_ms": used / len(added),
    }


def under_load(
    options: argparse.Namespace, placement: Placement, grpc: str, door: Door, file: Path
) -> dict[str, float]:
    """Sentences per second of both ways."""
    warmup, seconds = options.seconds / 4, options.seconds
    count = str(options.concurrency)
    before = cpu_seconds(door[1].pid)
    by_http = http_load(
        placement.rest, "--http", door[0], "--file", str(file), "--concurrency", count,
        "--warmup", str(warmup), "--seconds", str(seconds),
    )  # fmt: skip
    used = 1e3 * (cpu_seconds(door[1].pid) - before)
    flags = ["--concurrency", count, "--warmup", f"{warmup}s", "--duration", f"{seconds}s"]
    by_grpc = server_overhead.load(options, placement, grpc, file, *flags)
    return {
        "grpc_per_second": by_grpc["texts_per_second"],
        "http_per_second": by_http["per_second"],
        "http_median_ms": by_http["median_ms"],
        "cpu_ms": used / by_http["answered"],
    }


def measure(options: argparse.Namespace, cores: list[int]) -> dict[str, Any]:
    placement = Placement(cores[:1], cores[1:2])
    drift = Drift(options.max_drift, partial(machine.loop_seconds, len(cores)), options.rounds)

    def rounds(once: Callable[[], dict[str, float]]) -> dict[str, list[float]]:
        found = [drift.steady(once) for _ in range(options.rounds)]
        return {name: [one[name] for one in found] for name in found[0]}

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts"
        file.write_text("\n".join(sentences(options.sentences)) + "\n")
        options.batch, beam = options.concurrency, options.beam
        on_first = Placement(placement.engine, placement.engine)
        with (
            server_overhead.server(options, on_first, options.compute, beam) as grpc,
            front_end(placement.rest, grpc) as door,
        ):
            return {
                "alone": rounds(partial(alone, placement.rest, grpc, door, file)),
                "load": rounds(partial(under_load, options, placement, grpc, door, file)),
            }


def share_of(results: dict[str, Any]) -> float:
    load = results["load"]
    pairs = zip(load["http_per_second"], load["grpc_per_second"], strict=True)
    return median(one / other for one, other in pairs)


def markdown(results: dict[str, Any]) -> str:
    one, load = results["alone"], results["load"]
    added, share = median(one["added_ms"]), share_of(results)
    rows = [
        [
            "one sentence at a time, median",
            f"{median(one['grpc_ms']):.2f} ms",
            f"{median(one['http_ms']):.2f} ms",
            f"{added:.2f} ms more (wanted: at most {MAX_ADDED_MS} ms)",
            f"{median(one['cpu_ms']):.2f} ms",
        ],
        [
            f"{results['concurrency']} requests in flight",
            f"{median(load['grpc_per_second']):.1f}/s",
            f"{median(load['http_per_second']):.1f}/s",
            f"{share:.1%} (wanted: at least {MIN_SHARE:.0%})",
            f"{median(load['cpu_ms']):.2f} ms",
        ],
    ]
    about = (
        "Written by `tests/bench/server/http_overhead.py`. "
        f"{machine.sentence(results['machine'])}; bundle {results['bundle']}, "
        f"{results['compute']}, beam {results['beam']}. The server has the first core; linnet-http "
        "with one worker and the clients have the second one. Medians over the rounds."
        f"{note(results.get('max_drift'))} "
        f"The load average was {results['load_average']} at the start."
    )
    heads = ["", "gRPC", "HTTP", "difference", "processor time of linnet-http per request"]
    return machine.report("The cost of linnet-http", about, heads, rows)


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = two_cores.parser(__doc__, seconds=8, rounds=5)
    add = parser.add_argument
    add("--compute", default="int8", metavar="TYPE", help="[int8]")
    add("--beam", type=int, default=4, metavar="N", help="of the bundle [4]")
    add("--concurrency", type=int, default=64, metavar="N", help="[%(default)s]")
    add("--sentences", type=int, default=400, metavar="N", help="[%(default)s]")
    return two_cores.parsed(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    results = two_cores.facts(options, "compute", "beam", "concurrency")
    results["load_average"] = round(os.getloadavg()[0], 1)  # what else runs here
    cores = sorted(os.sched_getaffinity(0))
    results |= two_cores.steady(lambda: measure(options, cores))
    machine.publish(options.out, "http-overhead", results, markdown(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
