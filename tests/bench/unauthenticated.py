"""What a peer costs that nobody has authenticated, on Debian's gRPC and on the patched one.

For each attack of tests/e2e/attacks.py that the patches of deps/grpc end, a server of its own,
which serves a tiny bundle: first so many idle connections, then as many attackers, for so many
seconds or until all are closed. The cost of an attacker is what the server's resident memory at its
highest and its CPU time are above those with idle connections, divided by the number of
connections. Memory and time for TLS handshakes are not part of it.

All is on one machine: the attackers take the server's cores as well, and what they could not send
for that reason is part of the result (`sent`). Debian's gRPC is attacked by fewer, because its
memory grows without a bound. Writes DIR/MACHINE/unauthenticated.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from attacks import ATTACKS, ENDED_BY_GRPC, Script, attack, idle  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
# Where each is loaded from; what is looked for goes before what the program was linked to look for.
LIBRARIES = {"patched": ROOT / ".deps/grpc/lib", "Debian's": Path("/usr/lib/x86_64-linux-gnu")}


class Server:
    def __init__(self, process: subprocess.Popen[str]):
        self.process = process
        assert process.stdout
        self.grpc = process.stdout.readline().split()[1].removeprefix("grpc=")

    def kib(self) -> float:
        """Resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return float(status.split("VmRSS:")[1].split()[0])

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def server(options: argparse.Namespace, library: str) -> Iterator[Server]:
    command = [str(options.programs / "linnet-server"), "--models", str(options.bundle)]
    command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--threads", "1"]
    command += ["--log-level", "error"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES[library])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield Server(process)
    finally:
        process.kill()  # a drain would wait for the attackers' calls
        process.wait(60)


def run(running: Server, script: Callable[[], Script], connections: int, seconds: float):
    """So many connections; what the server needed meanwhile, and for the next second."""
    cpu = running.cpu_seconds()
    outcome = attack(running.grpc, script, connections, seconds, sample=running.kib)
    time.sleep(1)
    return running.cpu_seconds() - cpu, max(outcome.samples), outcome


def measure(options: argparse.Namespace, name: str, library: str) -> dict[str, Any]:
    connections = options.connections if library == "patched" else options.few
    with server(options, library) as running:
        run(running, idle, connections, 1)  # what is allocated once
        quiet_cpu, quiet_kib, _ = run(running, idle, connections, options.seconds)
    with server(options, library) as running:
        run(running, idle, connections, 1)
        busy_cpu, busy_kib, outcome = run(running, ATTACKS[name], connections, options.seconds)
    row = {
        "attack": name,
        "grpc": library,
        "connections": connections,
        "kib": (busy_kib - quiet_kib) / connections,
        "milliseconds": (busy_cpu - quiet_cpu) * 1000 / connections,
        "closed_after": outcome.last_closed,
        "open": outcome.open,
        "sent_kib": outcome.sent / 1024 / connections,
    }
    print(json.dumps(row), flush=True)
    return row


def markdown(results: dict[str, Any]) -> str:
    seconds = results["settings"]["seconds"]
    lines = [
        "# What a peer costs that nobody has authenticated",
        "",
        f"{machine.sentence(results['machine'])}; attacks of {seconds:g} s at most. Memory and CPU "
        "time are for each connection, above those of an idle one. Attackers that are open at the "
        "end could not send enough to be closed, or never are.",
        "",
        "| attack | gRPC | connections | KiB | ms of CPU | closed after, s | still open "
        "| sent, KiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        closed = "–" if row["open"] else f"{row['closed_after']:.1f}"
        lines.append(
            f"| {row['attack']} | {row['grpc']} | {row['connections']} | {row['kib']:.1f} | "
            f"{row['milliseconds']:.1f} | {closed} | {row['open']} | {row['sent_kib']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--out", type=Path, default=ROOT / "tests/bench/results")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--few", type=int, default=50, help="connections to Debian's gRPC")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.bundle = Path(folder) / "en-de"
        command = [sys.executable, "-m", "linnet_model.random_bundle", "--preset", "tiny"]
        command += ["--vocab", "600", "--seed", "7", "--tokenizer", "--name", "en-de"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "model")}
        command += ["--out", str(options.bundle)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        rows = [measure(options, name, library) for name in ENDED_BY_GRPC for library in LIBRARIES]
    settings = {key: getattr(options, key) for key in ("connections", "few", "seconds")}
    results = {
        "machine": machine.facts(sorted(os.sched_getaffinity(0))),
        "settings": settings,
        "rows": rows,
    }
    folder = options.out / machine.slug(results["machine"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unauthenticated.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "unauthenticated.md").write_text(markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
