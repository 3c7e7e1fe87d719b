"""Measures translations that a model of the other direction chooses among the hypotheses.

linnet-score decodes the same rows with the bundle's own search and with --channel; its times
include the load of the models. Writes DIR/MACHINE/reranking.json and .md.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from quality import options_of, score

HYPOTHESES = (4, 8, 24)
HEAVIER = 0.5  # a weight above the default
SETTINGS: dict[str, list[str]] = {  # by column, words of linnet-score beside --channel
    **{f"best of {count}": ["--hypotheses", str(count)] for count in HYPOTHESES},
    f"best of 8, weight {HEAVIER}": ["--hypotheses", "8", "--channel-weight", str(HEAVIER)],
}
COLUMNS = ["search alone", *SETTINGS]


def other_direction(bundle: Path) -> Path:
    """The bundle beside en-de is de-en."""
    return bundle.with_name("-".join(reversed(bundle.name.split("-"))))


def reranked(bundle: Path, domain: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the measures of the search alone, and of each of SETTINGS."""
    channel = other_direction(bundle)
    settings: list[list[str]] = [[]]
    settings += [["--channel", str(channel), *words] for words in SETTINGS.values()]
    found, rows = {}, 0
    for column, words in zip(COLUMNS, settings, strict=True):
        print(f"{bundle.name}, {domain}, {column} …", file=sys.stderr)
        one = score(bundle, domain, options, ["--compute=float32"], words)
        rows = one["rows"]
        found[column] = one["measures"] | {
            "length ratio": one["length_ratio"],
            "seconds": one["seconds"],
        }
    return {
        "bundle": machine.bundle_name(bundle),
        "channel": machine.bundle_name(channel),
        "domain": domain,
        "rows": rows,
        "columns": found,
    }


def table_rows(data: dict[str, Any]) -> list[list[str]]:
    """Returns a row for each measure of each test; the time is a multiple of the search's."""
    rows = []
    for test in data["tests"]:
        about = f"{test['bundle']}, {test['rows']:,} rows of {test['domain']}"
        columns = list(test["columns"].values())
        for measure in columns[0]:
            if measure == "seconds":
                cells = [f"{found[measure] / columns[0][measure]:.1f} ×" for found in columns]
            else:
                digits = 2 if measure == "length ratio" else 1
                cells = [f"{found[measure]:.{digits}f}" for found in columns]
            rows.append([f"{about}, {'time' if measure == 'seconds' else measure}", *cells])
    return rows


def columns_of(data: dict[str, Any]) -> list[str]:
    return list(data["tests"][0]["columns"])


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/engine/reranking.py`. "
        f"{machine.sentence(data['machine'])}. The shipped translators in float32; the one of "
        "the other direction chooses."
    )
    heads = ["model, rows, measure", *columns_of(data)]
    return machine.report("Noisy-channel reranking", about, heads, table_rows(data))


def main(words: list[str] | None = None) -> int:
    options = options_of("reranking.py", __doc__).parse_args(words)
    machine.require_commit(options.out)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    tests = [reranked(Path(bundle), domain, options) for bundle, domain in options.test]
    data = {"machine": facts, "tests": tests}
    machine.publish(options.out, "reranking", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
