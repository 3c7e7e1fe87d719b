"""Measures a server under overload.

First the capacity: the throughput of a closed loop that keeps the engine full. Then open loops
(Poisson arrivals, measured from the due time) at 50, 100, 150 and 300 % of it, each call with a
deadline: goodput counts answers within it. Then a burst, on an idle engine, of four times as many
calls as can finish by their deadline. Finally two clients with different addresses (127.0.0.1 and
::1), one with ten times the load of the other, which offers more than half of the capacity.

The engine has one thread on the first core; the rest of the server and the load generator share the
second one. Runs in which the machine's speed drifted are thrown away (drift.py). Writes
DIR/MACHINE/overload.json and overload.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from drift import Drift, Unsteady, add_max_drift, note
from sentences import sentences

ENGINE_THREAD = "linnet-engine"
LOADS = (0.5, 1.0, 1.5, 3.0)
BURST = 4.0  # times the calls that can finish by the deadline
BURST_SECONDS = 0.2


def on(core: int, command: list[str]) -> list[str]:
    return ["taskset", "--cpu-list", str(core), *command]


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], ready: str):
        self.process = process
        self.port, self.metrics = (word.rpartition(":")[2] for word in ready.split()[1:3])
        self.safety_factor = 1.0  # of latency estimates, when the page was last read

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def refused(self) -> dict[str, float]:
        """The number of refused calls by reason, and as `late` the admitted calls that missed their
        deadline; their clients, which cancel no other calls, may have cancelled them first."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10)
        lines = page.read().decode().splitlines()
        counts = {}
        for line in lines:
            name, _, value = line.rpartition(" ")
            if name.startswith("linnet_rejected_total") or 'outcome="shed"' in name:
                counts[name.split('"')[-2]] = float(value)
            if re.match(r'linnet_sequences_total.*outcome="(expired|cancelled)"', name):
                counts["late"] = counts.get("late", 0) + float(value)
            if name.startswith("linnet_estimate_safety_factor") and 'for="waiting"' in name:
                self.safety_factor = float(value)
        return counts


