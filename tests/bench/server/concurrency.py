"""Measures 10,000 calls at once on a server with default settings.

Each round starts a server on all cores. A closed loop of 100 callers shows what it answers. Then
10,000 callers make one call of one sentence each, all at once, and their deadline is too short for
all of them: the server should answer as many a second as before, and refuse the others before their
deadline. The memory of a waiting call is the growth of the server's resident memory from the end of
the closed loop, over the calls that are in flight at that moment. Server and callers share the
cores in both loads. Writes DIR/MACHINE/concurrency.json and concurrency.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from started import add_server, metric, server

ROOT = Path(__file__).resolve().parents[3]
FEW, MANY = 100, 10_000
CONNECTIONS = 100
LOOKS_APART = 0.25  # seconds
REFUSALS = ("DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")


def resident(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


def start(options: argparse.Namespace, port: str, *flags: str) -> subprocess.Popen[str]:
    """Callers of made-up sentences, of which no two are equal."""
    command = [str(options.programs / "linnet-load"), "--server", f"127.0.0.1:{port}", "--json"]
    command += ["--to", options.target, "--from", options.source]
    command += ["--channels", str(CONNECTIONS), "--deadline", f"{options.deadline}s", *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(load: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = load.communicate()
    assert load.returncode == 0, load.args
    return json.loads(out)


def measure(options: argparse.Namespace) -> dict[str, float]:
    with server(options.programs, options.bundle) as (process, port, page):
        few = ["--concurrency", str(FEW), "--warmup", "4s", "--duration", f"{options.seconds}s"]
        pace = result(start(options, port, *few))["answered_per_second"]
        before = resident(process)
        begin = time.monotonic()
        load = start(options, port, "--concurrency", str(MANY), "--calls", str(MANY), "--seed", "2")
        looks = [(0.0, before)]
        while load.poll() is None:
            looks.append((metric(page, "linnet_requests_in_flight"), resident(process)))
            time.sleep(LOOKS_APART)
        seconds = time.monotonic() - begin
        statuses = result(load)["by_status"]
    calls, most = max(looks)
    of = {name: n["calls"] for name, n in statuses.items()}
    ends = [n["from_sent_ms"]["max"] / 1e3 for name, n in statuses.items() if name in REFUSALS]
    return {
        "few_answered_a_second": pace,
        "seconds": seconds,
        "answered": of.get("OK", 0),
        "refused": of.get("DEADLINE_EXCEEDED", 0),
        "shed": of.get("RESOURCE_EXHAUSTED", 0),
        "others": sum(n for name, n in of.items() if name not in (*REFUSALS, "OK")),
        "last_refusal": max(ends, default=0.0),
        "goodput_ratio": of.get("OK", 0) / seconds / pace,
        "calls_in_flight": calls,
        "memory_a_call": (most - before) / calls if calls else 0.0,
    }


def markdown(data: dict[str, Any]) -> str:
    rows = {
        "few_answered_a_second": (f"answers a second, {FEW} callers", ".1f", 1),
        "seconds": (f"until the last of {MANY:,} calls at once has ended, s", ".1f", 1),
        "answered": ("of them answered", ",.0f", 1),
        "refused": ("of them refused, as their deadline is too close", ",.0f", 1),
        "shed": ("of them refused, as the server is busy", ",.0f", 1),
        "others": ("of them ended otherwise", ",.0f", 1),
        "last_refusal": ("the latest refusal, s after the call was sent", ".1f", 1),
        "goodput_ratio": (f"answers a second, times those of {FEW} callers", ".2f", 1),
        "calls_in_flight": ("most calls in flight at once in the server", ",.0f", 1),
        "memory_a_call": ("memory of each of them, KiB", ".0f", 1 << 10),
    }
    about = (
        f"{machine.sentence(data['machine'])}. `tests/bench/server/concurrency.py`: "
        f"{data['bundle']}, default settings, one sentence a call, deadlines of "
        f"{data['deadline']} s; medians of {len(data['rounds'])} rounds."
    )
    lines = [
        [words, f"{data['medians'][key] / unit:{form}}"]
        for key, (words, form, unit) in rows.items()
    ]
    return machine.report("Ten thousand calls at once", about, ["", ""], lines)


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add_server(parser)
    add("--seconds", type=int, default=10, help="of the closed loop [%(default)s]")
    add("--deadline", type=int, default=20, help="of each call, in seconds [%(default)s]")
    add("--rounds", type=int, default=3, help="[%(default)s]")
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    rounds = [measure(options) for _ in range(options.rounds)]
    data = {
        "machine": machine.facts(),
        "bundle": machine.bundle_name(options.bundle),
        "deadline": options.deadline,
        "rounds": rounds,
        "medians": {key: statistics.median(each[key] for each in rounds) for key in rounds[0]},
    }
    machine.publish(options.out, "concurrency", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
