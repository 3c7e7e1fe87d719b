#!/usr/bin/env python3
"""Writes robustness.json: how much the long tests of random inputs and events have covered.

    tests/bench/security/long_runs.py --logs build/logs [--only RUN …] [--out tests/bench/results]

It reads what `./test.sh --long` leaves in its folder of logs: the last line of libFuzzer per
target, and the JUnit reports of the transport, the imports, the texts of any characters and the
simulation. A run that failed, or is missing, is an error: the result would promise too much.
Each run has the commit of the checkout that the logs are in. With --only the other runs stay as
they are in the result.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import xml.etree.ElementTree as xml
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

TARGETS = [path.name[:-8] for path in sorted((machine.ROOT / "tests/fuzz").glob("*_fuzz.cc"))]
DONE = re.compile(r"^Done (\d+) runs in (\d+) second\(s\)$", re.MULTILINE)
COUNTED = {  # by run: a test, and the property in which it records its number of inputs
    "transport": ("test_serves_others_despite_any_input_of_a_peer", "inputs"),
    "unicode": ("test_any_unicode_is_answered_with_text", "texts"),
}
SIMULATION = "EveryCallEndsOnceAndNoClientStarves"
PROPERTIES = ("calls", "restarts", "reloads")


def fuzzed(logs: Path, target: str) -> dict[str, int]:
    """The inputs that a fuzz target has run, and for how many seconds."""
    path = logs / f"fuzz-{target}.log"
    done = DONE.search(path.read_text(errors="replace")) if path.exists() else None
    if done is None:
        raise SystemExit(f"{path}: libFuzzer did not end well here; run ./test.sh --long")
    return {"inputs": int(done[1]), "seconds": int(done[2])}


def cases_of(path: Path) -> list[xml.Element]:
    """The tests of a JUnit report, all of which must have run without a failure."""
    cases = list(xml.parse(path).iter("testcase")) if path.exists() else []
    bad = ("failure", "error", "skipped")
    if not cases or any(case.find(kind) is not None for case in cases for kind in bad):
        raise SystemExit(f"{path}: the run did not end well; run ./test.sh --long")
    return cases


def properties_of(path: Path, test: str) -> dict[str, int]:
    """The numbers that a test of a JUnit report has recorded."""
    case = next((it for it in cases_of(path) if it.get("name") == test), None)
    if case is None:
        raise SystemExit(f"{path}: {test} did not run; run ./test.sh --long")
    return {it.get("name", ""): int(it.get("value", "")) for it in case.iter("property")}


def seconds_of(path: Path) -> int:
    return round(sum(float(case.get("time", "")) for case in cases_of(path)))


def counted(logs: Path, run: str) -> dict[str, int]:
    """Returns the count of a run of COUNTED, and its seconds."""
    test, counts = COUNTED[run]
    path = logs / f"pytest-{run}.xml"
    return {counts: properties_of(path, test)[counts], "seconds": seconds_of(path)}


def imported(logs: Path) -> dict[str, int]:
    """The damaged models: each is a test of its own."""
    path = logs / "pytest-imports.xml"
    return {"models": len(cases_of(path)), "seconds": seconds_of(path)}


def simulated(logs: Path) -> dict[str, int]:
    """The counts that the simulation records."""
    found = properties_of(logs / "simulation.xml", SIMULATION)
    return {name: found[name] for name in PROPERTIES}


def at_its_commit(of: Callable[[Path], dict[str, int]]) -> Callable[[Path], dict[str, Any]]:
    return lambda logs: {**of(logs), "version": machine.version_of(logs)}


RUNS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "fuzz": lambda logs: {it: at_its_commit(partial(fuzzed, target=it))(logs) for it in TARGETS},
    **{run: at_its_commit(partial(counted, run=run)) for run in COUNTED},
    "imports": at_its_commit(imported),
    "simulation": at_its_commit(simulated),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--out", type=Path, default=machine.ROOT / "tests/bench/results")
    options = parser.parse_args(arguments)
    machine.require_commit(options.out, options.logs)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    del facts["version"]  # each run has its own
    path = options.out / machine.slug(facts) / "robustness.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    result: dict[str, Any] = {"machine": facts}
    for run, of in RUNS.items():
        if run in options.only:
            result[run] = of(options.logs)
        elif run in kept:
            result[run] = kept[run]
    machine.write_result(path, result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