@contextmanager
def server(options: argparse.Namespace, cores: list[int]) -> Iterator[Server]:
    command = [str(options.programs / "linnet-server"), "--models", str(options.bundle)]
    command += ["--listen", "[::]:0", "--metrics-listen", "127.0.0.1:0", "--threads", "1"]
    command += ["--compute", options.compute, "--max-batch-rows", str(options.rows)]
    command += ["--log-level", "warning"]
    process = subprocess.Popen(on(cores[-1], command), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready.startswith("ready grpc="):
            raise SystemExit(f"error: the server ended with {process.wait()}")
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == ENGINE_THREAD:
                os.sched_setaffinity(int(task.name), cores[:1])
        yield Server(process, ready)
    finally:
        process.terminate()
        process.wait(60)


def start_load(
    options: argparse.Namespace, core: int, address: str, file: Path, *flags: str
) -> subprocess.Popen[str]:
    command = [str(options.programs / "linnet-load"), "--server", address, "--file", str(file)]
    command += ["--from", "en", "--to", "de", "--beam", str(options.beam), "--json", *flags]
    return subprocess.Popen(on(core, command), stdout=subprocess.PIPE, text=True)


def report(load: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = load.communicate(timeout=300)
    return json.loads(out)


def with_deadline(options: argparse.Namespace) -> list[str]:
    flags = ["--deadline", f"{options.deadline}s", "--objective", f"{options.deadline}s"]
    return [*flags, "--max-in-flight", "4000", "--channels", "40", "--drain", "5s"]


def open_loop(options: argparse.Namespace, rate: float) -> list[str]:
    flags = ["--rate", f"{rate:.2f}", "--duration", f"{options.seconds}s", "--warmup", "6s"]
    return [*flags, *with_deadline(options)]


def burst(options: argparse.Namespace, capacity: float) -> list[str]:
    rate = BURST * options.deadline * capacity / BURST_SECONDS
    schedule = f"1:3s,{rate:.0f}:{BURST_SECONDS}s,1:3s"
    return ["--schedule", schedule, *with_deadline(options)]


def summary(result: dict[str, Any]) -> dict[str, Any]:
    by_status = result["by_status"]
    answered = by_status.get("OK", {})
    return {
        "offered_per_second": result["offered_per_second"],
        "goodput_per_second": result["goodput_per_second"],
        "answered_p50_ms": answered.get("from_sent_ms", {}).get("p50"),
        "answered_p99_ms": answered.get("from_sent_ms", {}).get("p99"),
        "calls": {name: status["calls"] for name, status in by_status.items()},
    }


def since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """The increase of the counters."""
    return {reason: n - before[reason] for reason, n in after.items() if n > before[reason]}


def measure(options: argparse.Namespace, cores: list[int], file: Path) -> dict[str, Any]:
    core = cores[-1]
    loop_seconds = partial(machine.loop_seconds, len(cores))
    drift = Drift(options.max_drift, loop_seconds, rounds=len(LOADS) + 3)
    with server(options, cores) as running:
        address = f"127.0.0.1:{running.port}"
        flags = ["--concurrency", str(2 * options.rows // options.beam), "--channels", "4"]
        flags += ["--duration", "8s", "--warmup", "4s"]

        def full() -> float:
            found = report(start_load(options, core, address, file, *flags))
            return float(found["answered_per_second"])

        capacity = drift.steady(full)

        def at(load: float) -> dict[str, Any]:
            before = running.refused()
            loop = open_loop(options, load * capacity)
            result = summary(report(start_load(options, core, address, file, *loop)))
            after = running.refused()
            result["load"] = load
            result["memory_mb"] = running.memory()
            result["safety_factor"] = running.safety_factor
            result["refused"] = since(before, after)
            print(json.dumps(result), flush=True)
            time.sleep(1)
            return result

        def in_burst() -> dict[str, Any]:
            before = running.refused()
            result = summary(
                report(start_load(options, core, address, file, *burst(options, capacity)))
            )
            result["refused"] = since(before, running.refused())
            return result

        def of_two() -> dict[str, Any]:
            before = running.refused()
            greedy, modest = (
                start_load(options, core, host, file, *open_loop(options, share * capacity))
                for host, share in ((address, 6.0), (f"[::1]:{running.port}", 0.6))
            )
            return {
                "greedy": summary(report(greedy)),
                "modest": summary(report(modest)),
                "refused": since(before, running.refused()),
                "safety_factor": running.safety_factor,
                "memory_mb": running.memory(),
            }

        return {
            "capacity_per_second": capacity,
            "loads": [drift.steady(partial(at, load)) for load in LOADS],
            "burst": drift.steady(in_burst),
            "two_clients": drift.steady(of_two),
        }


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def markdown(results: dict[str, Any]) -> str:
    settings = results["settings"]
    lines = [
        "# Overload",
        "",
        f"{machine.sentence(results['machine'])}. Bundle {settings['bundle']}, "
        f"{settings['compute']}, beam {settings['beam']}, {settings['rows']} rows; a call is one "
        f"sentence with a deadline of {settings['deadline']} s; {settings['seconds']} s at each "
        "load, after 6 s of the same that are not measured. The engine has one core, the rest of "
        f"the server and the load generator the other.{note(settings.get('max_drift'))}",
        "",
        f"A closed loop that keeps the engine full gets {results['capacity_per_second']:.1f} "
        "answers a second: 100 %.",
        "",
        "| load | offered/s | goodput/s | of capacity | p50 ms | p99 ms | not answered "
        "| admitted but late | safety factor | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["loads"]:
        others = ", ".join(f"{n} {name}" for name, n in row["calls"].items() if name != "OK")
        cells = [row["offered_per_second"], row["goodput_per_second"]]
        share = row["goodput_per_second"] / results["capacity_per_second"]
        lines.append(
            f"| {row['load']:.0%} | {' | '.join(map(number, cells))} | {share:.0%} "
            f"| {number(row['answered_p50_ms'])} | {number(row['answered_p99_ms'])} "
            f"| {others or '–'} | {row['refused'].get('late', 0):.0f} "
            f"| {row['safety_factor']:.2f} | {row['memory_mb']:.0f} |"
        )
    both, burst = results["two_clients"], results["burst"]
    lines += [
        "",
        "Latencies are those of answered calls. Late calls were admitted and missed their "
        "deadline; they include those of the warm-up, and those that the client cancelled first. "
        "The safety factor, at the end, is what latency estimates are multiplied by.",
        "",
        f"A burst, {sum(burst['calls'].values())} calls within {BURST_SECONDS} s that find the "
        f"engine idle: {burst['calls'].get('OK', 0)} were answered in time, where a full engine "
        f"makes {settings['deadline'] * results['capacity_per_second']:.0f} until the deadline; "
        f"{burst['refused'].get('deadline', 0):.0f} were refused at once, "
        f"{burst['refused'].get('late', 0):.0f} admitted and late.",
        "",
        "Two clients at once:",
        "",
        "| client | offered/s | goodput/s | answered/s | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("greedy", "modest"):
        row = both[name]
        answered = row["calls"].get("OK", 0) / settings["seconds"]
        cells = [row["offered_per_second"], row["goodput_per_second"], answered]
        cells += [row["answered_p50_ms"], row["answered_p99_ms"]]
        lines.append(f"| {name} | {' | '.join(map(number, cells))} |")
    lines += [
        "",
        f"Calls of the two clients that were admitted and missed their deadline: "
        f"{both['refused'].get('late', 0):.0f}. Goodput counts answers within the deadline from "
        "the due time of a call; answered/s counts those within the deadline from its sending. "
        "The fair queue shares the cost of admitted "
        "sequences equally (OverloadSimulationTest): a sequence whose answer is late counts as "
        "well.",
    ]
    return "\n".join([*lines, ""])


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    machine.add_server(parser)
    parser.add_argument("--compute", default="float32")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--deadline", type=float, default=2, help="of a call, in seconds")
    parser.add_argument("--seconds", type=int, default=10, help="at each load")
    add_max_drift(parser)
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    cores = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sentences"
        file.write_text("".join(f"{line}\n" for line in sentences(2000)))
        try:
            results = measure(options, cores, file)
        except Unsteady as error:
            raise SystemExit(f"error: {error}") from error
    results["machine"] = machine.facts(cores)
    results["settings"] = {
        "bundle": machine.bundle_name(options.bundle),
        **{
            key: getattr(options, key)
            for key in ("compute", "beam", "rows", "deadline", "seconds", "max_drift")
        },
    }
    path = options.out / machine.slug(results["machine"]) / "overload.json"
    machine.write_result(path, results, markdown(results))
    print(f"wrote {path.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
