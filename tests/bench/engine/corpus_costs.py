#!/usr/bin/env python3
"""Measures what a chunk and a further linnet-decode cost, and says what limits 1,000 workers.

    build/engines/bin/python tests/bench/engine/corpus_costs.py --bundle BUNDLE --lines FILE

build/engines is made by tests/corpus/engines_slow_test.py. A chunk: the CPU time of reading and
committing it beside that of its rows, the bytes of its manifest, and the requests to a store that
speaks S3 (moto), counted from jobs of different numbers of chunks. A process: its proportional set
size (PSS) beside others with the same bundle, and the CPU time until its first answer. The plan
computes from these what 1,000 workers of a core ask of a store. Times are CPU seconds, since other
programs change those of the wall clock.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from linnet_corpus import Answer, Columns, Embedded, Row
from linnet_corpus.job import Job, Output, Worker
from moto.server import ThreadedMotoServer
from pyarrow import fs

WORKERS = 1000
ROWS = 1_000_000_000
CHUNKS = (1_000, 10_000, 100_000)
# What Amazon documents for a prefix of S3: requests a second that write, and that read.
STORE = {"write": 3_500, "read": 5_500}
WRITES = ("PUT", "POST", "DELETE")


class Echo:
    """A back end that answers at once: what is left is the cost of the chunk."""

    name, bundle, compute, processor = "embedded", "a" * 64, "int8", ""

    def answers(self, rows: Sequence[Row], came: Callable[[Answer], None]) -> list[Answer]:
        return [Answer(it.text[::-1], -0.5, "STOP", tokens=len(it.text) // 4) for it in rows]

    def close(self) -> None: ...


def job_of(chunk_rows: int, backend: Any) -> Job:
    return Job(
        inputs=(),
        columns=Columns(),
        keep=(),
        chunk_rows=chunk_rows,
        backend=backend.name,
        bundle=backend.bundle,
        compute=backend.compute,
    )


def work(inputs: str, place: str, chunk_rows: int) -> int:
    """Does a whole job and returns the number of its chunks."""
    output = Output(place)
    job = output.begin(job_of(chunk_rows, Echo()), [inputs])
    chunks = [chunk for chunk in job.chunks() if not output.is_done(chunk)]
    worker = Worker(place, Echo, "", os.getcwd())
    for chunk in chunks:
        worker.translate(chunk)
    return len(chunks)


def chunk_costs(texts: Sequence[str], folder: Path) -> dict[str, float]:
    """CPU seconds and bytes of a chunk, from jobs of the same rows in many chunks and in few."""
    source = folder / "lines.txt"
    source.write_text("".join(f"{text} {number}\n" for number, text in enumerate(texts)))
    work(str(source), str(folder / "first"), len(texts) // 2)  # loads what is loaded once
    found = []
    for name, rows in (("few", len(texts) // 2), ("many", len(texts) // 500)):
        begin = time.process_time()
        chunks = work(str(source), str(folder / name), rows)
        seconds = time.process_time() - begin
        manifests = [it for it in (folder / name).glob("0*.json")]
        found.append((chunks, seconds, sum(it.stat().st_size for it in manifests)))
    (few, seconds, size), (many, more_seconds, more_size) = found
    fixed = (more_seconds - seconds) / (many - few)
    fixed_bytes = (more_size - size) / (many - few)
    return {
        "chunk_cpu_seconds": round(fixed, 5),
        "row_cpu_seconds": round((seconds - few * fixed) / len(texts), 8),
        "manifest_bytes": round(fixed_bytes),
        "manifest_bytes_a_row": round((size - few * fixed_bytes) / len(texts), 2),
    }


def store_requests(kind: str, texts: Sequence[str]) -> dict[str, float]:
    """Requests of a chunk to a store that has inputs and output, by their method."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    seen: Counter[str] = Counter()
    answer = server._server.app

    def counting(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        seen[environment["REQUEST_METHOD"]] += 1
        answered: Iterable[bytes] = answer(environment, start)
        return answered

    server._server.app = counting
    query = f"?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    store, _ = fs.FileSystem.from_uri(f"s3://bucket{query}&allow_bucket_creation=true")
    store.create_dir("bucket")
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"text": [f"{text} {number}" for number, text in enumerate(texts)]})
        with store.open_output_stream("bucket/in.parquet") as file:
            pq.write_table(table, file, row_group_size=len(texts) // 40)
    else:
        lines = "".join(f"{text} {number}\n" for number, text in enumerate(texts))
        with store.open_output_stream(f"bucket/in.{kind}") as file:
            file.write(lines.encode())
    counts = []
    for chunks in (10, 40):
        before = Counter(seen)
        out = f"s3://bucket/{kind}-{chunks}{query}"
        done = work(f"s3://bucket/in.{kind}{query}", out, len(texts) // chunks)
        counts.append((done, seen - before))
    server.stop()
    (few, fewer), (many, more) = counts
    return {name: round((more[name] - fewer[name]) / (many - few), 2) for name in sorted(more)}


def pss(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE)[0]) * 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_costs(bundle: Path, texts: Sequence[str], most: int) -> dict[str, Any]:
    """Memory of 1 to `most` processes on a host after they have decoded, and their starts."""
    backends: list[Embedded] = []
    memory, starts = [], []
    for _ in range(most):
        backends.append(Embedded(bundle))
        backends[-1].answers([Row("A dog runs.")])
        (child,) = [it._process.pid for it in backends[-1]._children]
        starts.append(round(cpu_seconds(child), 2))
        backends[-1].answers([Row(text) for text in texts])
        pids = [child._process.pid for it in backends for child in it._children]
        memory.append(sum(map(pss, pids)))
    for it in backends:
        it.close()
    further = [after - before for before, after in pairwise(memory)]
    return {
        "first_pss_mb": round(memory[0] / 1e6, 1),
        "further_pss_mb": [round(it / 1e6, 1) for it in further],
        "start_cpu_seconds": starts,
    }


def rows_a_second(bundle: Path, texts: Sequence[str], beam: int) -> float:
    """Rows of a core in a CPU second, without the start."""
    backend = Embedded(bundle, options={"beam_size": beam})
    backend.answers([Row("A dog runs.")])
    (child,) = [it._process.pid for it in backend._children]
    begin = cpu_seconds(child)
    backend.answers(sorted((Row(text) for text in texts), key=lambda row: -len(row.text)))
    seconds = cpu_seconds(child) - begin
    backend.close()
    return round(len(texts) / seconds, 1)


def plan(found: dict[str, Any]) -> list[dict[str, float]]:
    """What each size of a chunk means for WORKERS and ROWS, at the speed of the smallest beam."""
    speed = max(found["rows_a_second"].values())
    requests, costs = found["requests"]["parquet"], found["chunk"]
    writes = sum(count for name, count in requests.items() if name in WRITES)
    reads = sum(requests.values()) - writes
    rows = []
    for size in CHUNKS:
        chunks_a_second = WORKERS * speed / size
        rows.append(
            {
                "chunk_rows": size,
                "chunk_seconds": round(size / speed, 1),
                "chunks": ROWS // size,
                "writes_a_second": round(chunks_a_second * writes, 1),
                "reads_a_second": round(chunks_a_second * reads, 1),
                "share_of_store_limit": round(
                    chunks_a_second * max(writes / STORE["write"], reads / STORE["read"]), 4
                ),
                "overhead_share_of_cpu": round(costs["chunk_cpu_seconds"] * speed / size, 5),
                "manifests_gb": round(
                    (ROWS // size * costs["manifest_bytes"] + ROWS * costs["manifest_bytes_a_row"])
                    / 1e9,
                    2,
                ),
                "lost_by_a_kill_seconds": round(size / speed / 2, 1),
                "last_chunk_share_of_job": round(size * WORKERS / ROWS, 5),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the jobs without a model")
    parser.add_argument("--decoded", type=int, default=1_000, help="rows that are decoded")
    parser.add_argument("--processes", type=int, default=4)
    given = machine.parse(parser)
    os.environ.setdefault("LINNET_DECODE", str(machine.ROOT / "build/release/bin/linnet-decode"))
    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    lines = given.lines.read_text().splitlines()
    different = list(dict.fromkeys(line for line in lines if 0 < len(line) < 120))
    texts = [different[number % len(different)] for number in range(given.rows)]
    decoded = different[: given.decoded]
    result: dict[str, Any] = {"machine": facts, "bundle": machine.bundle_name(given.bundle)}
    result["rows"] = {"of_jobs": given.rows, "decoded": len(decoded)}
    with tempfile.TemporaryDirectory() as folder:
        result["chunk"] = chunk_costs(texts, Path(folder))
    result["requests"] = {kind: store_requests(kind, texts) for kind in ("parquet", "txt")}
    result["processes"] = process_costs(given.bundle, decoded[:200], given.processes)
    result["rows_a_second"] = {
        f"beam {beam}": rows_a_second(given.bundle, decoded, beam) for beam in (1, 5)
    }
    result["store_requests_a_second"] = STORE
    result["plan"] = {"workers": WORKERS, "rows": ROWS, "chunks": plan(result)}
    machine.write_result(given.out / machine.slug(facts) / "corpus-costs.json", result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
