"""Measures interactive calls beside a batch file, beside the programs of an earlier commit.

Each round starts a server of each version in turn, with two threads, and measures: one interactive
call a second alone; a file at batch priority alone; both together; ten files of one client at beam
8 and the interactive calls of another. Wall times of a shared machine say little: compare latencies
with those alone of the same server, and the pace of the file by the server's CPU time, less that of
the interactive calls. Writes DIR/MACHINE/priorities.json and priorities.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from sentences import sentences

FILES = 10  # of one client


@contextmanager
def server(programs: Path, models: Path, *flags: str) -> Iterator[tuple[int, str, str]]:
    """The process, the port and the metrics page of a server that is ready."""
    command = [str(programs / "linnet-server"), "--models", str(models), *flags]
    command += ["--listen", "[::]:0", "--metrics-listen", "127.0.0.1:0", "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = re.match(r"ready grpc=\S+:(\d+) metrics=(\S+)", process.stdout.readline())
        if ready is None:
            raise SystemExit(f"error: the server ended with {process.wait()}")
        yield process.pid, ready[1], f"http://{ready[2]}/metrics"
    finally:
        process.terminate()
        process.wait(60)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interactive(options: argparse.Namespace, port: str, seconds: float) -> dict[str, Any]:
    """Latencies of one call a second."""
    call = {
        "sourceLanguageCode": options.source,
        "targetLanguageCode": options.target,
        "priority": "PRIORITY_INTERACTIVE",
    }
    command = [str(options.programs / "linnet-load"), "--server", f"[::1]:{port}", "--json"]
    command += ["--rate", "1", "--arrivals", "constant", "--max-in-flight", "1"]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as mix:
        mix.write(json.dumps({"weight": 1, "translate": call, "words": [3, 25]}) + "\n")
        mix.flush()
        command += ["--duration", f"{seconds:.0f}s", "--mix", mix.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    by_status = json.loads(done.stdout)["by_status"]
    times = by_status["OK"]["from_sent_ms"]
    calls = {name: status["calls"] for name, status in by_status.items()}
    return {"p50_ms": times["p50"], "p99_ms": times["p99"], "calls": calls}


def start_file(
    options: argparse.Namespace, port: str, text: Path, *flags: str
) -> subprocess.Popen[bytes]:
    command = [str(options.programs / "linnet"), "translate", "--server", f"127.0.0.1:{port}"]
    command += ["--from", options.source, "--to", options.target, "--document"]
    command += ["--priority", "batch", "--file", str(text), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def measure(options: argparse.Namespace, programs: Path, folder: Path) -> dict[str, Any]:
    text, long = folder / "lines.txt", folder / "long.txt"
    lines = sentences(7000)
    text.write_text("\n".join((lines * 100)[: options.lines]) + "\n")
    long.write_text("\n".join(" ".join(lines[i : i + 4]) for i in range(0, 7000, 4)) + "\n")
    flags = ("--threads", "2", "--compute", options.compute)
    with server(programs, options.bundle, *flags) as (process, port, _):
        interactive(options, port, 5)
        before = cpu_seconds(process)
        alone = interactive(options, port, options.seconds)
        own = (cpu_seconds(process) - before) / alone["calls"]["OK"]

        def file_and(beside: bool) -> dict[str, Any]:
            begin, before = time.monotonic(), cpu_seconds(process)
            file = start_file(options, port, text)
            calls = []
            while beside and file.poll() is None:
                calls.append(interactive(options, port, options.seconds))
            assert file.wait() == 0
            answered = sum(each["calls"]["OK"] for each in calls)
            cpu = cpu_seconds(process) - before - own * answered
            result = {"lines_per_cpu_second": options.lines / cpu}
            if beside:
                return result | calls[0]
            return result | {"seconds": time.monotonic() - begin}

        file_alone = file_and(beside=False)
        together = file_and(beside=True)
        files = [start_file(options, port, long, "--beam", "8") for _ in range(FILES)]
        try:
            time.sleep(3)
            others = interactive(options, port, options.seconds)
        finally:
            for each in files:
                each.kill()
                each.wait()
    return {
        "alone_p50_ms": alone["p50_ms"],
        "alone_p99_ms": alone["p99_ms"],
        "p50_times": together["p50_ms"] / alone["p50_ms"],
        "p99_times": together["p99_ms"] / alone["p99_ms"],
        "file_pace": together["lines_per_cpu_second"] / file_alone["lines_per_cpu_second"],
        "files_p50_times": others["p50_ms"] / alone["p50_ms"],
        "files_p99_times": others["p99_ms"] / alone["p99_ms"],
        "files_failed": sum(n for name, n in others["calls"].items() if name != "OK"),
    }


def markdown(data: dict[str, Any]) -> str:
    rows = {
        "alone_p50_ms": "alone, p50, ms",
        "alone_p99_ms": "alone, p99, ms",
        "p50_times": "beside a file, p50, times alone",
        "p99_times": "beside a file, p99, times alone",
        "file_pace": "lines of the file per CPU second, times alone",
        "files_p50_times": f"beside {FILES} files of one client, p50, times alone",
        "files_p99_times": f"beside {FILES} files of one client, p99, times alone",
        "files_failed": f"beside {FILES} files of one client, failed",
    }
    lines = [
        "# Interactive calls beside batch work",
        "",
        f"{machine.sentence(data['machine'])}. `tests/bench/server/priorities.py`: {data['bundle']}"
        f" in {data['compute']}, two threads, one interactive call a second for {data['seconds']} "
        f"s; before is {data['before']}; medians of {data['rounds']} rounds in turn. The machine "
        f"had other work: load average {data['load_average']:.1f}.",
        "",
        "| | before | after |",
        "|---|---:|---:|",
    ]
    for key, words in rows.items():
        cells = [data["versions"][name][key] for name in ("before", "after")]
        lines.append(f"| {words} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join([*lines, ""])


def add_server(parser: argparse.ArgumentParser) -> None:
    """Adds the server, and the pair of languages that its bundle translates."""
    machine.add_server(parser)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--before", type=Path, required=True, help="programs of an earlier commit")
    add("--before-version", required=True, help="and that commit")
    add_server(parser)
    add("--compute", default="int8")
    add("--seconds", type=float, default=60, help="of the interactive calls")
    add("--lines", type=int, default=20_000, help="of the file, which takes longer than that")
    add("--rounds", type=int, default=2)
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    programs = {"before": options.before, "after": options.programs}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for name in sorted(programs, reverse=turn % 2 == 0):
                rounds[name].append(measure(options, programs[name], Path(folder)))
                print(name, json.dumps(rounds[name][-1]), flush=True)
    data = {
        "machine": machine.facts(),
        "bundle": machine.bundle_name(options.bundle),
        "compute": options.compute,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "lines": options.lines,
        "before": options.before_version,
        "load_average": os.getloadavg()[1],
        "versions": {
            name: {key: statistics.median(each[key] for each in all_) for key in all_[0]}
            for name, all_ in rounds.items()
        },
    }
    path = options.out / machine.slug(data["machine"]) / "priorities.json"
    machine.write_result(path, data, markdown(data))
    print(f"wrote {path.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
