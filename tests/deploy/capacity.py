"""What one replica carries: the numbers of deploy/CAPACITY.md, and its formula.

    .venv/bin/python tests/deploy/capacity.py            about two minutes, on an idle machine
    .venv/bin/python tests/deploy/capacity.py --beam 1

A server of one engine thread on one core, linnet-load on another. First a closed loop, as many
texts at a time as the engine has rows for: how many it answers a second is its capacity. Then open
loops at shares of that, as users come who do not wait for each other: how late answers are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

from replicas import BUNDLES, Server

ROOT = Path(__file__).resolve().parents[2]
SHARES = (0.5, 0.7, 0.8, 0.9)


def load(binaries: Path, server: Server, core: int, *flags: str) -> dict:
    command = ["taskset", "-c", str(core), binaries / "linnet-load", "--server", server.grpc]
    command += ["--from", "en", "--to", "de", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--bundle", type=Path, default=BUNDLES / "en-de")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--seconds", type=int, default=15, help="of each measurement")
    parser.add_argument("--cores", type=int, nargs=2, default=[0, 1], help="server's, load's")
    settings = parser.parse_args()

    flags = ("--compute", settings.compute, "--overload-wait", "60")
    server = Server(settings.binaries / "linnet-server", *flags, models=settings.bundle)
    server.wait_for_ready()
    for thread in os.listdir(f"/proc/{server.process.pid}/task"):
        subprocess.run(["taskset", "-cp", str(settings.cores[0]), thread], capture_output=True)
    seconds = ("--duration", f"{settings.seconds}s", "--warmup", "3s")
    beam = ("--beam", str(settings.beam))
    try:
        full = load(
            settings.binaries, server, settings.cores[1], *seconds, *beam, "--concurrency", "40"
        )
        runs = [
            load(
                settings.binaries,
                server,
                settings.cores[1],
                *seconds,
                *beam,
                "--rate",
                f"{share * full['texts_per_second']:.3f}",
            )
            for share in SHARES
        ]
        memory = resident_bytes(server)
    finally:
        server.stop()
        server.remove()
    report(settings, full, dict(zip(SHARES, runs, strict=True)), memory)


def row(name: str, run: dict) -> str:
    late = run["by_status"]["OK"]["from_intended_ms"]
    numbers = [f"{late[name]:.0f} ms" for name in ("p50", "p90", "p99")]
    return f"| {name} | {run['answered_per_second']:.1f} | {' | '.join(numbers)} |"


def report(
    settings: argparse.Namespace, full: dict, shares: dict[float, dict], memory: int
) -> None:
    (cpu,) = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    ends = {code for run in (full, *shares.values()) for code in run["by_status"]}
    print(f"{settings.bundle.name}, {settings.compute}, beam {settings.beam}, one core of {cpu};")
    print(f"{full['texts']}, one a call; each line {settings.seconds} s; calls ended: {ends}\n")
    print("| load | calls/s | p50 | p90 | p99 |\n|---|---:|---:|---:|---:|")
    print(row(f"closed loop, {full['in_flight']} at a time: the capacity", full))
    for share, run in shares.items():
        print(row(f"open loop, {share:.0%} of it", run))
    print(f"\nAt capacity {full['source_tokens_per_second']:.0f} source and ", end="")
    print(
        f"{full['target_tokens_per_second']:.0f} target tokens/s; {memory / 1e6:.0f} MB resident."
    )


if __name__ == "__main__":
    main()
