"""Runs the parts of tests/gpu.sh within a number of seconds.

A part is a list of cases. Each part runs in its own process, which appends a line to rows.jsonl
when a case begins and when it ends, so that no result is lost by a crash or a time limit:

- A part gets its share of the seconds that are left, up to its limit; unused time goes to later
  parts. A part that takes longer is stopped with all its child processes.
- Parts that time nothing run at the same time, and each of them several cases.
- A case that raises fails alone. A case that ends its process (a failed CUDA context, a signal) is
  reported, and a new process continues with the next case.
- With --continue DIR, the rows of earlier calls are read from DIR and new rows are also added
there:
  finished cases are not run again. A case is started at most twice.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import read_rows, write_report

ROOT = Path(__file__).resolve().parents[2]
Case = tuple[str, Callable[[], list[dict[str, Any]]]]
CRASHED = 70  # exit status of a process whose CUDA context has failed


@dataclass(frozen=True)
class Part:
    weight: int  # share of the time: weight / sum of the weights of this and all later parts
    module: str  # has cases(setup), or cases(setup, part)
    needs_portable: bool = True
    # Cases that run at once. More than one only where nothing is timed and every case computes in a
    # process of its own; parts of this kind that follow one another run at once as well.
    at_once: int = 1
    limit: int = 90  # seconds at most, so that no part takes the time of the others


# In running order: what detects basic failures, what no call has measured yet, the rest.
PARTS = {
    "facts": Part(40, "facts", needs_portable=False),
    "smoke": Part(100, "smoke", limit=60),
    "profile": Part(150, "step_profile", needs_portable=False),
    "encoder": Part(40, "encoder_calls", needs_portable=False, limit=30),
    "search": Part(100, "op_times", needs_portable=False, limit=60),
    "latencies": Part(40, "latencies", limit=30),
    "ctranslate2": Part(150, "speed"),
    "mixed": Part(100, "serving", limit=60),
    "serving": Part(150, "serving"),
    "base": Part(250, "speed"),
    "kernels": Part(150, "kernels", needs_portable=False, at_once=7),
    "answers": Part(150, "answers", at_once=5),
    "big": Part(250, "speed"),
    "operators": Part(60, "op_times", needs_portable=False),
    "counters": Part(60, "counters", needs_portable=False),
}


@dataclass(frozen=True)
class Setup:
    """Paths and flags for the parts."""

    library: Path  # liblinnet_ops.so
    portable: Path | None  # folder made by deploy/stage.sh --portable
    data: Path | None  # holds en-de/ with test sets
    dry: bool

    @property
    def device(self) -> str:
        return "cpu" if self.dry else "cuda"


class Rows:
    """The file rows.jsonl in one or two folders."""

    def __init__(self, folders: Iterable[Path]):
        self.files = [folder / "rows.jsonl" for folder in folders]

    def read(self) -> list[dict[str, Any]]:
        return read_rows(self.files[:1]) if self.files[0].exists() else []

    def write(self, **line: object) -> None:
        for file in self.files:
            with file.open("a") as rows:
                rows.write(json.dumps(line) + "\n")


def due_cases(rows: list[dict[str, Any]], part: str, names: list[str]) -> list[str]:
    """Returns the cases without a result that were started less than twice."""
    own = [row for row in rows if row["part"] == part and "case" in row]
    done = {row["case"] for row in own if "begun" not in row}
    begun = Counter(row["case"] for row in own if "begun" in row)
    return [name for name in names if name not in done and begun[name] < 2]


def run_cases(cases: Iterator[Case], part: str, rows: Rows) -> int:
    """Runs the cases of a part, in the part's process."""
    chosen = dict(cases)

    def run(name: str) -> int:
        rows.write(part=part, case=name, begun=True)
        start = time.monotonic()
        try:
            found = chosen[name]()
        except Exception as error:
            seconds = round(time.monotonic() - start, 1)
            message = f"{type(error).__name__}: {error}"[-1500:]
            rows.write(part=part, case=name, error=message, seconds=seconds)
            print(f"  {name}: {message}", flush=True)
            return CRASHED if "CUDA error" in message else 0
        seconds = round(time.monotonic() - start, 1)
        rows.write(part=part, case=name, rows=found, seconds=seconds)
        print("".join(f"  {json.dumps(row)}\n" for row in found), end="", flush=True)
        return 0

    due = due_cases(rows.read(), part, list(chosen))
    if PARTS[part].at_once == 1:  # after a crash this process can compute nothing more
        return next((status for name in due if (status := run(name))), 0)
    with ThreadPoolExecutor(PARTS[part].at_once) as pool:
        list(pool.map(run, due))
    return 0


