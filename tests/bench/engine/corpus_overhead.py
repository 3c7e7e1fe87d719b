#!/usr/bin/env python3
"""Measures what linnet-corpus costs beside linnet-decode alone, in CPU time.

    tests/bench/engine/corpus_overhead.py --bundle model/bundles/en-de --lines FILE [--rows 4000]

Both decode the same lines with the same flags; the child of linnet-corpus is the same program. The
CPU time of linnet-corpus has its start, its reading, and its Parquet file with manifest in it. The
unit is CPU seconds, since other programs on the machine change the time of the wall clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

DECODE = machine.ROOT / "build/release/bin/linnet-decode"


def cpu_seconds(command: list[str], **options: Any) -> float:
    """User and system time of a program and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(bundle: Path, texts: list[str], beam: int, folder: Path) -> tuple[float, float, int]:
    """CPU seconds of linnet-decode, of linnet-corpus, and the target tokens of each."""
    # In the order in which linnet-corpus sends them.
    order = sorted(texts, key=lambda text: -len(text))
    asked, said = folder / "asked.jsonl", folder / "said.jsonl"
    asked.write_text("".join(json.dumps({"text": text}) + "\n" for text in order))
    flags = ["--bundle", str(bundle), "--compute", "int8", "--threads", "1"]
    with asked.open() as source, said.open("w") as target:
        command = [str(DECODE), *flags, "--split", f"--beam={beam}"]
        alone = cpu_seconds(command, stdin=source, stdout=target)
    (folder / "lines.txt").write_text("".join(text + "\n" for text in texts))
    command = [sys.executable, "-m", "linnet_corpus.command", "run", str(folder / "lines.txt")]
    with tempfile.TemporaryDirectory(dir=folder) as out:
        corpus = cpu_seconds(
            [*command, *flags, "-o", out, "--option", f"beam_size={beam}"],
            env={**os.environ, "LINNET_DECODE": str(DECODE)},
            stdout=subprocess.DEVNULL,
        )
        summary = json.loads((Path(out) / "summary-0-of-1.json").read_text())
    answers = map(json.loads, said.read_text().splitlines())
    tokens = sum(answer["translation"]["tokens"] for answer in answers)
    if tokens != summary["tokens"]:
        raise SystemExit(f"linnet-decode gave {tokens} tokens, linnet-corpus {summary['tokens']}")
    return alone, corpus, tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--rows", type=int, default=4000, help="different lines of the file")
    parser.add_argument("--repeat", type=int, default=3)
    given = machine.parse(parser)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    lines = given.lines.read_text().splitlines()
    texts = list(dict.fromkeys(line for line in lines if 0 < len(line) < 120))[: given.rows]
    beams = {}
    with tempfile.TemporaryDirectory() as folder:
        for beam in (1, 5):
            runs = [measure(given.bundle, texts, beam, Path(folder)) for _ in range(given.repeat)]
            alone, corpus = (statistics.median(run[column] for run in runs) for column in (0, 1))
            beams[beam] = {
                "tokens": runs[0][2],
                "linnet_decode_cpu_seconds": round(alone, 2),
                "linnet_corpus_cpu_seconds": round(corpus, 2),
                "share": round(alone / corpus, 3),
            }
    result = {
        "machine": facts,
        "bundle": machine.bundle_name(given.bundle),
        "rows": len(texts),
        "repeat": given.repeat,
        "beams": beams,
    }
    machine.write_result(given.out / machine.slug(facts) / "corpus-overhead.json", result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
