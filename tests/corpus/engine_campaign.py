"""Kills actors of Ray, executors and workers of Spark, and their linnet-decode, at random.

    .venv/bin/python tests/corpus/engine_campaign.py --bundle BUNDLE --engines ray executors

Each engine translates the same rows in two actors, or on two executors, while its processes get
SIGKILL. Its rows, sorted by their ids, must be, byte for byte, those of one linnet-corpus that
nobody disturbs. The counts and the facts of the machine are written to --out.
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
from pathlib import Path

import engines
import pyarrow as pa
import pyarrow.parquet as pq
from campaign import children, write_lines

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OPTIONS = ("--option", "beam_size=1", "--option", "max_target_tokens=8")
# The processes that are killed, by a part of their command line.
VICTIMS = {
    "ray": {"actor": "ray::MapWorker", "child": "linnet-decode"},
    "executors": {
        "executor": "CoarseGrainedExecutorBackend",
        "Python worker": "pyspark.daemon",
        "child": "linnet-decode",
    },
}


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [it for child in found for it in descendants(child)]


def find(pid: int, part: str) -> list[int]:
    """The descendants of a process with a command line that contains `part`."""
    found = []
    for it in descendants(pid):
        try:
            command = Path(f"/proc/{it}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if part in command:
            found.append(it)
    return found


def rows_digest(path: Path) -> str:
    """The digest of the rows of a file as Arrow's bytes, without what an engine notes beside."""
    table = pq.read_table(path).replace_schema_metadata().combine_chunks()
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(out.getvalue()).hexdigest()


def hurt(
    command: list[str], victims: dict[str, str], faults: int, interval: float, rng: random.Random
) -> Counter[str]:
    """Runs a driver and makes faults once rows are decoded. Raises SystemExit if it fails."""
    done: Counter[str] = Counter()
    with tempfile.TemporaryFile() as said:
        # Ray runs its workers with niceness 15, which stalls them on a busy machine.
        environment = {**os.environ, "RAY_worker_niceness": "0"}
        driver = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        while not find(driver.pid, "linnet-decode") and driver.poll() is None:
            time.sleep(0.1)
        while driver.poll() is None and done.total() < faults:
            kind = rng.choice(sorted(victims))
            if found := find(driver.pid, victims[kind]):
                try:
                    os.kill(rng.choice(found), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                done[f"{kind} killed"] += 1
                time.sleep(rng.uniform(0, 2 * interval))
            else:
                time.sleep(0.1)
        if driver.wait():
            said.seek(0)
            raise SystemExit(said.read().decode(errors="replace")[-4000:])
    return done


def run(
    bundle: Path,
    folder: Path,
    *,
    engines_used: list[str],
    lines: int,
    faults: int,
    block: int,
    interval: float,
    seed: int,
) -> dict[str, object]:
    """Returns the counts of a campaign. Raises SystemExit if an output differs."""
    python = str(engines.install())
    write_lines(folder / "lines.txt", lines, seed)
    texts = (folder / "lines.txt").read_text().splitlines()
    source = folder / "in.parquet"
    pq.write_table(pa.table({"id": range(lines), "text": texts}), source, row_group_size=block)
    corpus = [sys.executable, "-m", "linnet_corpus.command"]
    begin = time.monotonic()
    flags = ["-o", str(folder / "quiet"), "--bundle", str(bundle), "--threads", "1", *OPTIONS]
    subprocess.run([*corpus, "run", str(source), *flags], check=True, stdout=subprocess.DEVNULL)
    quiet = time.monotonic() - begin
    merged = ["merge", str(folder / "quiet"), "-o", str(folder / "quiet.parquet")]
    subprocess.run([*corpus, *merged], check=True, stdout=subprocess.DEVNULL)
    expected = rows_digest(folder / "quiet.parquet")
    counts: dict[str, object] = {"lines": lines, "block": block, "quiet_seconds": round(quiet, 1)}
    rng = random.Random(seed)
    for engine in engines_used:
        begin, output = time.monotonic(), folder / f"{engine}.parquet"
        command = [python, str(HERE / "engine_runs.py"), engine, str(source), str(output)]
        command += [str(bundle), "--block", str(block), *OPTIONS]
        found = hurt(command, VICTIMS[engine], faults, interval, rng)
        if rows_digest(output) != expected:
            raise SystemExit(f"the rows of {engine} differ from those of a quiet run")
        seconds = round(time.monotonic() - begin, 1)
        counts[engine] = {"faults": dict(sorted(found.items())), "hurt_seconds": seconds}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--engines", nargs="+", choices=VICTIMS, default=list(VICTIMS))
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--faults", type=int, default=50, help="of each engine, at most")
    parser.add_argument("--block", type=int, default=2_000, help="rows of a block or partition")
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "tests/bench/results")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import machine

    machine.require_commit(given.out)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as folder:
        counts = run(
            given.bundle,
            Path(folder),
            engines_used=given.engines,
            lines=given.lines,
            faults=given.faults,
            block=given.block,
            interval=given.interval,
            seed=given.seed,
        )
    place = given.out / machine.slug(facts) / "corpus-engine-faults.json"
    machine.write_result(place, {"machine": facts, **counts})
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
