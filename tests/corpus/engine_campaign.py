"""Kills drivers, actors of Ray, executors and workers of Spark, and their linnet-decode, at random.

    .venv/bin/python tests/corpus/engine_campaign.py --bundle BUNDLE

The same rows are translated in two actors, or on two executors, while these processes get SIGKILL:
as a data set of the engine, and as a job of linnet-corpus, whose driver is killed too and started
again. The sorted rows of a data set, and the files of a job, must be, byte for byte, those of one
linnet-corpus that nobody disturbs. The counts and the facts of the machine are written to --out
after each engine. BUNDLE may be random and tiny: what counts is that rows are decoded.
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
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import engines
import pyarrow as pa
import pyarrow.parquet as pq
from campaign import children, files_of, write_lines

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OPTIONS = ("--option", "beam_size=1", "--option", "max_target_tokens=3")
# The processes that are killed, by a part of their command line.
RAY = {"actor": "ray::MapWorker", "child": "linnet-decode"}
SPARK = {
    "executor": "CoarseGrainedExecutorBackend",
    "Python worker": "pyspark.daemon",
    "child": "linnet-decode",
}
DRIVER = {"driver": ""}
MAX_ENDS = 20  # of a driver that was not killed
VICTIMS = {"ray": RAY, "executors": SPARK, "ray job": RAY | DRIVER, "spark job": SPARK | DRIVER}
# Spark gives a job up after a few failures; the campaign makes more.
SUBMIT = " ".join(
    (
        "--master local-cluster[2,1,1024]",
        "--conf spark.driver.memory=1g",
        "--conf spark.ui.enabled=false",
        "--conf spark.task.maxFailures=20",
        "--conf spark.stage.maxConsecutiveAttempts=1000",
        "--conf spark.deploy.maxExecutorRetries=-1",
        "--conf spark.rpc.askTimeout=600s",  # a busy machine
        "pyspark-shell",
    )
)


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
    command: list[str],
    victims: dict[str, str],
    faults: int,
    interval: float,
    rng: random.Random,
    is_job: bool,
) -> Counter[str]:
    """Runs a driver and makes faults while rows are decoded. The driver of a job is started again
    if it was killed, or if its engine gave up, as on a busy machine. Raises SystemExit if it fails.
    """
    killed: Counter[str] = Counter()
    ends = 0
    # Ray runs its workers with niceness 15, which stalls them on a busy machine.
    environment = {**os.environ, "RAY_worker_niceness": "0", "PYSPARK_PYTHON": command[0]}
    environment |= {"PYSPARK_SUBMIT_ARGS": SUBMIT}
    with tempfile.TemporaryFile() as said:

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, stdout=said, stderr=said, env=environment)

        driver = start()
        while driver.poll() != 0:
            if driver.poll() is not None:
                ends += driver.returncode != -signal.SIGKILL
                if not is_job or ends > MAX_ENDS:
                    said.seek(0)
                    raise SystemExit(said.read().decode(errors="replace")[-4000:])
                driver = start()
            if killed.total() == faults or not find(driver.pid, "linnet-decode"):
                time.sleep(0.1)
                continue
            time.sleep(rng.uniform(0, 2 * interval))
            kind = rng.choice(sorted(victims))
            found = [driver.pid] if kind == "driver" else find(driver.pid, victims[kind])
            with suppress(IndexError, ProcessLookupError):  # there is none, or it has ended
                os.kill(rng.choice(found), signal.SIGKILL)
                killed[f"{kind} killed"] += 1
                if kind == "driver":
                    driver.wait()
    return killed + Counter({"driver gave up": ends})


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
) -> Iterator[dict[str, object]]:
    """Yields the counts of a campaign after each engine. Raises SystemExit if an output differs."""
    python = str(engines.install())
    write_lines(folder / "lines.txt", lines, seed)
    texts = (folder / "lines.txt").read_text().splitlines()
    source = folder / "in.parquet"
    pq.write_table(pa.table({"id": range(lines), "text": texts}), source, row_group_size=block)
    program = ["-m", "linnet_corpus.command"]
    flags = ["--bundle", str(bundle), "--threads", "1", "--chunk-rows", str(block), *OPTIONS]
    begin, quiet = time.monotonic(), folder / "quiet"
    command = [sys.executable, *program, "run", str(source), "-o", str(quiet), *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    command = [sys.executable, *program, "merge", str(quiet), "-o", f"{quiet}.parquet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    counts: dict[str, object] = {"lines": lines, "block": block, "quiet_seconds": round(seconds, 1)}
    rng = random.Random(seed)
    for engine in engines_used:
        begin, output = time.monotonic(), folder / engine
        name, _, is_job = engine.partition(" ")
        if is_job:
            command = [python, *program, "run", str(source), "-o", str(output), *flags]
            command += ["--engine", name, "--actors", "2"]
        else:
            command = [python, str(HERE / "engine_runs.py"), engine, str(source), str(output)]
            command += [str(bundle), "--block", str(block), *OPTIONS]
        faults_made = hurt(command, VICTIMS[engine], faults, interval, rng, bool(is_job))
        if is_job:
            differ = files_of(output).items() ^ files_of(quiet).items()
        else:
            differ = {rows_digest(output)} ^ {rows_digest(folder / "quiet.parquet")}
        if differ:
            raise SystemExit(f"the output of {engine} differs from a quiet run: {sorted(differ)}")
        counts[engine] = {
            "faults": dict(sorted(faults_made.items())),
            "hurt_seconds": round(time.monotonic() - begin, 1),
        }
        yield counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument(
        "--engines", nargs="+", choices=VICTIMS, metavar="ENGINE", default=list(VICTIMS)
    )
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--faults", type=int, default=25, help="of each, at most")
    parser.add_argument("--block", type=int, default=2_000, help="rows of a block or partition")
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=1)
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import machine

    given = machine.parse(parser)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    place = given.out / machine.slug(facts) / "corpus-engine-faults.json"
    with tempfile.TemporaryDirectory() as folder:
        for counts in run(
            given.bundle,
            Path(folder),
            engines_used=given.engines,
            lines=given.lines,
            faults=given.faults,
            block=given.block,
            interval=given.interval,
            seed=given.seed,
        ):
            machine.write_result(place, {"machine": facts, **counts})
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
