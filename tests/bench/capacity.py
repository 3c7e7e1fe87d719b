"""Measures the capacity of replicas: the numbers of docs/CAPACITY.md.

    .venv/bin/python tests/bench/capacity.py             all of it, six minutes when idle
    .venv/bin/python tests/bench/capacity.py one         a part: one, search, two
    .venv/bin/python tests/bench/capacity.py one --beam 1

one     A server of one engine thread on one core, linnet-load on another. First a closed loop with
        more concurrent texts than the engine has rows: the answers per second are its capacity.
        Then open loops, whose arrivals do not wait for earlier answers, at shares of it: their
        latencies.
search  The highest rate on the same server at which 99 % of all calls are answered within each
        objective (linnet-load --find-rate).
two     One replica and two, each on its own core, behind client-side balancing. On a machine with
        no more cores linnet-load shares them, in both cases.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deploy"))

from replicas import BUNDLES, Server

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("one", "search", "two")
SHARES = (0.5, 0.7, 0.8, 0.9)
PERCENTILES = ("p50", "p90", "p99")


@contextmanager
def served(settings: argparse.Namespace, core: int) -> Iterator[Server]:
    """A server with all its threads on one core."""
    flags = (
        "--compute",
        settings.compute,
        "--overload-max-queue-delay",
        "60",
        "--log-level",
        "warning",
    )
    server = Server(settings.binaries / "linnet-server", *flags, models=settings.bundle)
    try:
        server.wait_for_ready()
        for thread in os.listdir(f"/proc/{server.process.pid}/task"):
            os.sched_setaffinity(int(thread), {core})
        yield server
    finally:
        server.stop()
        server.remove()


def load(
    settings: argparse.Namespace, servers: list[Server], cores: list[int], *flags: str
) -> dict:
    addresses = ",".join(server.grpc for server in servers)
    command = ["taskset", "-c", ",".join(map(str, cores)), settings.binaries / "linnet-load"]
    command += ["--server", addresses, "--from", "en", "--to", "de", "--beam", str(settings.beam)]
    command += ["--warmup", f"{settings.warm_up}s", "--json", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    assert done.stdout, f"linnet-load ended with {done.returncode}"
    return json.loads(done.stdout)


def full(settings: argparse.Namespace, servers: list[Server], cores: list[int]) -> dict:
    """A closed loop that keeps all rows of each server in use."""
    flags = ("--concurrency", str(40 * len(servers)), "--duration", f"{settings.seconds}s")
    return load(settings, servers, cores, *flags)


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def row(name: str, run: dict) -> str:
    late = run["by_status"]["OK"]["from_intended_ms"]
    numbers = [f"{late[name]:.0f} ms" for name in PERCENTILES]
    return f"| {name} | {run['answered_per_second']:.1f} | {' | '.join(numbers)} |"


def print_head(settings: argparse.Namespace, run: dict) -> None:
    (cpu,) = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    print(f"{settings.bundle.name}, {settings.compute}, beam {settings.beam}, {cpu};")
    print(f"{run['texts']}, one a call; each run {settings.seconds} s\n")


def one(settings: argparse.Namespace, server: Server) -> float:
    """The capacity, in calls a second."""
    core = settings.cores[1:]
    maximum = full(settings, [server], core)
    capacity = maximum["answered_per_second"]
    seconds = ("--duration", f"{settings.seconds}s")
    print_head(settings, maximum)
    print("| load | calls/s | p50 | p90 | p99 |\n|---|---:|---:|---:|---:|")
    print(row(f"closed loop, {maximum['in_flight']} at a time: the capacity", maximum), flush=True)
    ends = set(maximum["by_status"])
    for share in SHARES if "one" in settings.parts else ():
        run = load(settings, [server], core, *seconds, "--rate", f"{share * capacity:.3f}")
        print(row(f"open loop, {share:.0%} of it", run), flush=True)
        ends |= set(run["by_status"])
    print(f"\nAt capacity {maximum['source_tokens_per_second']:.0f} source and ", end="")
    print(
        f"{maximum['target_tokens_per_second']:.0f} target tokens/s; calls ended: {ends}; ", end=""
    )
    print(f"{resident_bytes(server) / 1e6:.0f} MB resident.\n", flush=True)
    return capacity


def search(settings: argparse.Namespace, server: Server, capacity: float) -> None:
    print("| 99 % of calls within | calls/s | of the capacity | p50 | p99 | probes |")
    print("|---|---:|---:|---:|---:|---:|")
    for ms in settings.objectives:
        rates = ("--rates", f"{0.25 * capacity:.2f}", f"{1.2 * capacity:.2f}")
        flags = ("--find-rate", "--objective", f"p99={ms}ms", *rates)
        run = load(settings, [server], settings.cores[1:], *flags, "--duration", "8s")
        found, probes = run["found_per_second"], run["probes"]
        if found is None:
            print(f"| {ms} ms | below {probes[0]['rate']:.1f} | | | | {len(probes)} |", flush=True)
            continue
        late = [probe["from_intended_ms"] for probe in probes if probe["rate"] == found][-1]
        share = f"{found / capacity:.0%}"
        cells = f"{share} | {late['p50']:.0f} ms | {late['p99']:.0f} ms | {len(probes)}"
        print(f"| {ms} ms | {found:.1f} | {cells} |", flush=True)
    print()


def two(settings: argparse.Namespace) -> None:
    print("| replicas | linnet-load | calls/s | target tokens/s | p50 | p99 |")
    print("|---|---|---:|---:|---:|---:|")
    both = settings.cores
    runs = {}
    for replicas, cores, where in (
        (both[:1], both[1:], "on the other core"),
        (both[:1], both[:1], "on the same core"),
        (both, both, "on both cores"),
    ):
        with served(settings, replicas[0]) as first:
            if len(replicas) == 1:
                run = full(settings, [first], cores)
            else:
                with served(settings, replicas[1]) as second:
                    run = full(settings, [first, second], cores)
        late = run["by_status"]["OK"]["from_intended_ms"]
        cells = f"{run['answered_per_second']:.1f} | {run['target_tokens_per_second']:.0f}"
        cells += f" | {late['p50']:.0f} ms | {late['p99']:.0f} ms"
        print(f"| {len(replicas)} | {where} | {cells} |", flush=True)
        runs[where] = run["answered_per_second"]
    ratio = runs["on both cores"] / runs["on the same core"]
    print(f"\nTwo carry {ratio:.2f} times what one does with the load on the same core.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of one, search, two [all]")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--bundle", type=Path, default=BUNDLES / "en-de")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--seconds", type=int, default=15, help="of each run")
    parser.add_argument("--warm-up", type=int, default=3, help="before it, in seconds")
    parser.add_argument("--objectives", type=int, nargs="+", default=[100, 200, 500], help="ms")
    parser.add_argument("--cores", type=int, nargs=2, default=[0, 1])
    settings = parser.parse_args()
    settings.parts = settings.parts or PARTS
    if unknown := set(settings.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    if "one" in settings.parts or "search" in settings.parts:
        with served(settings, settings.cores[0]) as server:
            capacity = one(settings, server)
            if "search" in settings.parts:
                search(settings, server, capacity)
    if "two" in settings.parts:
        two(settings)


if __name__ == "__main__":
    main()
