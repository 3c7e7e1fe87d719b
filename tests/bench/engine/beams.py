"""Measures the quality of translations by beam size, on test sets of bundles.

linnet-decode decodes the same rows with each beam; scores are those of linnet-score. Writes
DIR/MACHINE/beams.json and .md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from quality import options_of, score

BEAMS = (1, 2, 4, 5, 8)
COLUMNS = [f"beam {beam}" for beam in BEAMS]


def by_beam(bundle: Path, domain: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the measures of each beam."""
    name, found, rows = machine.bundle_name(bundle), {}, 0
    for beam in BEAMS:
        print(f"{name}, {domain}, beam {beam} …", file=sys.stderr)
        one = score(bundle, domain, options, [f"--beam={beam}", "--compute=float32"])
        rows = one["rows"]
        found[str(beam)] = one["measures"]
    return {"bundle": name, "domain": domain, "rows": rows, "beams": found}


def table_rows(data: dict[str, Any]) -> list[list[str]]:
    """Returns a row for each measure of each test: what was measured, and the value of each
    beam."""
    return [
        [
            f"{test['bundle']}, {test['rows']:,} rows of {test['domain']}, {measure}",
            *(f"{found[measure]:.1f}" for found in test["beams"].values()),
        ]
        for test in data["tests"]
        for measure in next(iter(test["beams"].values()))
    ]


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/engine/beams.py`. "
        f"{machine.sentence(data['machine'])}. The shipped models on their test sets in float32, "
        "with the other options of their bundles."
    )
    return machine.report(
        "Quality by beam size", about, ["model, rows, measure", *COLUMNS], table_rows(data)
    )


def main(words: list[str] | None = None) -> int:
    options = options_of("beams.py", __doc__).parse_args(words)
    machine.require_commit(options.out)
    facts = machine.facts()
    tests = [by_beam(Path(bundle), domain, options) for bundle, domain in options.test]
    data = {"machine": facts, "tests": tests}
    machine.publish(options.out, "beams", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
