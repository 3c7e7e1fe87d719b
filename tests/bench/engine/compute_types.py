"""Measures the quality of each compute type, and of stored int8, on test sets of bundles.

Every type that the processor has decodes the same rows with linnet-decode; scores are those of
linnet-score, and answers are compared with float32's one by one. A bundle of the same training that
stores its weights as float32 (--unquantized) tells what it costs to store them as int8. Writes
DIR/MACHINE/compute-types.json and .md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from quality import options_of, score

# Each type with the features of a processor of which it needs one.
TYPES = {"float32": (), "bfloat16": ("avx512_bf16", "amx_bf16"), "int8": ("avx512_vnni",)}
UNQUANTIZED = "unquantized"  # float32 with weights that are stored as float32


def compare(bundle: Path, domain: str, options: argparse.Namespace) -> dict[str, Any]:
    """The measures of each type, and how many answers are not float32's."""
    name = machine.bundle_name(bundle)
    wanted = {compute: (bundle, compute) for compute in options.types}
    for other in options.unquantized:
        if machine.bundle_name(other) == name:
            wanted[UNQUANTIZED] = (other, "float32")
    found: dict[str, dict[str, Any]] = {}
    for what, (folder, compute) in wanted.items():
        print(f"{name}, {domain}, {what} …", file=sys.stderr)
        found[what] = score(folder, domain, options, [f"--compute={compute}"])
    types = {}
    for what, one in found.items():
        pairs = zip(found["float32"]["answers"], one["answers"], strict=True)
        types[what] = {
            "measures": one["measures"],
            "other_answers": sum(a != b for a, b in pairs),
        }
    return {"bundle": name, "domain": domain, "rows": found["float32"]["rows"], **types}


def types_of(test: dict[str, Any]) -> list[str]:
    """Lists what a test was decoded with, but for float32."""
    return [what for what in (*TYPES, UNQUANTIZED) if what in test and what != "float32"]


def markdown(data: dict[str, Any]) -> str:
    rounded = any(UNQUANTIZED in test for test in data["tests"])
    lines = [
        "# Quality by compute type",
        "",
        "Written by `tests/bench/engine/compute_types.py`. "
        f"{machine.sentence(data['machine'])}. The "
        "shipped models on their test sets, with the options of their bundles; `change` is the "
        "first measure's, against float32; `other answers` are not float32's, letter for letter."
        + f" `{UNQUANTIZED}` is float32 with weights that are not rounded to int8."
        * rounded,
        "",
        "| model | test set | rows | type | measures | change | other answers |",
        "|---|---|---:|---|---|---:|---:|",
    ]
    for test in data["tests"]:
        first = next(iter(test["float32"]["measures"]))
        for compute in ("float32", *types_of(test)):
            measures = test[compute]["measures"]
            change = measures[first] - test["float32"]["measures"][first]
            others = test[compute]["other_answers"]
            shown = ", ".join(f"{k} {v:.2f}" for k, v in measures.items())
            lines.append(
                f"| {test['bundle']} | {test['domain']} | {test['rows']} | {compute} | {shown} | "
                f"{change:+.2f} | {others} ({100 * others / test['rows']:.1f} %) |"
            )
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    parser = options_of("compute_types.py", __doc__)
    add = parser.add_argument
    add("--unquantized", type=Path, action="append", default=[], metavar="DIR",
        help="bundle of the same name, version and training as one of --test, exported with "
        "--dtype float32 (repeatable)")  # fmt: skip
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    facts = machine.facts()
    options.types = [
        compute
        for compute, needed in TYPES.items()
        if not needed or set(needed) & set(facts["features"])
    ]
    tests = [compare(Path(bundle), domain, options) for bundle, domain in options.test]
    data = {"machine": facts, "tests": tests}
    machine.publish(options.out, "compute-types", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
