"""Memory and start of processes that serve one bundle.

Measures a bundle of the base size with random int8 weights and the demonstration bundle en-de:

- after loading: linnet-decode waits for input after an answer of one token.
- at work: linnet-decode --synthetic, 32 sentences of 30 tokens to 30 tokens, with 5 hypotheses.
- start: from exec of linnet-decode to an answer of one token, and of linnet-server to its line
  "ready" (a bundle with random weights has no tokenizer for it), with the files in the page cache:
  wall time and CPU time. Wall time needs a quiet machine. "start of the libraries" is linnet-server
  --version: most of it is LibTorch.

/proc tells resident memory, what is private (anonymous), and by how much a second process of the
bundle raises the memory of both: the sum of their proportional set sizes (PSS). Each at its largest
of some looks; medians of rounds. Writes DIR/MACHINE/processes.json and .md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import decoding
import engines
import machine
from engines import ROOT, Sizes

KINDS = {"resident": "Rss", "private": "Anonymous", "proportional": "Pss"}
LINE = json.dumps({"source_ids": [7, 8, 9, 2], "options": {"beam_size": 1, "max_target_tokens": 1}})
WORK_SECONDS = 12  # of CPU time until the memory of a process at work is looked at
LOOKS, PAUSE = 40, 0.1  # at a process at work, and seconds between them


def sizes_of(pid: int) -> dict[str, int]:
    """Bytes of a process."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = {}
    for name, key in KINDS.items():
        kib = re.search(rf"^{key}:\s*(\d+) kB", rollup, re.MULTILINE)
        assert kib is not None
        found[name] = 1024 * int(kib[1])
    return found


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_line(process: subprocess.Popen[str], line: str = "") -> None:
    """Gives a process a line, if there is one, and waits for one of its output."""
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    if not process.stdout.readline():
        raise SystemExit(f"error: {process.args} ended with {process.wait()}")


def after_loading(decode: list[str], count: int) -> list[dict[str, int]]:
    """The sizes of so many processes, which run at once."""
    with contextlib.ExitStack() as all_of_them:
        processes = [all_of_them.enter_context(running(decode)) for _ in range(count)]
        for process in processes:
            wait_for_line(process, LINE)
        return [sizes_of(process.pid) for process in processes]


def at_work(decode: list[str], count: int) -> list[dict[str, int]]:
    words = {"batch": 32, "beam": 5, "source-tokens": 30, "target-tokens": 30, "repeat": 1 << 20}
    command = [*decode, "--synthetic", *(f"--{name}={n}" for name, n in words.items())]
    with contextlib.ExitStack() as all_of_them:
        processes = [all_of_them.enter_context(running(command)) for _ in range(count)]
        # Until all have the CPU time of loading and of some batches.
        while any(cpu_seconds(process.pid) < WORK_SECONDS for process in processes):
            time.sleep(PAUSE)
        looks = []
        for _ in range(LOOKS):
            looks.append([sizes_of(process.pid) for process in processes])
            time.sleep(PAUSE)
        return max(looks, key=lambda look: sum(one["proportional"] for one in look))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(program: list[str], line: str = "") -> dict[str, float]:
    """Seconds until a program prints a line, which it does when it is given this one."""
    begin = time.perf_counter()
    with running(program) as process:
        wait_for_line(process, line)
        return {"wall": time.perf_counter() - begin, "CPU": cpu_seconds(process.pid)}


def start_libraries(server: str) -> float:
    """Seconds to load the libraries."""
    begin = time.perf_counter()
    subprocess.run([server, "--version"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def measure(programs: Path, bundle: Path) -> dict[str, float]:
    """One round: bytes and seconds."""
    decode = [str(programs / "linnet-decode"), "--bundle", str(bundle), "--compute", "int8"]
    server = [str(programs / "linnet-server"), "--models", str(bundle), "--compute", "int8"]
    server += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    found: dict[str, float] = {}
    for state, look in (("loaded", after_loading), ("working", at_work)):
        (one,), two = look(decode, 1), look(decode, 2)
        found |= {f"{state} {name}": one[name] for name in ("resident", "private")}
        both = sum(each["proportional"] for each in two)
        found[f"{state} further"] = both - one["proportional"]
    found["start of the libraries, wall"] = start_libraries(server[0])
    found |= {f"start to an answer, {name}": took for name, took in start(decode, LINE).items()}
    if (bundle / "source.spm").exists():
        found |= {f"start of a server, {name}": took for name, took in start(server).items()}
    return found


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/engine/processes.py`: MiB, and seconds until a server is ready. "
        f"{machine.sentence(data['machine'])}. "
        f"Medians of {data['rounds']} rounds."
    )
    heads = ["", *data["bundles"]]
    rows = []
    keys = dict.fromkeys(key for of in data["bundles"].values() for key in of)
    for key in keys:
        unit, digits = (1, 2) if key.startswith("start") else (1 << 20, 0)
        cells = (of.get(key) for of in data["bundles"].values())
        rows.append([key, *("–" if n is None else f"{n / unit:.{digits}f}" for n in cells)])
    return machine.report("Memory and start of processes of one bundle", about, heads, rows)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="processes.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--size", choices=decoding.SIZES, default="base", help="[%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    engines.add_folders(parser, "linnet-decode and linnet-server")
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    sizes = Sizes(options.size, source=30, target=30, **decoding.SIZES[options.size])
    flags = ["--dtype", "int8"]
    bundles = {
        options.size: engines.bundle_for("dynamic", sizes, options.bundles, flags, "int8"),
        "en-de": ROOT / "model/bundles/en-de",
    }
    data: dict[str, Any] = {
        "machine": machine.facts(),
        "rounds": options.rounds,
        "bundles": {},
    }
    for name, bundle in bundles.items():
        found = [measure(options.programs, bundle) for _ in range(options.rounds)]
        data["bundles"][name] = {key: median(turn[key] for turn in found) for key in found[0]}
    machine.publish(options.out, "processes", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
