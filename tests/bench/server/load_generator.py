"""Measures linnet-load itself: its max calls per second, the cost of a call, and stalls.

A server that answers at once (bench_echo_server) runs on the first core, linnet-load on the second.
Closed loops measure the calls per second that it can make and the CPU time of each; open loops
(Poisson) the rate up to which it sends calls at their due time. Finally the server stalls for a
second from time to time, which the percentiles of an open loop, from the due time, must show.
Writes DIR/MACHINE/load-generator.json and load-generator.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
CLOSED = ((1, 1), (4, 1), (16, 1), (64, 1), (64, 4), (256, 4))  # calls in flight, channels
SHARES = (0.1, 0.2, 0.3, 0.4, 0.6)  # of the fastest closed loop
STALL_MS, STALL_EVERY_MS = 1000, 4000
STALL_SECONDS = 15


@contextmanager
def echo(options: argparse.Namespace, core: int, *stall: int) -> Iterator[str]:
    """Yields the address of a running server."""
    command = ["taskset", "--cpu-list", str(core), str(options.programs / "bench_echo_server")]
    process = subprocess.Popen(
        [*command, *map(str, stall)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip().removeprefix("ready grpc=")
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def load(
    options: argparse.Namespace, core: int, address: str, *flags: str, seconds: int = 0
) -> dict[str, Any]:
    command = ["taskset", "--cpu-list", str(core), str(options.programs / "linnet-load")]
    command += ["--server", address, "--to", "de", "--from", "en", "--json"]
    command += ["--duration", f"{seconds or options.seconds}s", "--warmup", "1s", *flags]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(done.stdout)
    assert set(result["by_status"]) == {"OK"}, result["by_status"]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    calls = result["calls"]["measured"] + result["calls"]["warm_up"]
    answered = result["by_status"]["OK"]
    return {
        "offered_per_second": result["offered_per_second"],
        "answered_per_second": result["answered_per_second"],
        "cpu_us_per_call": 1e6 * cpu / calls,
        "core_share": cpu / result["elapsed_seconds"],
        "late_share": result["calls"]["late"] / result["calls"]["measured"],
        "from_intended_ms": answered["from_intended_ms"],
        "from_sent_ms": answered["from_sent_ms"],
    }


def measure(options: argparse.Namespace, cores: list[int]) -> dict[str, Any]:
    results: dict[str, Any] = {"closed": [], "open": [], "stall": {}}
    server, mine = cores[0], cores[-1]
    with echo(options, server) as address:
        for in_flight, channels in CLOSED:
            flags = ["--concurrency", str(in_flight), "--channels", str(channels)]
            runs = [load(options, mine, address, *flags) for _ in range(options.rounds)]
            runs.sort(key=lambda run: run["answered_per_second"])
            row = {"in_flight": in_flight, "channels": channels, **runs[len(runs) // 2]}
            row["all"] = [run["answered_per_second"] for run in runs]
            results["closed"].append(row)
            print(json.dumps(row), flush=True)
        maximum = max(row["answered_per_second"] for row in results["closed"])
        for share in SHARES:
            row = load(
                options, mine, address, "--rate", f"{share * maximum:.1f}", "--channels", "4"
            )
            results["open"].append({"share": share, **row})
            print(json.dumps(results["open"][-1]), flush=True)
    with echo(options, server, STALL_MS, STALL_EVERY_MS) as address:
        for name, flags in {
            "closed": ["--concurrency", "1"],
            "open": ["--rate", "200", "--max-in-flight", "64"],
        }.items():
            results["stall"][name] = load(options, mine, address, *flags, seconds=STALL_SECONDS)
            print(json.dumps({name: results["stall"][name]}), flush=True)
    return results


def number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def markdown(results: dict[str, Any]) -> str:
    settings = results["settings"]
    rounds = f"the median of {settings['rounds']} runs" if settings["rounds"] > 1 else "one run"
    lines = [
        "# The load generator",
        "",
        f"{machine.sentence(results['machine'])}. An echo server has core {settings['cores'][0]}, "
        f"linnet-load core {settings['cores'][-1]}; one made-up sentence of 3 to 25 words a call; "
        f"{settings['seconds']} s each, after 1 s that is not measured.",
        "",
        f"Closed loops, {rounds}:",
        "",
        "| in flight | channels | calls/s | its CPU µs a call | of its core | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["closed"]:
        cells = [row["answered_per_second"], row["cpu_us_per_call"]]
        lines.append(
            f"| {row['in_flight']} | {row['channels']} | {' | '.join(map(number, cells))} "
            f"| {row['core_share']:.0%} | {number(row['from_sent_ms']['p50'])} "
            f"| {number(row['from_sent_ms']['p99'])} |"
        )
    lines += [
        "",
        "Open loops, Poisson, 4 channels; late is what was sent more than 1 ms after its time:",
        "",
        "| of the fastest | offered/s | answered/s | late | of its core | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["open"]:
        cells = [row["offered_per_second"], row["answered_per_second"]]
        lines.append(
            f"| {row['share']:.0%} | {' | '.join(map(number, cells))} | {row['late_share']:.2%} "
            f"| {row['core_share']:.0%} | {number(row['from_intended_ms']['p50'])} "
            f"| {number(row['from_intended_ms']['p99'])} |"
        )
    lines += [
        "",
        f"The server stands still for {STALL_MS / 1000:g} s whenever it has run for "
        f"{STALL_EVERY_MS / 1000:g} s, for {STALL_SECONDS} s; ms:",
        "",
        "| loop | answered/s | p50 | p90 | p99 | max |",
        "|---|---|---|---|---|---|",
    ]
    for name, key, words in (
        ("closed", "from_sent_ms", "closed, 1 in flight, as a naive client measures"),
        ("open", "from_sent_ms", "open, 200 calls/s, from sending"),
        ("open", "from_intended_ms", "open, 200 calls/s, from the time due"),
    ):
        row = results["stall"][name]
        cells = [row[key][percentile] for percentile in ("p50", "p90", "p99", "max")]
        lines.append(
            f"| {words} | {number(row['answered_per_second'])} | {' | '.join(map(number, cells))} |"
        )
    share = STALL_MS / (STALL_MS + STALL_EVERY_MS)
    lines += [
        "",
        f"{share:.0%} of the calls of an open loop are due while the server stands still. The "
        "closed loop has made one call in each stall, and its p99 knows nothing of it.",
        "",
    ]
    return "\n".join(lines)


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of each closed loop")
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    cores = sorted(os.sched_getaffinity(0))[:2]
    results = measure(options, cores)
    results["machine"] = machine.facts(cores)
    results["settings"] = {"cores": cores, "seconds": options.seconds, "rounds": options.rounds}
    path = options.out / machine.slug(results["machine"]) / "load-generator.json"
    machine.write_result(path, results, markdown(results))
    print(f"wrote {path.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
