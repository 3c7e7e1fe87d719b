"""Measures the overhead of the server: throughput at full load and latency of a single sentence.

The same sentences go through `linnet-decode`, which is the batcher and the engine without the
network, and through `linnet-server` with `linnet-load`, in turn. The engine has one thread on the
first core; on the second one are the rest of the server and the load generator. With --all-cores
nothing is pinned and the engine has as many threads as there are cores.

- Full load: sequences in flight fill all of --batch, offline; as many calls again wait at the
  server. Offline the time of a process with few sentences is taken from that of one with many, so
  that loading and the last, thinning batch drop out.
- Alone: one sentence in flight at a time on both sides.

Both report the processor time of each side and group of threads, which says more than a wall time
where others use the machine.

Rounds in which the machine's speed drifted are thrown away (drift.py). Writes
DIR/MACHINE/server-overhead.json and server-overhead.md. What was measured before at the same commit
with the same settings but other compute types, cores, beams or loads is kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
import two_cores
from drift import Drift, note
from sentences import sentences

ENGINE_THREAD = "linnet-engine"
SECONDS = 600  # for any process
MIN_SHARE = 0.95  # of the offline throughput
MAX_ADDED_MS = 2.0


@dataclass(frozen=True)
class Placement:
    """The cores of the engine, the server and the clients."""

    engine: list[int]
    rest: list[int]

    @property
    def threads(self) -> int:
        return len(self.engine)


def on(cores: list[int], command: list[str]) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]


@contextmanager
def server_process(
    options: argparse.Namespace, placement: Placement, compute: str, beam: int
) -> Iterator[tuple[str, int]]:
    """The address and the process of a server, with its engine's thread on separate cores."""
    command = [str(options.programs / "linnet-server"), "--models", str(options.bundle)]
    command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    command += ["--threads", str(placement.threads), "--compute", compute]
    command += ["--max-batch-rows", str(options.batch * beam), "--log-level", "warning"]
    # Stay in this session: a new one would be another group of the kernel's scheduler.
    process = subprocess.Popen(on(placement.rest, command), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready.startswith("ready grpc="):
            raise SystemExit(f"error: the server ended with {process.wait()}")
        if placement.engine != placement.rest:
            os.sched_setaffinity(thread_of(process.pid, ENGINE_THREAD), placement.engine)
        yield ready.split()[1].removeprefix("grpc="), process.pid
    finally:
        process.terminate()
        process.wait(SECONDS)


@contextmanager
def server(
    options: argparse.Namespace, placement: Placement, compute: str, beam: int
) -> Iterator[str]:
    """The address of such a server."""
    with server_process(options, placement, compute, beam) as (address, _):
        yield address


def thread_of(pid: int, name: str) -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise SystemExit(f"error: the server has no thread {name}")


def threads_cpu(pid: int) -> dict[str, float]:
    """The processor time of the engine's threads, which all have its name, and of the others."""
    found = {"engine": 0.0, "rest of the server": 0.0}
    for task in Path(f"/proc/{pid}/task").iterdir():
        own = (task / "comm").read_text().strip() == ENGINE_THREAD
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found["engine" if own else "rest of the server"] += seconds
    return found


def children_cpu() -> float:
    """The processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load(
    options: argparse.Namespace, placement: Placement, address: str, file: Path, *flags: str
) -> dict[str, Any]:
    """The report of linnet-load on the sentences of a file."""
    command = [str(options.programs / "linnet-load"), "--server", address, "--file", str(file)]
    command += ["--from", options.source, "--to", options.target, "--json", *flags]
    done = subprocess.run(
        on(placement.rest, command), capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode != 0:
        raise SystemExit(f"error: linnet-load ended with {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    if set(report["by_status"]) != {"OK"}:
        raise SystemExit(f"error: not all calls were answered: {report['by_status']}")
    return dict(report)


def decode_seconds(
    options: argparse.Namespace, placement: Placement, texts: list[str], flags: dict[str, Any]
) -> tuple[float, float]:
    """The seconds that linnet-decode takes for the texts, loading included, and those of its
    processor time."""
    command = [str(options.programs / "linnet-decode"), "--bundle", str(options.bundle)]
    command += ["--threads", str(placement.threads)]
    command += [f"--{name}={value}" for name, value in flags.items()]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    start, cpu = time.perf_counter(), children_cpu()
    done = subprocess.run(
        on(placement.engine, command), input=lines, capture_output=True, text=True, timeout=SECONDS
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"error: linnet-decode ended with {done.returncode}: {done.stderr}")
    return seconds, children_cpu() - cpu


def engine_seconds(
    options: argparse.Namespace, placement: Placement, texts: list[str], flags: dict[str, Any]
) -> tuple[float, float]:
    """The time and the processor time per sentence without the first ones."""
    few = min(2 * flags["batch"], len(texts) // 2)
    base = decode_seconds(options, placement, texts[:few], flags)
    whole = decode_seconds(options, placement, texts + texts[:few], flags)
    return (whole[0] - base[0]) / len(texts), (whole[1] - base[1]) / len(texts)


def measured_load(
    options: argparse.Namespace,
    placement: Placement,
    server: tuple[str, int],
    file: Path,
    *flags: str,
) -> tuple[dict[str, Any], dict[str, float]]:
    """The report of linnet-load, and the processor time per sentence of each group of threads."""
    address, pid = server
    before, cpu = threads_cpu(pid), children_cpu()
    report = load(options, placement, address, file, *flags)
    spent = {name: seconds - before[name] for name, seconds in threads_cpu(pid).items()}
    spent["linnet-load"] = children_cpu() - cpu
    calls = report["calls"]["measured"] + report["calls"]["warm_up"]
    return report, {name: seconds / calls for name, seconds in spent.items()}


def steady_rounds(
    options: argparse.Namespace, measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The values of each round, offline and through the server, without rounds of drift."""
    loop = partial(machine.loop_seconds, len(os.sched_getaffinity(0)))
    drift = Drift(options.max_drift, loop, options.rounds)
    found = [drift.steady(measure) for _ in range(options.rounds)]
    return {key: [one[key] for one in found] for key in found[0]}


def full_load(
    options: argparse.Namespace, placement: Placement, compute: str, beam: int
) -> dict[str, Any]:
    """Sentences per second of each round, offline and through the server."""
    texts = sentences(options.sentences)
    offline = {"compute": compute, "batch": options.batch, "beam": beam}
    flags = ["--concurrency", str(2 * options.batch), "--beam", str(beam)]
    flags += ["--warmup", f"{options.seconds / 5}s", "--duration", f"{options.seconds}s"]
    with (
        tempfile.TemporaryDirectory() as folder,
        server_process(options, placement, compute, beam) as served,
    ):
        file = Path(folder) / "texts"
        file.write_text("\n".join(texts) + "\n")

        def measure() -> dict[str, Any]:
            seconds, cpu = engine_seconds(options, placement, texts, offline)
            report, spent = measured_load(options, placement, served, file, *flags)
            rates = {"offline": 1 / seconds, "server": report["texts_per_second"]}
            return {**rates, "cpu": {"offline": cpu, **spent}}

        return steady_rounds(options, measure)


def alone(
    options: argparse.Namespace, placement: Placement, compute: str, beam: int
) -> dict[str, Any]:
    """Milliseconds of a short sentence in each round, offline and through the server."""
    texts = [text for text in sentences(7000) if len(text.split()) <= 6][: options.sentences]
    offline = {"compute": compute, "batch": 1, "beam": beam}
    flags = ["--concurrency", "1", "--calls", str(len(texts)), "--beam", str(beam)]
    with (
        tempfile.TemporaryDirectory() as folder,
        server_process(options, placement, compute, beam) as served,
    ):
        file = Path(folder) / "texts"
        file.write_text("\n".join(texts) + "\n")

        def measure() -> dict[str, Any]:
            seconds, cpu = engine_seconds(options, placement, texts, offline)
            report, spent = measured_load(options, placement, served, file, *flags)
            mean = report["by_status"]["OK"]["from_sent_ms"]["mean"]
            return {"offline": 1e3 * seconds, "server": mean, "cpu": {"offline": cpu, **spent}}

        return steady_rounds(options, measure)


def share_of(case: dict[str, Any]) -> float:
    """The throughput through the server, as a share of the engine's in the same round."""
    return median(b / a for a, b in zip(case["offline"], case["server"], strict=True))


def added_ms(case: dict[str, Any]) -> float:
    """The milliseconds that the server adds to the engine's in the same round."""
    return median(b - a for a, b in zip(case["offline"], case["server"], strict=True))


def markdown(results: dict[str, Any]) -> str:
    lines = [
        "# Overhead of the server",
        "",
        "Written by `tests/bench/server/server_overhead.py`. "
        f"{machine.sentence(results['machine'])}; "
        f"bundle {results['bundle']}, batch {results['batch']}, {results['sentences']} sentences. "
        "Medians over the rounds, ratios and differences within a round."
        f"{note(results.get('max_drift'))}",
        "",
        "| type | cores | beam | offline, sentences/s | through gRPC | share | wanted | met |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for case in results.get("load", []):
        share = share_of(case)
        wanted = [f"≥ {MIN_SHARE:.0%}", "yes" if share >= MIN_SHARE else "no"]
        lines.append(
            f"| {case['compute']} | {case['cores']} | {case['beam']} | "
            f"{median(case['offline']):.1f} | "
            f"{median(case['server']):.1f} | {share:.1%} | "
            + " | ".join(wanted if case["cores"] == "apart" else ["reported only", ""])
            + " |"
        )
    lines += [
        "",
        "| type | cores | beam | engine alone, ms | through gRPC | added | wanted | met |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for case in results.get("alone", []):
        added = added_ms(case)
        lines.append(
            f"| {case['compute']} | {case['cores']} | {case['beam']} | "
            f"{median(case['offline']):.2f} | "
            f"{median(case['server']):.2f} | {added:.2f} ms | ≤ {MAX_ADDED_MS:.0f} ms | "
            f"{'yes' if added <= MAX_ADDED_MS else 'no'} |"
        )
    groups = ("offline", "engine", "rest of the server", "linnet-load")
    timed = [(what, case) for what in ("load", "alone") for case in results.get(what, [])]
    timed = [(what, case) for what, case in timed if "cpu" in case]  # older results have none
    if timed:
        lines += [
            "",
            "Processor time in ms a sentence:",
            "",
            "| load | type | cores | beam | offline | engine | rest of the server | linnet-load | "
            "offline / (engine and rest) |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|",
        ]
    for what, case in timed:
        spent = {group: median(one[group] for one in case["cpu"]) for group in groups}
        share = median(
            one["offline"] / (one["engine"] + one["rest of the server"]) for one in case["cpu"]
        )
        numbers = " | ".join(f"{1e3 * spent[group]:.2f}" for group in groups)
        lines.append(
            f"| {what} | {case['compute']} | {case['cores']} | {case['beam']} | {numbers} | "
            f"{share:.0%} |"
        )
    lines += [
        "",
        "*apart*: one engine thread on one core, the rest of the server and the load generator on "
        "the other. *all*: nothing pinned, an engine thread per core.",
    ]
    return "\n".join(lines) + "\n"


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = two_cores.parser(__doc__, seconds=8, rounds=3)
    add = parser.add_argument
    add("--compute", nargs="+", default=["float32", "int8"], metavar="TYPE", help="[float32 int8]")
    add("--beam", nargs="+", type=int, default=[1, 5], metavar="N", help="[1 5]")
    add("--batch", type=int, default=32, metavar="N", help="sequences in flight [%(default)s]")
    add("--sentences", type=int, default=400, metavar="N", help="[%(default)s]")
    add("--what", nargs="+", choices=("load", "alone"), default=["load", "alone"])
    add("--all-cores", action="store_true", help="do not pin processes to cores")
    options = two_cores.parsed(parser, words)
    if min(options.rounds, options.batch, *options.beam) < 1 or options.sentences < 4:
        parser.error("--rounds, --batch and --beam must be at least 1, --sentences at least 4")
    return options


def put(cases: list[dict[str, Any]], case: dict[str, Any]) -> None:
    """Replaces the result with the same type, cores and beam."""
    key = ("compute", "cores", "beam")
    cases[:] = [one for one in cases if any(one[name] != case[name] for name in key)]
    cases.append(case)
    cases.sort(key=lambda c: (c["compute"], c["cores"] != "apart", c["beam"]))


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    cores = sorted(os.sched_getaffinity(0))
    facts = two_cores.facts(options, "batch", "sentences")
    path = options.out / machine.slug(facts["machine"]) / "server-overhead.json"
    results = machine.kept(path, facts)
    name = "all" if options.all_cores else "apart"
    placement = Placement(cores, cores) if options.all_cores else Placement(cores[:1], cores[1:2])
    measures = {"load": full_load, "alone": alone}
    for compute, beam, what in itertools.product(options.compute, options.beam, options.what):
        print(f"{what}, {compute}, cores {name}, beam {beam} …", file=sys.stderr)
        rounds = two_cores.steady(partial(measures[what], options, placement, compute, beam))
        case = {"compute": compute, "cores": name, "beam": beam, **rounds}
        put(results.setdefault(what, []), case)
    machine.write_result(path, results, markdown(results))
    print(markdown(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