def child(part: str, setup: Setup, folders: list[Path]) -> int:
    os.environ["LINNET_OPS_LIBRARY"] = str(setup.library.resolve())  # for linnet_model
    module = importlib.import_module(PARTS[part].module)
    return run_cases(module.cases(setup, part), part, Rows(folders))


def with_package() -> dict[str, str]:
    """Returns the environment with linnet_model of this checkout added to PYTHONPATH."""
    known = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": f"{ROOT / 'model'}{':' + known if known else ''}"}


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and its children; the process leads its own session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_part(command: list[str], part: str, seconds: float, rows: Rows) -> str:
    """Runs a part and returns how it ended. If its process dies, a new one continues."""
    deadline = time.monotonic() + seconds
    while True:
        begun = sum("begun" in row for row in rows.read() if row["part"] == part)
        process = subprocess.Popen(command, start_new_session=True)
        try:
            status = process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            stop(process)
            return f"stopped after {seconds:.0f} s"
        stop(process)
        if status == 0:
            return "complete"
        if sum("begun" in row for row in rows.read() if row["part"] == part) == begun:
            return f"ended with status {status}"


def run_session(
    parts: list[str],
    command: Callable[[str], list[str]],
    seconds: float,
    rows: Rows,
    *,
    limited: bool = True,
) -> None:
    end = time.monotonic() + seconds
    ended = {row["part"]: row["end"] for row in rows.read() if "end" in row}
    due = [part for part in PARTS if part in parts and ended.get(part) != "complete"]

    def run(part: str, seconds: float) -> None:
        if seconds < 1:
            rows.write(part=part, end="no time was left", seconds=0)
            return
        print(f"== {part}, {seconds:.0f} s", flush=True)
        start = time.monotonic()
        how = run_part(command(part), part, seconds, rows)
        rows.write(part=part, end=how, seconds=round(time.monotonic() - start, 1))
        print(f"== {part}: {how}", flush=True)

    while due:
        group = list(itertools.takewhile(lambda part: PARTS[part].at_once > 1, due)) or due[:1]
        share = weight_of(group) / weight_of(due)
        seconds = (end - time.monotonic()) * share
        if limited:
            seconds = min(seconds, *(PARTS[part].limit for part in group))
        with ThreadPoolExecutor(len(group)) as pool:
            list(pool.map(run, group, [seconds] * len(group)))
        due = due[len(group) :]


def weight_of(parts: list[str]) -> int:
    return sum(PARTS[part].weight for part in parts)


def parse_arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--portable", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--part", action="append", choices=PARTS, default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--continue", type=Path, dest="kept")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def folders_of(options: argparse.Namespace) -> list[Path]:
    """Returns the folders of rows.jsonl. The first one is read and has the rows of earlier
    calls."""
    folders = [options.kept, options.out] if options.kept else [options.out]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    if options.kept and not (options.out / "rows.jsonl").exists():
        earlier = options.kept / "rows.jsonl"
        (options.out / "rows.jsonl").write_bytes(earlier.read_bytes() if earlier.exists() else b"")
    return folders


def main(words: list[str] | None = None) -> int:
    options = parse_arguments(words)
    setup = Setup(**{f.name: getattr(options, f.name) for f in dataclasses.fields(Setup)})
    if options.child:
        return child(options.child, setup, folders_of(options))
    parts = ["facts", *(options.part or PARTS)]
    if not options.portable:
        for part in [part for part in parts if PARTS[part].needs_portable]:
            print(f"{part}: left out, it needs --portable", flush=True)
            parts.remove(part)
    if not options.kept:
        (options.out / "rows.jsonl").unlink(missing_ok=True)
    rows = Rows(folders_of(options))
    again = [sys.executable, __file__, *(words if words is not None else sys.argv[1:])]
    # A dry run checks the scripts, on a machine that may be slow.
    run_session(
        parts,
        lambda part: [*again, "--child", part],
        options.seconds,
        rows,
        limited=not options.dry,
    )
    return write_report([rows.files[0]], options.out)


if __name__ == "__main__":
    sys.exit(main())
