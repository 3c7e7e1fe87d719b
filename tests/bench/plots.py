#!/usr/bin/env python3
"""Draws the plots of a folder of results; the tree keeps numbers alone.

  tests/bench/plots.py tests/bench/results/MACHINE --out build/plots

Reads batching.json and long-inputs.json of the folder, those that there are, and writes
batching.svg, long-encoder.svg and long-decoder.svg.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parent / "batching"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "engine"))
from long_inputs_report import per_source_token, per_step
from run import DISCIPLINES, best

COLOURS = {"dynamic": "#0072b2", "light": "#56b4e9", "self_attention": "#d55e00"}


def plot_batching(results: dict[str, Any], path: Path) -> None:
    """Latency and served requests over the load; the real engine as dots."""
    colors = dict(zip(DISCIPLINES, ("tab:blue", "tab:orange", "tab:gray"), strict=True))
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    for (left, right), (key, title) in zip(
        axes,
        (("simulated", "costs of the measured engine"), ("assumed", "assumed costs of a GPU")),
        strict=True,
    ):
        result = results[key]
        for name in DISCIPLINES:
            runs = best(result["runs"], name)
            loads = [r["load"] for r in runs]
            for percentile, style in (("p99", "-"), ("p50", "--")):
                left.plot(
                    loads,
                    [1e3 * r[percentile] for r in runs],
                    style,
                    color=colors[name],
                    label=f"{name}, {percentile}",
                )
            right.plot(
                loads, [r["served_per_second"] for r in runs], color=colors[name], label=name
            )
            if key == "simulated":
                real = best(results["measured"]["runs"], name)
                loads = [r["load"] for r in real]
                left.plot(loads, [1e3 * r["p99"] for r in real], "o", color=colors[name])
                left.plot(
                    loads, [1e3 * r["p50"] for r in real], "o", color=colors[name], mfc="none"
                )
                right.plot(loads, [r["served_per_second"] for r in real], "o", color=colors[name])
        left.set(yscale="log", xlabel="load, % of capacity", ylabel="latency, ms", title=title)
        right.set(xlabel="load, % of capacity", ylabel="requests served a second", title=title)
        left.grid(alpha=0.3)
        right.grid(alpha=0.3)
        left.legend(fontsize=7)
        right.legend(fontsize=7)
    figure.suptitle("lines: simulated; dots: the real engine (filled p99, hollow p50)", fontsize=9)
    figure.savefig(path)
    plt.close(figure)


def plot_lengths(columns: dict[str, dict[int, float]], x: str, y: str, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2))
    tokens = sorted({n for found in columns.values() for n in found})
    for mixer, found in columns.items():
        lengths = sorted(found)
        axes.plot(
            lengths, [found[n] for n in lengths], marker="o", label=mixer, color=COLOURS[mixer]
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(tokens, [str(n) for n in tokens])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def plot_long_inputs(results: dict[str, Any], folder: Path) -> list[Path]:
    """One plot for each of encoder and decoder that was measured."""
    drawn = []
    if results.get("encoder"):
        drawn.append(folder / "long-encoder.svg")
        found = per_source_token(results["encoder"])
        plot_lengths(found, "source tokens", "µs per source token", drawn[-1])
    if results.get("decoder"):
        drawn.append(folder / "long-decoder.svg")
        plot_lengths(per_step(results["decoder"]), "target tokens", "ms per step", drawn[-1])
    return drawn


def draw(results: Path, out: Path) -> list[Path]:
    """Draws all that the folder has results of; the paths of the plots."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = []
    if (file := results / "batching.json").exists():
        drawn.append(out / "batching.svg")
        plot_batching(json.loads(file.read_text()), drawn[-1])
    if (file := results / "long-inputs.json").exists():
        drawn += plot_long_inputs(json.loads(file.read_text()), out)
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="folder of results of one machine")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plots")
    options = parser.parse_args()
    drawn = draw(options.results, options.out)
    if not drawn:
        print(f"{options.results} has no batching.json and no long-inputs.json", file=sys.stderr)
        return 1
    print(*drawn, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
