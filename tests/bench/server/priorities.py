"""Measures interactive calls beside files, for one or several models.

Each round starts a server of each model in turn, with two threads, and measures for a time: one
interactive call a second alone; a file at batch priority alone; both together; the same with a
file at normal priority; ten batch files of one client at beam 8 and the interactive calls of
another. With --before it also measures the programs of an earlier commit with the bundle. Wall
times of a shared machine say little: compare latencies with those alone of the same server, and the
pace of the file by the server's CPU time, less that of the interactive calls. --family adds a model
of families.py, whose random weights end no answer: all have TARGET tokens.

Writes DIR/MACHINE/priorities.json and priorities.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e"))
import machine
from families import FAMILIES, write_bundle
from resources import cpu_seconds
from sentences import sentences
from started import add_server, metric, server

FILES = 10  # of one client
WARM_SECONDS = 3
TARGET = 31  # tokens
TOKENS = "linnet_target_tokens_total"


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
    options: argparse.Namespace, port: str, text: Path, priority: str, *flags: str
) -> subprocess.Popen[bytes]:
    command = [str(options.programs / "linnet"), "translate", "--server", f"127.0.0.1:{port}"]
    command += ["--from", options.source, "--to", options.target, "--document"]
    command += ["--priority", priority, "--file", str(text), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which is killed at the end."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def measure(
    options: argparse.Namespace, programs: Path, bundle: Path, folder: Path
) -> dict[str, Any]:
    text, long = folder / "lines.txt", folder / "long.txt"
    lines = sentences(7000)
    text.write_text("\n".join(lines * 10) + "\n")  # more than are translated
    long.write_text("\n".join(" ".join(lines[i : i + 4]) for i in range(0, 7000, 4)) + "\n")
    flags = ("--threads", "2", "--compute", options.compute)
    with server(programs, bundle, *flags) as (process, port, page):
        interactive(options, port, 5)
        before, tokens = cpu_seconds(process), metric(page, TOKENS)
        alone = interactive(options, port, options.seconds)
        own_cpu = (cpu_seconds(process) - before) / alone["calls"]["OK"]
        own_tokens = (metric(page, TOKENS) - tokens) / alone["calls"]["OK"]

        def file_and(priority: str, beside: bool) -> dict[str, Any]:
            calls: dict[str, Any] = {"calls": {"OK": 0}}
            with ended(start_file(options, port, text, priority)) as file:
                time.sleep(WARM_SECONDS)
                before, tokens = cpu_seconds(process), metric(page, TOKENS)
                if beside:
                    calls = interactive(options, port, options.seconds)
                else:
                    time.sleep(options.seconds)
                cpu = cpu_seconds(process) - before - own_cpu * calls["calls"]["OK"]
                tokens = metric(page, TOKENS) - tokens - own_tokens * calls["calls"]["OK"]
                if file.poll() is not None:
                    raise SystemExit("error: the file ended before its time")
            return calls | {"tokens_per_cpu_second": tokens / cpu}

        times = {}
        for priority in ("batch", "normal"):
            file_alone = file_and(priority, beside=False)
            together = file_and(priority, beside=True)
            pace = together["tokens_per_cpu_second"] / file_alone["tokens_per_cpu_second"]
            times |= {
                f"{priority}_p50_times": together["p50_ms"] / alone["p50_ms"],
                f"{priority}_p99_times": together["p99_ms"] / alone["p99_ms"],
                f"{priority}_pace": pace,
            }
        with ExitStack() as files:
            for _ in range(FILES):
                files.enter_context(ended(start_file(options, port, long, "batch", "--beam", "8")))
            time.sleep(WARM_SECONDS)
            others = interactive(options, port, options.seconds)
    return {
        "alone_p50_ms": alone["p50_ms"],
        "alone_p99_ms": alone["p99_ms"],
        **times,
        "files_p50_times": others["p50_ms"] / alone["p50_ms"],
        "files_p99_times": others["p99_ms"] / alone["p99_ms"],
        "files_failed": sum(n for name, n in others["calls"].items() if name != "OK"),
    }


def write_family(name: str, folder: Path) -> Path:
    """Writes the bundle of a family, whose answers have at most TARGET tokens."""
    bundle = folder / re.sub(r"\W+", "-", name)
    write_bundle(FAMILIES[name], folder / "original", bundle)
    shutil.rmtree(folder / "original")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["limits"]["max_target_tokens"] = TARGET + 1
    manifest["default_options"]["max_target_tokens"] = TARGET
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    return bundle


def markdown(data: dict[str, Any]) -> str:
    rows = {
        "alone_p50_ms": "alone, p50, ms",
        "alone_p99_ms": "alone, p99, ms",
        "batch_p50_times": "beside a batch file, p50, times alone",
        "batch_p99_times": "beside a batch file, p99, times alone",
        "batch_pace": "tokens of the batch file per CPU second, times alone",
        "normal_p50_times": "beside a normal file, p50, times alone",
        "normal_p99_times": "beside a normal file, p99, times alone",
        "normal_pace": "tokens of the normal file per CPU second, times alone",
        "files_p50_times": f"beside {FILES} files of one client, p50, times alone",
        "files_p99_times": f"beside {FILES} files of one client, p99, times alone",
        "files_failed": f"beside {FILES} files of one client, failed",
    }
    before = f"; before is {data['before']}" if data["before"] else ""
    columns = data["columns"]
    lines = [
        "# Interactive calls beside files",
        "",
        f"{machine.sentence(data['machine'])}. `tests/bench/server/priorities.py`: "
        f"{data['compute']}, two threads, one interactive call a second for {data['seconds']} "
        f"s{before}; medians of {data['rounds']} rounds in turn; load average "
        f"{data['load_average']:.1f}.",
        "",
        f"| | {' | '.join(columns)} |",
        "|---|" + "---:|" * len(columns),
    ]
    for key, words in rows.items():
        cells = [f"{measured[key]:.2f}" for measured in columns.values()]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--before", type=Path, help="programs of an earlier commit")
    add("--before-version", default="", help="and that commit")
    add_server(parser)
    add("--family", choices=FAMILIES, default=[], nargs="+", metavar="NAME", help="of families.py")
    add("--compute", default="int8")
    add("--seconds", type=float, default=60, help="of each measurement")
    add("--rounds", type=int, default=2)
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    columns = {machine.bundle_name(options.bundle): (options.programs, options.bundle)}
    if options.before is not None:
        columns = {"before": (options.before, options.bundle)} | columns
    with tempfile.TemporaryDirectory() as folder:
        for name in options.family:
            columns[name] = (options.programs, write_family(name, Path(folder)))
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in columns}
        for turn in range(options.rounds):
            for name in list(columns) if turn % 2 == 0 else reversed(columns):
                rounds[name].append(measure(options, *columns[name], Path(folder)))
                print(name, json.dumps(rounds[name][-1]), flush=True)
    data = {
        "machine": machine.facts(),
        "compute": options.compute,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "before": options.before_version,
        "load_average": os.getloadavg()[1],
        "columns": {
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
