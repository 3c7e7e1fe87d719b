#!/usr/bin/env python3
"""Writes robustness.json: how much the fuzz targets and the simulation have covered.

    tests/bench/security/long_runs.py --logs build/logs [--out tests/bench/results]

It reads what `./test.sh --long` leaves in its folder of logs: the last line of libFuzzer per
target, and the properties that the simulation records. A target or a simulation that failed, or did
not run, is an error: the result would promise too much.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

TARGETS = [path.name[:-8] for path in sorted((machine.ROOT / "tests/fuzz").glob("*_fuzz.cc"))]
DONE = re.compile(r"^Done (\d+) runs in (\d+) second\(s\)$", re.MULTILINE)
SIMULATION = "EveryCallEndsOnceAndNoClientStarves"
PROPERTIES = ("calls", "restarts", "reloads")


def fuzzed(logs: Path, target: str) -> dict[str, int]:
    """The inputs that a target has run, and for how many seconds."""
    path = logs / f"fuzz-{target}.log"
    done = DONE.search(path.read_text(errors="replace")) if path.exists() else None
    if done is None:
        raise SystemExit(f"{path}: libFuzzer did not end well here; run ./test.sh --long")
    return {"inputs": int(done[1]), "seconds": int(done[2])}


def simulated(logs: Path) -> dict[str, int]:
    """The counts that the simulation records."""
    path = logs / "simulation.xml"
    case = xml.parse(path).find(f".//testcase[@name='{SIMULATION}']") if path.exists() else None
    if case is None or case.find("failure") is not None:
        raise SystemExit(f"{path}: the simulation did not end well; run ./test.sh --long")
    found = {item.get("name", ""): item.get("value", "") for item in case.iter("property")}
    return {name: int(found[name]) for name in PROPERTIES}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=machine.ROOT / "tests/bench/results")
    options = parser.parse_args(arguments)
    machine.require_commit(options.out)
    result: dict[str, Any] = {
        "machine": machine.facts(sorted(os.sched_getaffinity(0))),
        "fuzz": {target: fuzzed(options.logs, target) for target in TARGETS},
        "simulation": simulated(options.logs),
    }
    folder = options.out / machine.slug(result["machine"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robustness.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
