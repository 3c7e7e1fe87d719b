#!/usr/bin/env python3
"""Measures the CPU time of the steps between an edit and its test, for CONTRIBUTING.md.

    cmake --preset dev && cmake --build --preset dev --target linnet_proto linnet_proto_grpc
    .venv/bin/python tests/bench/inner_loop.py

CPU time, since the time on the clock depends on what else the machine does. The compiler's cache is
off. The tests run in build/release. Writes DIR/MACHINE/inner-loop.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import machine  # noqa: E402

ROOT = HERE.parents[1]
SOURCES = ("server/schedule/batcher.cc", "tests/server/schedule/batcher_test.cc")
TESTS = {
    "the tests of a class": [
        "build/release/bin/linnet_server_test",
        "--gtest_filter=BatcherTest.*",
    ],
    "a file of end-to-end tests": [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "tests/e2e/status_page_test.py",
    ],
}


def compile_command(source: str) -> list[str]:
    for entry in json.loads((ROOT / "build/dev/compile_commands.json").read_text()):
        if entry["file"] == str(ROOT / source):
            return ["env", "-C", entry["directory"], *shlex.split(entry["command"])]
    raise SystemExit(f"build/dev does not compile {source}")


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    options = machine.parse(parser)
    commands = {f"compile {source}": compile_command(source) for source in SOURCES}
    commands |= {f"run {name}": command for name, command in TESTS.items()}
    facts = machine.facts()
    steps = {name: round(cpu_seconds(command), 1) for name, command in commands.items()}
    results: dict[str, Any] = {"machine": facts, "cpu_seconds": steps}
    machine.write_result(options.out / machine.slug(facts) / "inner-loop.json", results)
    print(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
