"""Attacks the memory of a server (attackers.py) while a well-behaved client calls it.

The server has default settings and a limit of 1.5 GB: a memory cgroup if one can be created, else a
watcher that reads the resident memory ten times a second. The attackers hold three tokens, the
polite client another one. The run fails if the server
dies or exceeds the limit, or if the polite client, which translates a sentence every half second
and retries as the server asks, is not answered for longer than --answer-timeout seconds.

Writes DIR/MACHINE/attack.json and attack.md, and exits with 1 if it failed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/e2e")]
import machine  # noqa: E402
import resources  # noqa: E402
from attackers import KINDS, request  # noqa: E402

HERE = Path(__file__).resolve().parent
LIMIT = 1_500_000_000
ATTACKERS = [f"{name}-ATTACKER-0123456789" for name in ("FIRST", "SECOND", "THIRD")]
POLITE = "POLITE-0123456789"


class Cgroup:
    """A memory cgroup for the server, of either version; None if it cannot be created."""

    def __init__(self, folder: Path, limit: str):
        self.folder, self.limit = folder, limit

    @staticmethod
    def make() -> Cgroup | None:
        for root, file in (
            (Path("/sys/fs/cgroup"), "memory.max"),
            (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        ):
            folder = root / f"linnet-attack-{os.getpid()}"
            try:
                folder.mkdir()
                if not (folder / file).exists():  # a plain folder
                    raise OSError
                (folder / file).write_text(str(LIMIT))
                return Cgroup(folder, file)
            except OSError:
                if folder.exists():
                    folder.rmdir()
        return None

    def join(self) -> None:
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        self.folder.rmdir()


class Server:
    def __init__(self, program: Path, bundle: Path, log: Path, flags: list[str]):
        self.cgroup = Cgroup.make()
        tokens = log.with_suffix(".tokens")
        tokens.write_text("".join(f"{it} {it.lower()} inference\n" for it in (*ATTACKERS, POLITE)))
        command = [str(program), "--models", str(bundle), "--threads", "1", *flags]
        command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
        command += ["--tokens", str(tokens), "--log-level", "error"]
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                preexec_fn=self.cgroup.join if self.cgroup else None,
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready.startswith("ready grpc="):
            raise SystemExit(f"error: the server ended with {self.process.wait()}: {log}")
        self.address = ready.split()[1].removeprefix("grpc=")
        self.metrics = ready.split()[2].removeprefix("metrics=")

    def resident(self) -> int:
        return resources.resident_kib(self.process.pid) * 1024

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.cgroup is not None:
            self.cgroup.remove()


class Polite(threading.Thread):
    """Sends a sentence every half second; retries after a delay if the server is busy."""

    def __init__(self, address: str):
        super().__init__(daemon=True)
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)])
        self.call = self.channel.unary_unary("/linnet.v1.TextService/Translate")
        self.stop = threading.Event()
        self.answered: list[float] = []  # times of answers in seconds since the start
        self.took: list[float] = []
        self.refused: dict[str, int] = {}

    def run(self) -> None:
        begin = time.monotonic()
        wire = request("The dog runs through the garden.")
        while not self.stop.is_set():
            asked = time.monotonic()
            try:
                self.call(wire, timeout=30, metadata=[("authorization", f"Bearer {POLITE}")])
                self.answered.append(time.monotonic() - begin)
                self.took.append(time.monotonic() - asked)
            except grpc.RpcError as error:
                code = error.code().name
                self.refused[code] = self.refused.get(code, 0) + 1
            self.stop.wait(0.5)

    def longest_wait(self, seconds: float) -> float:
        times = [0.0, *self.answered, seconds]
        return max(after - before for before, after in itertools.pairwise(times))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def attack(options: argparse.Namespace) -> dict[str, Any]:
    log = options.out / "attack-server.log"
    server = Server(options.programs / "linnet-server", options.bundle, log, options.flag)
    idle = server.resident()
    polite = Polite(server.address)
    attackers = {
        kind: subprocess.Popen(
            [
                sys.executable,
                str(HERE / "attackers.py"),
                kind,
                server.address,
                ATTACKERS[seed % len(ATTACKERS)],
                str(seed),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for seed, kind in enumerate(options.kind or KINDS)
    }
    rounds = dict.fromkeys(attackers, 0)

    def count(kind: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            rounds[kind] = int(line)

    for kind, process in attackers.items():
        threading.Thread(target=count, args=(kind, process), daemon=True).start()
    polite.start()
    begin = time.monotonic()
    seen: list[int] = []
    fault = ""
    while not fault and (passed := time.monotonic() - begin) < options.minutes * 60:
        time.sleep(0.1)
        if server.process.poll() is not None:
            fault = f"the server ended with {server.process.returncode} after {passed:.0f} s"
            break
        seen.append(server.resident())
        if seen[-1] > LIMIT:
            fault = f"{seen[-1]} bytes were resident after {passed:.0f} s"
    seconds = time.monotonic() - begin
    polite.stop.set()
    for process in attackers.values():
        process.kill()
        process.wait()
    polite.join(60)
    waited = polite.longest_wait(seconds)
    if not fault and waited > options.answer_timeout:
        fault = f"the polite client was not answered for {waited:.0f} s"
    if not fault:
        # Without clients the server returns to its former state.
        fault = comes_to_rest(server)
    settled = server.resident() if server.process.poll() is None else 0
    server.stop()
    return {
        "machine": machine.facts(sorted(os.sched_getaffinity(0))),
        "bundle": machine.bundle_name(options.bundle),
        "seconds": round(seconds),
        "limit": "cgroup" if server.cgroup else "watcher",
        "limit_bytes": LIMIT,
        "fault": fault,
        "resident_mb": {
            "idle": round(idle / 1e6),
            "median": round(statistics.median(seen) / 1e6) if seen else 0,
            "max": round(max(seen, default=0) / 1e6),
            "after": round(settled / 1e6),
        },
        "rounds": rounds,
        "polite": {
            "answered": len(polite.took),
            "refused": polite.refused,
            "median_seconds": round(percentile(polite.took, 0.5), 3),
            "p99_seconds": round(percentile(polite.took, 0.99), 3),
            "longest_without_answer_seconds": round(waited, 1),
        },
    }


def comes_to_rest(server: Server) -> str:
    """Checks that no permit leaked: the admitted cost returns to 0 once all clients are gone."""
    end = time.monotonic() + 90  # slow readers lose their calls after a minute
    held = ""
    while time.monotonic() < end:
        page = urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10)
        lines = page.read().decode().splitlines()
        held = ", ".join(
            line
            for line in lines
            if line.startswith(("linnet_admitted_tokens ", "linnet_admitted_bytes "))
            and not line.endswith(" 0")
        )
        if not held:
            return ""
        time.sleep(0.5)
    return f"held after all had gone: {held}"


def markdown(result: dict[str, Any]) -> str:
    memory, polite = result["resident_mb"], result["polite"]
    refused = ", ".join(f"{count} {code}" for code, count in sorted(polite["refused"].items()))
    how = "a cgroup" if result["limit"] == "cgroup" else "a watcher"
    fault = f"**failed**, {result['fault']}" if result["fault"] else "survived"
    waited = polite["longest_without_answer_seconds"]
    lines = [
        "# A server under attacks on its memory",
        "",
        f"{machine.sentence(result['machine'])}. `tests/bench/security/attack.py`, "
        f"{result['seconds']} seconds, limit {result['limit_bytes'] / 1e9:.1f} GB by {how}: "
        f"{fault}.",
        "",
        "| resident memory | MB |",
        "|---|---:|",
        *(f"| {name} | {memory[name]} |" for name in ("idle", "median", "max", "after")),
        "",
        f"The polite client was answered {polite['answered']} times (median "
        f"{polite['median_seconds']} s, 99 % {polite['p99_seconds']} s, never without an answer "
        f"for longer than {waited} s) and refused: {refused or 'never'}.",
        "",
        "| attacker | rounds |",
        "|---|---:|",
        *(f"| {kind} | {count} |" for kind, count in result["rounds"].items()),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--answer-timeout", type=float, default=60)
    parser.add_argument("--kind", action="append", choices=KINDS, help="run only these")
    parser.add_argument("--flag", action="append", default=[], help="of the server")
    machine.add_server(parser)
    options = machine.parse(parser)
    folder = options.out / machine.slug(machine.facts(sorted(os.sched_getaffinity(0))))
    options.out = ROOT / "build/logs"
    options.out.mkdir(parents=True, exist_ok=True)
    result = attack(options)
    machine.write_result(folder / "attack.json", result, markdown(result))
    print(markdown(result))
    if result["fault"]:
        raise SystemExit(f"error: {result['fault']}")


if __name__ == "__main__":
    main()
