"""Compares the host's part of a decoder step with that of an earlier commit.

    .venv/bin/python tests/bench/engine/search_steps.py --before PROGRAM --before-version COMMIT

PROGRAM is bench_search of the earlier commit, built with this commit's bench_search.cc. Both run in
turns; a ratio is the median of the ratios within rounds, of CPU time. Writes
DIR/MACHINE/search-steps.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]


def cpu_times(program: Path, which: str) -> dict[str, float]:
    """CPU nanoseconds by benchmark: of one step of all searches, or of one row."""
    command = [str(program), f"--benchmark_filter={which}", "--benchmark_format=json"]
    command.append("--benchmark_min_time=0.1")
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        run["name"]: 1e9 / run["items_per_second"] if "items_per_second" in run else run["cpu_time"]
        for run in json.loads(output)["benchmarks"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after", type=Path, default=ROOT / "build/release/bin/bench_search")
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--before-version", required=True)
    parser.add_argument("--which", default="Step|Follow|PushRow", help="regular expression")
    parser.add_argument("--rounds", type=int, default=7)
    options = machine.parse(parser)
    facts = machine.facts()
    rounds = [
        (cpu_times(options.before, options.which), cpu_times(options.after, options.which))
        for _ in range(options.rounds)
    ]
    result = {
        "machine": facts,
        "before": options.before_version,
        "rounds": options.rounds,
        "load_average": os.getloadavg()[1],
        "benchmarks": {
            name: {
                "before_us": statistics.median(before[name] for before, _ in rounds) / 1e3,
                "after_us": statistics.median(after[name] for _, after in rounds) / 1e3,
                "ratio": statistics.median(before[name] / after[name] for before, after in rounds),
            }
            for name in rounds[0][1]
        },
    }
    print(json.dumps(result, indent=1))
    machine.write_result(options.out / machine.slug(facts) / "search-steps.json", result)


if __name__ == "__main__":
    main()
