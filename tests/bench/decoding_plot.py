#!/usr/bin/env python3
"""Draws docs/decoding.svg, the plot of README.md: decoding speed beside CTranslate2.

    tests/bench/decoding_plot.py [RESULTS/decoding.json]

The bars are the medians of the rounds with a beam of 5, one sentence at a time and in a full batch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "engine"))
import decoding_report  # noqa: E402

RESULTS = HERE / "results/amd-epyc-2-cores-vnni/decoding.json"
PLOT = HERE.parents[1] / "docs/decoding.svg"
BEAM = 5
LEFT, WIDTH, BAR, GAP = 150, 400, 16, 14
# Readable on a light and on a dark page.
STYLE = """text { font: 12px sans-serif; fill: #24292f }
.ours { fill: #0072b2 } .theirs { fill: #b0752a }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .ours { fill: #56b4e9 } }"""


def speeds(results: dict[str, Any]) -> list[tuple[str, float, float]]:
    """For each setting: its name, the speed of Linnet, and that of CTranslate2 at its fastest."""
    found = []
    for group in results["groups"]:
        reference = decoding_report.reference_of(group)
        if group["beam"] == BEAM and reference is not None:
            ours, theirs = (
                median(group["engines"][name]["rounds"])
                for name in (decoding_report.OURS, reference)
            )
            found.append((f"{group['compute']}, batch {group['batch']}", ours, theirs))
    return found


def bar(kind: str, y: int, speed: float, largest: float) -> str:
    length = WIDTH * speed / largest
    return (
        f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.0f}" height="{BAR}"/>'
        f'<text x="{LEFT + length + 5:.0f}" y="{y + 12}">{speed:,.0f}</text>'
    )


def draw(results: dict[str, Any]) -> str:
    rows = speeds(results)
    largest = max(max(ours, theirs) for _, ours, theirs in rows)
    height = 50 + len(rows) * (2 * BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}"'
        ' role="img">',
        "<title>Decoding speed of Linnet and CTranslate2</title>",
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="16">target tokens a second, beam {BEAM}</text>',
        f'<rect class="ours" x="{LEFT}" y="26" width="10" height="10"/>',
        f'<text x="{LEFT + 15}" y="35">Linnet, engine alone</text>',
        f'<rect class="theirs" x="{LEFT + 150}" y="26" width="10" height="10"/>',
        f'<text x="{LEFT + 165}" y="35">CTranslate2</text>',
    ]
    for number, (name, ours, theirs) in enumerate(rows):
        y = 48 + number * (2 * BAR + GAP)
        lines += [
            f'<text x="{LEFT - 10}" y="{y + BAR + 4}" text-anchor="end">{name}</text>',
            bar("ours", y, ours, largest),
            bar("theirs", y + BAR, theirs, largest),
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    PLOT.write_text(draw(json.loads(path.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
