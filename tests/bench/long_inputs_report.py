"""Tables and plots of what long texts cost."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import machine
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "linnet"  # the same file from the same numbers

COLOURS = {"dynamic": "#0072b2", "light": "#56b4e9", "self_attention": "#d55e00"}
Part = dict[str, dict[str, list[dict[str, float]]]]  # mixer -> tokens -> a measurement per round


def medians(part: Part, what: str) -> dict[str, dict[int, float]]:
    return {
        mixer: {int(n): median(run[what] for run in runs) for n, runs in lengths.items()}
        for mixer, lengths in part.items()
    }


def per_source_token(part: Part) -> dict[str, dict[int, float]]:
    """Microseconds: the encoder and one decoder step, divided by the source's tokens."""
    times = medians(part, "seconds")
    return {m: {n: 1e6 * t / n for n, t in found.items()} for m, found in times.items()}


def memory_per_token(part: Part) -> dict[str, dict[int, float]]:
    """Kilobytes of the peak that each token more than in the shortest source has cost."""
    peaks = medians(part, "peak_bytes")
    result = {}
    for mixer, found in peaks.items():
        shortest = min(found)
        result[mixer] = {
            n: (peak - found[shortest]) / (n - shortest) / 1024
            for n, peak in found.items()
            if n > shortest
        }
    return result


def per_step(part: Part) -> dict[str, dict[int, float]]:
    """Milliseconds of a step at the targets' later ends."""
    times = medians(part, "step_seconds")
    return {m: {n: 1e3 * t for n, t in found.items()} for m, found in times.items()}


def table(heading: str, columns: dict[str, dict[int, float]], digits: int = 1) -> list[str]:
    tokens = sorted({n for found in columns.values() for n in found})
    lines = [
        f"| {heading} | " + " | ".join(f"{n:,}" for n in tokens) + " |",
        "|---" + "|---:" * len(tokens) + "|",
    ]
    for mixer, found in columns.items():
        cells = [f"{found[n]:.{digits}f}" if n in found else "—" for n in tokens]
        lines.append(f"| {mixer} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def operator_lines(cases: list[dict[str, Any]]) -> list[str]:
    def of(name: str, case: dict[str, Any]) -> dict[str, Any]:
        return next(
            c
            for c in cases
            if (c["operator"], c["tokens"], c["bits"]) == (name, case["tokens"], case["bits"])
        )

    lines = [
        "| operator | tokens | type | GB/s | of a copy's | GFLOP/s |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for case in cases:
        if case["operator"] == "copy":
            continue
        kind = "float32" if case["bits"] == 32 else "bfloat16"
        share = case["bytes_per_second"] / of("copy", case)["bytes_per_second"]
        lines.append(
            f"| {case['operator']} | {case['tokens']:,} | {kind} | "
            f"{case['bytes_per_second'] / 1e9:.2f} | {100 * share:.0f} % | "
            f"{case['flop_per_second'] / 1e9:.0f} |"
        )
    return [*lines, ""]


def plot(columns: dict[str, dict[int, float]], x: str, y: str, path: Path) -> None:
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
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def write_report(results: dict[str, Any], folder: Path) -> str:
    """Writes long-inputs.md and the plots of the parts that there are; returns the text."""
    lines = [
        f"# Long inputs, {results['size']} size, {results['compute']}",
        "",
        "Written by `tests/bench/long_inputs.py`. "
        f"{machine.sentence(results['machine'])}. One sentence at a time, random weights; the "
        "mixers differ in nothing else but one more layer of the convolutional encoders.",
        "",
    ]
    if results.get("encoder"):
        found = per_source_token(results["encoder"])
        lines += ["## Encoder", "", "µs per source token, one decoder step counted:", ""]
        lines += table("source tokens", found)
        lines += ["Kilobytes of peak memory per token above the shortest source's:", ""]
        lines += table("source tokens", memory_per_token(results["encoder"]))
        lines += ["![Time per source token](long-encoder.svg)", ""]
        plot(found, "source tokens", "µs per source token", folder / "long-encoder.svg")
    if results.get("decoder"):
        steps = per_step(results["decoder"])
        lines += ["## Decoder", "", f"ms per step at beam {results['beam']}: of one target, the "]
        lines[-1] += "median of the steps up to a length and beyond the next shorter one:"
        lines += ["", *table("target tokens", steps, digits=2)]
        lines += ["![Time per step](long-decoder.svg)", ""]
        plot(steps, "target tokens", "ms per step", folder / "long-decoder.svg")
    if results.get("operators"):
        lines += [
            "## Operators",
            "",
            "The convolutions at 512 channels, 8 heads and width 31 on one long sequence. Bytes "
            "are those that must be read and written (dynamic_conv reads its taps as well); the "
            "copy moves inputs to outputs.",
            "",
            *operator_lines(results["operators"]),
        ]
    text = "\n".join(lines).rstrip() + "\n"
    (folder / "long-inputs.md").write_text(text)
    return text
