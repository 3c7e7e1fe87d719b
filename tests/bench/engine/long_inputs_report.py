"""Tables of the cost of long texts."""

from __future__ import annotations

from statistics import median
from typing import Any

import machine

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
    """Kilobytes of peak memory per token beyond the shortest source."""
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
    """Milliseconds per step up to each length of the target."""
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


def report(results: dict[str, Any]) -> str:
    """Returns the tables of the measured parts."""
    lines = [
        f"# Long inputs, {results['size']} size, {results['compute']}",
        "",
        "Written by `tests/bench/engine/long_inputs.py`. "
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
    if results.get("decoder"):
        steps = per_step(results["decoder"])
        lines += ["## Decoder", "", f"ms per step at beam {results['beam']}: of one target, the "]
        lines[-1] += "median of the steps up to a length and beyond the next shorter one:"
        lines += ["", *table("target tokens", steps, digits=2)]
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
    return "\n".join(lines).rstrip() + "\n"
