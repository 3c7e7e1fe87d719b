"""Kills and stops the processes of a job at random, and compares its output with a quiet run.

    .venv/bin/python tests/corpus/campaign.py --bundle BUNDLE --lines 200000 --faults 100

Two workers translate a file, a shard each. At random times one of them, or one of the linnet-decode
of one of them, gets SIGKILL, or the latter SIGSTOP; a worker that has ended is started again. The
output must be, byte for byte, that of one worker that nobody disturbs. The counts and the facts of
the machine are written to --out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("ba", "do", "ki", "lu", "me", "na", "po", "ra", "si", "tu", "bran", "glim", "kost")


def write_lines(path: Path, count: int, seed: int) -> None:
    """Lines of random words; one in ten is there twice."""
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(count):
        again = lines and rng.random() < 0.1
        words = rng.choices(WORDS, k=rng.randint(2, 9))
        lines.append(rng.choice(lines) if again else " ".join(words).capitalize() + ".")
    path.write_text("".join(line + "\n" for line in lines))


def children(pid: int) -> list[int]:
    """Of all threads: a JVM starts processes in any of them."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # has ended
            found += map(int, file.read_text().split())
    return found


def files_of(folder: Path) -> dict[str, str]:
    """The digests of the files of a job."""
    return {
        it.name: hashlib.sha256(it.read_bytes()).hexdigest()
        for it in sorted(folder.iterdir())
        if not it.name.startswith("summary")
    }


class Campaign:
    """Two workers on one output, and the faults they have had."""

    def __init__(self, command: list[str], folder: Path, workers: int, rng: random.Random):
        self._command, self._folder, self._rng = command, folder, rng
        self._workers = [self._start(shard, workers) for shard in range(workers)]
        self._all = list(self._workers)
        self.faults: Counter[str] = Counter()

    def _start(self, shard: int, workers: int) -> subprocess.Popen[bytes]:
        shard_of = ["--shard", f"{shard}/{workers}"]
        return subprocess.Popen(
            [*self._command, "-o", str(self._folder), *shard_of], stdout=subprocess.DEVNULL
        )

    def step(self, fault: bool) -> bool:
        """Makes a fault if one is due, and starts workers again that were killed. Returns whether
        all have finished."""
        running = [worker for worker in self._workers if worker.poll() is None]
        if fault and running:
            self._hurt(self._rng.choice(running))
        for shard, worker in enumerate(self._workers):
            if worker.poll() == -signal.SIGKILL:
                self._workers[shard] = self._start(shard, len(self._workers))
            elif worker.poll():
                raise SystemExit(f"a worker ended with status {worker.returncode}")
        return all(worker.poll() == 0 for worker in self._workers)

    def _hurt(self, worker: subprocess.Popen[bytes]) -> None:
        kind = self._rng.choice(["worker killed", "child killed", "child stopped"])
        decoders = children(worker.pid)
        victim = self._rng.choice(decoders) if decoders and kind != "worker killed" else worker.pid
        if victim == worker.pid:
            kind = "worker killed"
        try:
            os.kill(victim, signal.SIGSTOP if kind == "child stopped" else signal.SIGKILL)
        except ProcessLookupError:
            return
        self.faults[kind] += 1
        if kind == "worker killed":
            worker.wait()
            for child in decoders:  # a stopped one cannot see that its input has ended
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGCONT)


def run(
    bundle: Path,
    folder: Path,
    *,
    lines: int,
    faults: int,
    chunk_rows: int,
    interval: float,
    stall_timeout: int,
    seed: int,
) -> dict[str, object]:
    """Returns the counts of a campaign. Raises SystemExit if an output differs."""
    source = folder / "lines.txt"
    write_lines(source, lines, seed)
    command = [sys.executable, "-m", "linnet_corpus.command", "run", str(source)]
    command += ["--bundle", str(bundle), "--chunk-rows", str(chunk_rows), "--threads", "1"]
    # Random weights end no sentence.
    command += ["--option", "beam_size=1", "--option", "max_target_tokens=8"]
    begin = time.monotonic()
    subprocess.run([*command, "-o", str(folder / "quiet")], check=True, stdout=subprocess.DEVNULL)
    quiet = time.monotonic() - begin
    rng = random.Random(seed)
    stalls = ["--children", "2", "--stall-timeout", str(stall_timeout)]
    campaign = Campaign([*command, *stalls], folder / "hurt", 2, rng)
    due = begin = time.monotonic()
    while not campaign.step(fault := campaign.faults.total() < faults and time.monotonic() > due):
        if fault:
            due = time.monotonic() + rng.uniform(0, 2 * interval)
        time.sleep(0.02)
    expected, found = files_of(folder / "quiet"), files_of(folder / "hurt")
    if expected != found:
        raise SystemExit(f"files differ: {sorted(expected.items() ^ found.items())}")
    return {
        "lines": lines,
        "chunks": len(expected) // 2,
        "faults": dict(sorted(campaign.faults.items())),
        "quiet_seconds": round(quiet, 1),
        "hurt_seconds": round(time.monotonic() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--chunk-rows", type=int, default=2_000)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two faults")
    parser.add_argument("--stall-timeout", type=int, default=30, help="of the workers, seconds")
    parser.add_argument("--seed", type=int, default=1)
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import machine

    given = machine.parse(parser)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as folder:
        options = {key: it for key, it in vars(given).items() if key not in ("bundle", "out")}
        counts = run(given.bundle, Path(folder), **options)
    place = given.out / machine.slug(facts) / "corpus-faults.json"
    machine.write_result(place, {"machine": facts, **counts})
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
