"""The resident memory that a process holds before it has a model.

- `cat`, which has the C library alone.
- `cat` with libtorch_cpu, the library that the programs link, and those that it needs, loaded by
  the dynamic linker as for the programs: what LibTorch costs without being used.
- linnet-decode with a model of a few weights, after its first answer.

Each process waits for input while /proc tells its size. Pages of libraries are shared with other
processes that use the same files; private ones are not. Takes seconds, and the machine need not be
quiet. Writes DIR/MACHINE/memory-floor.json and memory-floor.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import decoding
import engines
import machine
from engines import Sizes

TORCH = "libtorch_cpu"
COLUMNS = {
    "resident": "resident_bytes",
    "of it private": "private_bytes",
    "of it the heap": "heap_bytes",
}
HEADS = ["MiB", *COLUMNS]


def library(program: Path, name: str) -> Path:
    """The library of that name which the dynamic linker finds for a program."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s*{re.escape(name)}\.so\S* => (/\S+)", linked, re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: {program} does not link {name}")
    return Path(found[1])


def held(command: list[str], line: str, more: Mapping[str, str]) -> dict[str, int]:
    """The bytes of a process that has answered a line, and waits for the next one; `more` is added
    to its environment."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **more},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # of a process that ended: it has no answer
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answered = process.stdout.readline()
    status, maps = (Path(f"/proc/{process.pid}/{it}").read_text() for it in ("status", "smaps"))
    process.communicate()
    if not answered or process.returncode != 0:
        raise SystemExit(f"error: {command[0]} ended with {process.returncode}")
    heap = maps.partition("[heap]\n")[2]
    found = {
        "resident_bytes": re.search(r"^VmRSS:\s*(\d+) kB", status, re.MULTILINE),
        "private_bytes": re.search(r"^RssAnon:\s*(\d+) kB", status, re.MULTILINE),
        "heap_bytes": re.search(r"^Rss:\s*(\d+) kB", heap, re.MULTILINE),
    }
    return {key: 1024 * int(kib[1]) if kib else 0 for key, kib in found.items()}


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    program = options.programs / "linnet-decode"
    sizes = Sizes("tiny", source=6, target=5, **decoding.SIZES["tiny"])
    bundle = engines.bundle_for("dynamic", sizes, options.bundles)
    decode = [str(program), "--bundle", str(bundle), "--batch", "1", "--threads", "1"]
    source = json.dumps({"source_ids": [7, 8, 9, 2]})
    preload = {"LD_PRELOAD": str(library(program, TORCH))}
    processes: dict[str, tuple[list[str], str, dict[str, str]]] = {
        "`cat`": (["cat"], "", {}),
        f"`cat` with {TORCH}": (["cat"], "", preload),
        "`linnet-decode`, a model of a few weights": (decode, source, {}),
    }
    found = []
    for name, (command, line, more) in processes.items():
        turns = [held(command, line, more) for _ in range(options.rounds)]
        sizes_of = {key: int(median(turn[key] for turn in turns)) for key in turns[0]}
        found.append({"process": name, **sizes_of})
    return found


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    """A row of text for each process."""
    return [
        [one["process"], *(f"{one[key] / (1 << 20):.0f}" for key in COLUMNS.values())]
        for one in data["processes"]
    ]


def markdown(data: dict[str, Any]) -> str:
    about = (
        f"Written by `tests/bench/engine/memory_floor.py`. {machine.sentence(data['machine'])}. "
        f"Medians of {data['rounds']} processes each; one thread."
    )
    return machine.report("Memory of a process without a model", about, HEADS, rows_of(data))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="memory_floor.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="processes [%(default)s]"
    )
    engines.add_folders(parser)
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    machine.require_commit(options.out)
    facts = machine.facts()
    data = {"machine": facts, "rounds": options.rounds, "processes": measure(options)}
    machine.publish(options.out, "memory-floor", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
