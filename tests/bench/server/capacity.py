"""Measures the capacity of replicas.

    .venv/bin/python tests/bench/server/capacity.py             all of it, half an hour when idle
    .venv/bin/python tests/bench/server/capacity.py one         a part: one, search, two
    .venv/bin/python tests/bench/server/capacity.py one --beam 1

one     A server of one engine thread on one core, linnet-load on another. First a closed loop with
        more concurrent texts than the engine has rows: the answers per second are its capacity.
        Then open loops, whose arrivals do not wait for earlier answers, at shares of it: their
        latencies.
search  The highest rate on the same server at which 99 % of all calls are answered within each
        objective (linnet-load --find-rate).
two     One replica and two, each on its own core, behind client-side balancing. On a machine with
        no more cores linnet-load shares them, in both cases.

Runs of one and two in which the machine's speed drifted are thrown away (drift.py); a search is
too long for that. Writes DIR/MACHINE/capacity.json and capacity.md; parts that were measured before
at the same commit with the same settings are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from drift import Drift, Unsteady, add_max_drift, note

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy"))

from replicas import BUNDLES, Server

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("one", "search", "two")
SHARES = (0.5, 0.7, 0.8, 0.9)
PERCENTILES = ("p50", "p90", "p99")
PROBE_CALLS = 2200  # of Poisson arrivals, so that p99 rests on twenty calls of 2,000 at least


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
    return settings.drift.steady(partial(load, settings, servers, cores, *flags))


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def summary(run: dict) -> dict[str, Any]:
    """The numbers of a run of linnet-load that the page shows."""
    late = run["by_status"]["OK"]["from_intended_ms"]
    return {
        "calls_per_second": run["answered_per_second"],
        "target_tokens_per_second": run["target_tokens_per_second"],
        "source_tokens_per_second": run["source_tokens_per_second"],
        "latency_ms": {name: late[name] for name in PERCENTILES},
        "ended": sorted(run["by_status"]),
    }


def one(settings: argparse.Namespace, server: Server) -> dict[str, Any]:
    """The capacity, and latencies at shares of it."""
    core = settings.cores[1:]
    maximum = full(settings, [server], core)
    capacity = maximum["answered_per_second"]
    found: dict[str, Any] = {
        "texts": maximum["texts"],
        "in_flight": maximum["in_flight"],
        "max_drift": settings.max_drift,
        "capacity": summary(maximum),
        "shares": [],
    }
    seconds = ("--duration", f"{settings.seconds}s")
    for share in SHARES if "one" in settings.parts else ():
        rate = ("--rate", f"{share * capacity:.3f}")
        run = settings.drift.steady(partial(load, settings, [server], core, *seconds, *rate))
        found["shares"].append({"share": share, **summary(run)})
    found["resident_bytes"] = resident_bytes(server)
    return found


def search(settings: argparse.Namespace, server: Server, capacity: float) -> dict[str, Any]:
    """The highest rate within each objective; null if even the lowest rate tried is too high."""
    found = []
    lowest = 0.25 * capacity
    seconds = ("--duration", f"{PROBE_CALLS / lowest:.0f}s")
    for ms in settings.objectives:
        rates = ("--rates", f"{lowest:.2f}", f"{1.2 * capacity:.2f}")
        flags = ("--find-rate", "--objective", f"p99={ms}ms", *rates)
        run = load(settings, [server], settings.cores[1:], *flags, *seconds)
        rate, probes = run["found_per_second"], run["probes"]
        late = [probe["from_intended_ms"] for probe in probes if probe["rate"] == rate]
        found.append(
            {
                "objective_ms": ms,
                "calls_per_second": rate,
                "lowest_tried": probes[0]["rate"],
                "latency_ms": {name: late[-1][name] for name in PERCENTILES} if late else None,
            }
        )
    return {"capacity": capacity, "objectives": found}


def two(settings: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    both = settings.cores
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
        how = {"replicas": len(replicas), "linnet_load": where, "max_drift": settings.max_drift}
        found.append({**how, **summary(run)})
    return found


def measure(settings: argparse.Namespace) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if "one" in settings.parts or "search" in settings.parts:
        with served(settings, settings.cores[0]) as server:
            found = one(settings, server)
            if "one" in settings.parts:
                data["one"] = found
            if "search" in settings.parts:
                data["search"] = search(settings, server, found["capacity"]["calls_per_second"])
    if "two" in settings.parts:
        data["two"] = two(settings)
    return data


def latencies(run: dict[str, Any], *names: str) -> str:
    return " | ".join(f"{run['latency_ms'][name]:.0f} ms" for name in names)


def one_table(data: dict[str, Any]) -> str:
    found, at = data["one"], data["one"]["capacity"]
    ends = {end for run in (at, *found["shares"]) for end in run["ended"]}
    lines = [
        f"{data['bundle']}, {data['compute']}, beam {data['beam']}, one core of "
        f"{machine.sentence(data['machine'])}, the load on the other; {found['texts']}, one a "
        f"call; each line {data['seconds']} s; calls ended: {', '.join(sorted(ends))}",
        "",
        "| load | calls/s | p50 | p90 | p99 |",
        "|---|---:|---:|---:|---:|",
        f"| closed loop, {found['in_flight']} at a time: the capacity | "
        f"{at['calls_per_second']:.1f} | {latencies(at, *PERCENTILES)} |",
    ]
    for run in found["shares"]:
        lines.append(
            f"| open loop, {run['share']:.0%} of it | {run['calls_per_second']:.1f} | "
            f"{latencies(run, *PERCENTILES)} |"
        )
    lines += [
        "",
        f"At capacity {at['source_tokens_per_second']:.0f} source and "
        f"{at['target_tokens_per_second']:.0f} target tokens/s; "
        f"{found['resident_bytes'] / 1e6:.0f} MB resident.{note(found.get('max_drift'))}",
    ]
    return "\n".join(lines)


def check_objectives(runs: list[dict[str, Any]]) -> None:
    """Raises ValueError if a run for a looser objective meets a stricter one at a higher rate: then
    the search for the stricter one ended too early, by chance."""
    found = [run for run in runs if run["calls_per_second"] is not None]
    for strict in runs:
        for run in found:
            faster = run["calls_per_second"] > (strict["calls_per_second"] or 0)
            if faster and run["latency_ms"]["p99"] <= strict["objective_ms"]:
                raise ValueError(
                    f"{run['calls_per_second']:.1f} calls/s had a p99 of "
                    f"{run['latency_ms']['p99']:.0f} ms, above the rate found for "
                    f"{strict['objective_ms']} ms: measure the objectives again"
                )


def search_table(data: dict[str, Any]) -> str:
    capacity = data["search"]["capacity"]
    check_objectives(data["search"]["objectives"])
    lines = [
        f"| 99 % of calls within | calls/s | of the capacity, {capacity:.1f} in this run | p50 "
        "| p99 |",
        "|---|---:|---:|---:|---:|",
    ]
    for run in data["search"]["objectives"]:
        if run["calls_per_second"] is None:
            rest = f"below {run['lowest_tried']:.1f} | | | |"
        else:
            share = run["calls_per_second"] / capacity
            rest = f"{run['calls_per_second']:.1f} | {share:.0%} | {latencies(run, 'p50', 'p99')} |"
        lines.append(f"| {run['objective_ms']} ms | {rest}")
    return "\n".join(lines)


def two_table(data: dict[str, Any]) -> str:
    lines = [
        "| replicas | linnet-load | calls/s | target tokens/s | p50 | p99 |",
        "|---|---|---:|---:|---:|---:|",
    ]
    rates = {}
    for run in data["two"]:
        rates[run["linnet_load"]] = run["calls_per_second"]
        lines.append(
            f"| {run['replicas']} | {run['linnet_load']} | {run['calls_per_second']:.1f} | "
            f"{run['target_tokens_per_second']:.0f} | {latencies(run, 'p50', 'p99')} |"
        )
    ratio = rates["on both cores"] / rates["on the same core"]
    steady = note(data["two"][0].get("max_drift"))
    times = f"Two have {ratio:.2f} times the capacity of one with the load on the same core."
    lines += ["", f"{times}{steady}"]
    return "\n".join(lines)


TABLES = {"one": one_table, "search": search_table, "two": two_table}


def markdown(data: dict[str, Any]) -> str:
    tables = [table(data) for part, table in TABLES.items() if part in data]
    return "\n\n".join(["# Capacity of replicas", *tables]) + "\n"


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
    add_max_drift(parser)
    settings = machine.parse(parser)
    settings.parts = settings.parts or PARTS
    if unknown := set(settings.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    loop = partial(machine.loop_seconds, len(settings.cores))
    settings.drift = Drift(settings.max_drift, loop, rounds=len(SHARES) + 4)
    facts = machine.facts(settings.cores)
    path = settings.out / machine.slug(facts) / "capacity.json"
    data: dict[str, Any] = {
        "machine": facts,
        "bundle": machine.bundle_name(settings.bundle),
        "compute": settings.compute,
        "beam": settings.beam,
        "seconds": settings.seconds,
    }
    data = machine.kept(path, data)
    try:
        data |= measure(settings)
    except Unsteady as error:
        raise SystemExit(f"error: {error}") from error
    machine.write_result(path, data, markdown(data))
    print(markdown(data))


if __name__ == "__main__":
    main()
