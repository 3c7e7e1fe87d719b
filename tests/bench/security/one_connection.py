"""Measures the cost of many authenticated calls of one connection: time and memory per slice.

Two tokens take turns on one channel; the call is ListModels, which does no work for its answer, so
that what a connection or a caller leaves behind shows. Time is the server's processor time, as
the kernel has it: the client, in Python, is slower than the server.

Writes DIR/MACHINE/one-connection.json and one-connection.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/e2e")]
import machine  # noqa: E402
import resources  # noqa: E402

TOKENS = {"alice": "alice-0123456789abcdef", "bob": "bob-0123456789abcdef"}
IN_FLIGHT = 100


class Server:
    """A server that requires tokens; end it with `stop`."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        tokens = folder / "tokens"
        lines = [f"{token} {name} inference\n" for name, token in TOKENS.items()]
        tokens.write_text("".join(lines))
        command = [str(options.programs / "linnet-server"), "--models", str(options.bundle)]
        command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
        command += ["--threads", "1", "--log-level", "warning", "--tokens", str(tokens)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        match = re.match(r"ready grpc=(\S+) metrics=(\S+)", self.process.stdout.readline())
        if match is None:
            raise SystemExit(f"error: the server ended with {self.process.wait()}")
        self.grpc, self.metrics = match.groups()

    def resident_bytes(self) -> float:
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=30) as page:
            samples = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines())
        return float(samples["process_resident_memory_bytes"])

    def cpu_seconds(self) -> float:
        return resources.cpu_seconds(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def call_many(channel: grpc.Channel, calls: int) -> None:
    list_models = channel.unary_unary("/linnet.v1.TextService/ListModels")
    headers = [[("authorization", f"Bearer {token}")] for token in TOKENS.values()]
    while calls > 0:
        count = min(calls, IN_FLIGHT)
        futures = [
            list_models.future(b"", timeout=60, metadata=headers[number % len(headers)])
            for number in range(count)
        ]
        for future in futures:
            future.result()
        calls -= count


def measure(options: argparse.Namespace) -> list[dict[str, float]]:
    slices: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options, Path(folder))
        try:
            with grpc.insecure_channel(server.grpc) as channel:
                call_many(channel, options.warm_up)
                cpu = server.cpu_seconds()
                for number in range(options.slices):
                    size = options.calls // options.slices
                    before = time.perf_counter()
                    call_many(channel, size)
                    wall = time.perf_counter() - before
                    now = server.cpu_seconds()
                    slices.append(
                        {
                            "calls": size,
                            "seconds": wall,
                            "cpu_us_per_call": (now - cpu) / size * 1e6,
                            "resident_bytes": server.resident_bytes(),
                        }
                    )
                    cpu = server.cpu_seconds()  # before the metrics page is read
                    print(f"{number + 1}/{options.slices}: {slices[-1]}", flush=True)
        finally:
            server.stop()
    return slices


def total_of(results: dict[str, Any]) -> int:
    return sum(each["calls"] for each in results["slices"])


def changes(results: dict[str, Any]) -> tuple[float, float]:
    """From the first slice to the last: bytes of memory a call, ratio of the CPU time of a call."""
    first, last = results["slices"][0], results["slices"][-1]
    calls = total_of(results) - first["calls"] or 1
    growth = (last["resident_bytes"] - first["resident_bytes"]) / calls
    return growth, last["cpu_us_per_call"] / first["cpu_us_per_call"]


def markdown(results: dict[str, Any]) -> str:
    slices, total = results["slices"], total_of(results)
    growth, slower = changes(results)
    lines = [
        "# Authenticated calls of one connection",
        "",
        "Written by `tests/bench/security/one_connection.py`. "
        f"{machine.sentence(results['machine'])}; "
        f"{total:,} calls of ListModels after {results['warm_up']:,}, two tokens in turn, "
        f"{IN_FLIGHT} in flight.",
        "",
        f"Resident memory grew by {growth:.1f} bytes a call from the first slice to the last; the "
        f"last slice's processor time per call is {slower:.2f} of the first one's.",
        "",
        "| calls | server's processor time per call, µs | resident memory, MB | wall time, s |",
        "|---:|---:|---:|---:|",
    ]
    made = 0
    for each in slices:
        made += int(each["calls"])
        lines.append(
            f"| {made:,} | {each['cpu_us_per_call']:.0f} | {each['resident_bytes'] / 1e6:.1f} "
            f"| {each['seconds']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--warm-up", type=int, default=10_000)
    parser.add_argument("--slices", type=int, default=20)
    machine.add_server(parser)
    options = machine.parse(parser)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    results = {
        "machine": facts,
        "bundle": machine.bundle_name(options.bundle),
        "warm_up": options.warm_up,
        "slices": measure(options),
    }
    path = options.out / machine.slug(facts) / "one-connection.json"
    machine.write_result(path, results, markdown(results))


if __name__ == "__main__":
    main()
