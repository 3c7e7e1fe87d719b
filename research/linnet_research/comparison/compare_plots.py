"""python -m linnet_research.comparison.compare_plots: draws the plots of comparisons.

The tree keeps numbers alone. The same results give the same files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from linnet_model.command_line import command, parser_for
from linnet_research.comparison.compare_report import read_results
from linnet_research.comparison.compare_statistics import (
    by_mixer,
    ended,
    measures_of,
    name_of,
    score_of,
)

# Mixers have the same colour in all plots, other rows one by their place.
COLOURS = {
    "dynamic": "#0072b2",
    "light": "#56b4e9",
    "depthwise": "#009e73",
    "dilated": "#f0e442",
    "self_attention": "#d55e00",
    "csan_1d": "#cc79a7",
    "csan_2d": "#999999",
    "ssru": "#000000",
}


def write_plots(results: dict[str, Any], folder: Path, name: str) -> dict[str, Path]:
    """Draws NAME-scores.svg and, where speeds were measured, NAME-lengths.svg into the folder.
    Returns what each shows and its path."""
    scores, lengths = (folder / f"{name}-{kind}.svg" for kind in ("scores", "lengths"))
    plot_scores(results, scores)
    if "decoding" not in results:
        return {f"scores of {name}": scores}
    plot_lengths(results, lengths)
    return {f"scores of {name}": scores, f"time per token against length of {name}": lengths}


def plot_scores(results: dict[str, Any], path: Path) -> None:
    """Draws a row for each mixer and a panel for each measure: the scores with their intervals,
    where there was a pre-training those from scratch as rings and those after it as discs."""
    runs, measures = by_mixer(results), measures_of(results)
    figure, panels = plt.subplots(
        ncols=len(measures),
        sharey=True,
        squeeze=False,
        figsize=(2.5 + 2.6 * len(measures), 1 + 0.28 * len(runs)),
    )
    offsets = {False: -0.15, True: 0.15} if "pretraining" in results else {None: 0}
    for axes, measure in zip(panels[0], measures, strict=True):
        for row, mixer in enumerate(runs):
            for pretrained, offset in offsets.items():
                found = ended([r for r in runs[mixer] if r.get("pretrained") is pretrained])
                if not found:  # all of them diverged: the row stays empty
                    continue
                middle, low, high = score_of(found, measure)
                axes.errorbar(
                    middle,
                    row + offset,
                    xerr=[[max(0.0, middle - low)], [max(0.0, high - middle)]],
                    fmt="o",
                    capsize=2,
                    color="#0072b2",
                    markerfacecolor="white" if pretrained is False else "#0072b2",
                )
        axes.set_yticks(range(len(runs)), list(runs))
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.set_xlabel(measure)
        axes.grid(alpha=0.3)
    save(figure, path)


def plot_lengths(results: dict[str, Any], path: Path) -> None:
    """Draws the time of a token against the length of a sentence that is decoded alone."""
    figure, axes = plt.subplots(figsize=(7, 4.2))
    others = [mixer for mixer in results["decoding"] if mixer not in COLOURS]
    for mixer, found in results["decoding"].items():
        lengths = [int(n) for n in found["sentence"]]
        times = [1000 * median(found["sentence"][str(n)]) / n for n in lengths]
        colour = COLOURS.get(mixer) or f"C{others.index(mixer) % 10}"
        axes.plot(lengths, times, marker="o", label=mixer, color=colour)
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tokens of source and of target")
    axes.set_ylabel("ms per target token, one sentence alone")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "linnet"  # the same numbers give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: smaller, and can be searched
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    path.write_text(compact(path.read_text()))


def compact(svg: str) -> str:
    """The same drawing without indentation, with coordinates to a hundredth of a point and one
    family of fonts in place of ten, which each text names: about a quarter smaller."""
    attributes = re.compile(r'="[^"]*"')
    svg = re.sub(r"\n\s+", "\n", svg)
    svg = re.sub("font-family: [^;]*", "font-family: sans-serif", svg)
    return attributes.sub(
        lambda value: re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", value[0]),
        svg,
    )


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="NAME.json of linnet-compare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plots")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.results:
        results = read_results(path)
        print(*write_plots(results, options.out, name_of(results)).values(), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
