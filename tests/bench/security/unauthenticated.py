"""Measures the cost of unauthenticated peers.

For each attack of tests/e2e/security/attacks.py a server of its own, which serves a tiny bundle:
first so many idle connections, so that what is allocated once is there, then as many attackers,
each for longer than `unauthenticated-timeout`, through a proxy for longer than twice that: a call
ends after one timeout, and its connection after another one. The cost of an attacker is what the
resident memory at its highest and the CPU time are above those with idle connections, divided by
the number of connections; idle connections are measured once on a server of each kind. Without
tokens, with them, and through HAProxy as deploy/balancers/haproxy-edge.cfg has it, with its
timeouts of clients set to that of the server: memory and CPU time are then those of the server and
the proxy together. Memory and time for TLS handshakes are not part of it. An attack is measured
several times, and the run with the median CPU time counts.

All is on one machine: the attackers take the server's cores as well, and what they could not send
for that reason is part of the result (`sent`). Writes DIR/MACHINE/unauthenticated.{json,md}.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / f"tests/{name}") for name in ("e2e/security", "e2e", "deploy")]
import edge  # noqa: E402
import resources  # noqa: E402
from attacks import ATTACKS, WITH_TOKENS, Script, attack, idle  # noqa: E402

MAX_KIB = 64
MAX_MILLISECONDS = 10
KINDS = {"open": "without tokens", "tokens": "with tokens", "proxy": "and HAProxy"}


class Target:
    """The target of an attack: a server, or a server and the proxy before it."""

    def __init__(self, address: str, seconds: float, *processes: subprocess.Popen[str]):
        self.address = address
        self.seconds = seconds  # that an attack lasts
        self.processes = processes

    def kib(self) -> float:
        """Resident memory."""
        return float(sum(resources.resident_kib(it.pid) for it in self.processes))

    def cpu_seconds(self) -> float:
        return sum(resources.cpu_seconds(it.pid) for it in self.processes)


@contextmanager
def server(options: argparse.Namespace, kind: str) -> Iterator[Target]:
    command = [str(options.programs / "linnet-server"), "--models", str(options.bundle)]
    command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--threads", "1"]
    command += ["--log-level", "error", "--unauthenticated-timeout", str(options.timeout)]
    if kind == "tokens":
        command += ["--tokens", str(options.tokens)]
    if kind == "proxy":
        command += ["--trusted-proxies", "127.0.0.1", "--request-timeout", str(options.timeout)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    started = [process]
    try:
        address = process.stdout.readline().split()[1].removeprefix("grpc=")
        if kind == "proxy":
            seconds = f"{options.timeout:g}s"
            lines = re.findall(
                r"timeout (?:http-request|http-keep-alive|client) +\S+", edge.CONFIG.read_text()
            )
            changes = {line: f"{line.rpartition(' ')[0]} {seconds}" for line in lines}
            proxy, address = edge.start(options.bundle.parent, address, changes=changes)
            started.append(proxy)
        timeouts = 2 if kind == "proxy" else 1
        yield Target(address, timeouts * options.timeout + 5, *started)
    finally:
        for each in reversed(started):
            each.terminate()
            each.wait(60)


def run(
    options: argparse.Namespace, running: Target, script: Callable[[], Script]
) -> dict[str, float]:
    """Attacks with so many connections; measures the cost until a second after the attack."""
    cpu = running.cpu_seconds()
    outcome = attack(
        running.address, script, options.connections, running.seconds, sample=running.kib
    )
    time.sleep(1)
    return {
        "cpu_seconds": running.cpu_seconds() - cpu,
        "peak_kib": max(outcome.samples),
        "open": outcome.open,
        "last_closed": outcome.last_closed,
        "sent": outcome.sent,
    }


def measure_idle(options: argparse.Namespace, kind: str) -> dict[str, float]:
    with server(options, kind) as running:
        run(options, running, idle)  # triggers one-time allocations
        return run(options, running, idle)


def measure(
    options: argparse.Namespace, name: str, kind: str, quiet: dict[str, float]
) -> dict[str, Any]:
    with server(options, kind) as running:
        run(options, running, idle)
        busy = run(options, running, {**ATTACKS, **WITH_TOKENS}[name])
    row = {
        "attack": name,
        "server": kind,
        "kib": (busy["peak_kib"] - quiet["peak_kib"]) / options.connections,
        "milliseconds": (busy["cpu_seconds"] - quiet["cpu_seconds"]) * 1000 / options.connections,
        "closed_after": busy["last_closed"],
        "open": busy["open"],
        "sent_kib": busy["sent"] / 1024 / options.connections,
    }
    print(json.dumps(row), flush=True)
    return row


def typical(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median CPU time, of an odd number of runs."""
    by_time = sorted(runs, key=lambda run: float(run["milliseconds"]))
    return {**by_time[len(runs) // 2], "runs": len(runs)}


def commit_of(row: dict[str, Any], results: dict[str, Any]) -> str:
    """The commit that a row was measured with; `merge` keeps rows of earlier ones."""
    return row.get("linnet", results["machine"]["version"])


def beyond_goal(row: dict[str, Any]) -> bool:
    return row["kib"] > MAX_KIB or row["milliseconds"] > MAX_MILLISECONDS or row["open"] > 0


def markdown(results: dict[str, Any]) -> str:
    settings = results["settings"]
    lines = [
        "# Cost of an unauthenticated peer",
        "",
        f"{machine.sentence(results['machine'])}; gRPC {results['grpc']}; "
        f"{settings['connections']} connections at once, `unauthenticated-timeout` "
        f"{settings['timeout']:g} s. The promise is at most {MAX_KIB} KiB and "
        f"{MAX_MILLISECONDS} ms of CPU more than an idle connection costs, and that it is closed. "
        "Of several runs the one with the median CPU time counts.",
        "",
        "| attack | server | runs | KiB | ms of CPU | last closed after, s | still open | "
        "sent, KiB | Linnet |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        lines.append(
            f"| {row['attack']} | {KINDS[row['server']]} | {row.get('runs', 1)} | "
            f"{row['kib']:.1f} | {row['milliseconds']:.1f} | {row['closed_after']:.1f} | "
            f"{row['open']} | {row['sent_kib']:.0f} | {commit_of(row, results)} |"
        )
    return "\n".join(lines) + "\n"


def merge(before: dict[str, Any], rows: list[dict[str, Any]], linnet: str) -> list[dict[str, Any]]:
    """Rows that were not measured again stay, each with the commit that it was measured with."""
    keys = {kind: i for i, kind in enumerate(KINDS)}
    names = [*ATTACKS, *WITH_TOKENS]
    all_rows = {
        (row["server"], row["attack"]): {"linnet": before["machine"]["version"], **row}
        for row in before["rows"]
    }
    all_rows |= {(row["server"], row["attack"]): {**row, "linnet": linnet} for row in rows}
    return sorted(
        all_rows.values(), key=lambda row: (keys[row["server"]], names.index(row["attack"]))
    )


def loaded_grpc(programs: Path) -> str:
    """The gRPC library that the server loads."""
    lines = subprocess.run(
        ["ldd", str(programs / "linnet-server")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    (path,) = [line.split()[2] for line in lines if "libgrpc++.so" in line]
    return "patched" if ".deps/grpc" in path else "of Debian"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--rounds", type=int, choices=(1, 3, 5, 7), default=3, help="of which the median counts"
    )
    parser.add_argument("--only", nargs="*", help="names of attacks to run")
    options = machine.parse(parser)
    with tempfile.TemporaryDirectory() as folder:
        options.bundle = Path(folder) / "en-de"
        command = [sys.executable, "-m", "linnet_model.export.random_bundle", "--preset", "tiny"]
        command += ["--vocab", "600", "--seed", "7", "--tokenizer", "--name", "en-de"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "model")}
        command += ["--out", str(options.bundle)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        options.tokens = Path(folder) / "tokens"
        options.tokens.write_text("search-0123456789abcdef search inference\n")
        rows: list[dict[str, Any]] = []
        for kind in options.kinds:
            quiet = measure_idle(options, kind)
            for name in [*ATTACKS, *(WITH_TOKENS if kind == "tokens" else [])]:
                if not options.only or name in options.only:
                    runs = [measure(options, name, kind, quiet) for _ in range(options.rounds)]
                    rows.append(typical(runs))
            write(options, rows)


def write(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    path = options.out / machine.slug(facts) / "unauthenticated.json"
    if path.exists():
        rows = merge(json.loads(path.read_text()), rows, facts["version"])
    results = {
        "machine": facts,
        "grpc": loaded_grpc(options.programs),
        "settings": {"connections": options.connections, "timeout": options.timeout},
        "rows": rows,
    }
    machine.write_result(path, results, markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
