"""Measures the speed-up of a shortlist and its cost in quality.

Speed on random weights of base size with a large vocabulary, where every source token has random
candidates (part random), and on a bundle with a list that linnet-shortlist learned (learned); with
and without the list take turns. Quality on a test set of that bundle. What other parts found before
is kept. Writes DIR/MACHINE/shortlist.json and .md.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import engines
import machine
from decoding import SIZES
from engines import Sizes
from quality import score

COMPUTE = ("float32", "int8")
BOTH = (("without", ["--shortlist", "false"]), ("with", ["--shortlist", "true"]))
PARTS = ("random", "learned", "quality")
SETTINGS = ((1, 1), (1, 5), (32, 1), (32, 5))  # batch, beam
EACH = 50  # candidates of a source token in random lists, the max of linnet-shortlist


def speeds(bundle: Path, sizes: Sizes, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Target tokens per second by compute type, batch and beam, without and with the list."""
    rows = []
    for compute in COMPUTE:
        for batch, beam in SETTINGS:
            found: dict[str, list[float]] = {"without": [], "with": []}
            for _ in range(options.rounds):
                for name, more in BOTH:
                    engines.settle()
                    engine = engines.Linnet(
                        name,
                        options.programs / "linnet-decode",
                        bundle,
                        sizes,
                        ["--compute", compute, *more],
                    )
                    measured = engine.measure(batch, beam, max(1, 16 // (batch * beam)))
                    found[name] += measured.tokens_per_second()
            ratios = [b / a for a, b in zip(found["without"], found["with"], strict=True)]
            rows.append(
                {"compute": compute, "batch": batch, "beam": beam, "ratio": median(ratios)}
                | {name: median(values) for name, values in found.items()}
            )
            print(rows[-1], file=sys.stderr)
    return rows


def quality(bundle: Path, options: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for name, more in BOTH:
        found[name] = score(bundle, options.domain, options, ["--compute", "int8", *more])
    answers = [one.pop("answers") for one in found.values()]
    others = sum(a != b for a, b in zip(*answers, strict=True))
    name = json.loads((bundle / "manifest.json").read_text())["name"]
    facts = {"bundle": name, "domain": options.domain, "rows": len(answers[0])}
    return {**facts, **found, "other_answers": others}


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| type | batch | beam | without, tokens/s | with | ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['compute']} | {row['batch']} | {row['beam']} | {row['without']:.0f} | "
            f"{row['with']:.0f} | {row['ratio']:.2f} |"
        )
    return [*lines, ""]


def markdown(data: dict[str, Any]) -> str:
    lines = [
        "# Shortlists",
        "",
        "Written by `tests/bench/engine/shortlist.py`. "
        f"{machine.sentence(data['machine'])}. Target "
        f"tokens of the best hypotheses per second, medians of {data['rounds']} rounds in turn; "
        "sources and targets of 30 tokens, sources of random tokens.",
        "",
    ]
    if "random" in data:
        lines += [
            f"## Base size, a vocabulary of {data['vocabulary']}, random weights and lists",
            "",
            f"{EACH} candidates of each source token, {4 * EACH} tokens in every list.",
            "",
            *table(data["random"]),
        ]
    if "learned" in data:
        learned = data["learned"]
        lines += [
            f"## {learned['bundle']}, a vocabulary of {learned['vocabulary']}",
            "",
            f"{learned['mean_candidates']:.0f} candidates of a source token on average.",
            "",
            *table(learned["speeds"]),
        ]
    if "quality" in data:
        test = data["quality"]
        lines += [
            f"## What {test['bundle']} answers",
            "",
            f"In int8 on {test['domain']}, {test['rows']} rows, of which {test['other_answers']} "
            "have another answer with the list:",
            "",
        ]
        for name in ("without", "with"):
            shown = ", ".join(f"{k} {v:.2f}" for k, v in test[name]["measures"].items())
            lines.append(f"- {name}: {shown}")
    return "\n".join(lines).rstrip() + "\n"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="shortlist.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [all]")
    add("--bundle", type=Path, metavar="DIR", help="of the parts learned and quality")
    add("--domain", metavar="NAME", help="test set of the bundle")
    add("--data", type=Path, metavar="DIR", help="folder that holds the recipe's data.folder")
    add("--limit", type=int, default=0, metavar="N", help="first N rows of the test set; 0: all")
    add("--size", choices=SIZES, default="base", help="of the random model [%(default)s]")
    add("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    engines.add_folders(parser)
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    options.parts = options.parts or list(PARTS)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(PARTS)}")
    if {"learned", "quality"} & set(options.parts) and not options.bundle:
        parser.error("the parts learned and quality need --bundle, one that has a shortlist")
    if "quality" in options.parts and not (options.domain and options.data):
        parser.error("the part quality needs --domain and --data")
    sizes = Sizes(options.size, source=30, target=30, **SIZES[options.size])
    facts = {
        "machine": machine.facts(),
        "rounds": options.rounds,
        "vocabulary": sizes.vocabulary,
    }
    path = options.out / machine.slug(facts["machine"]) / "shortlist.json"
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    data.update(facts)
    if "random" in options.parts:
        flags = ["--shortlist", str(EACH)]
        bundle = engines.bundle_for("dynamic", sizes, options.bundles, flags, "shortlist")
        data["random"] = speeds(bundle, sizes, options)
    if "learned" in options.parts:
        manifest = json.loads((options.bundle / "manifest.json").read_text())
        header = (options.bundle / manifest["shortlist_file"]).read_bytes()[8:24]
        sources, _, _, candidates = struct.unpack("<4I", header)  # shortlist.h
        data["learned"] = {
            "bundle": manifest["name"],
            "vocabulary": manifest["vocabulary"]["size"],
            "mean_candidates": candidates / sources,
            "speeds": speeds(options.bundle, sizes, options),
        }
    if "quality" in options.parts:
        data["quality"] = quality(options.bundle, options)
    machine.write_result(path, data, markdown(data))
    print(markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
