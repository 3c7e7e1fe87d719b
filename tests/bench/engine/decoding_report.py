"""The table of the decoding benchmark, and its targets beside the results."""

from __future__ import annotations

from statistics import median
from typing import Any

import machine

# The reference is the fastest of these at a setting: it decodes one sentence faster with one thread
# than with two, and perhaps a batch with two workers.
REFERENCE = "ctranslate2"
REFERENCES = (REFERENCE, "ctranslate2 workers")
OURS = "linnet dynamic"
MEGABYTE = 1 << 20
# Decoding speed of OURS over the reference's with the same compute type in the same run, at base
# size, on two cores: (compute, batch, beam) -> at least.
TARGETS = {
    ("int8", 32, 5): 2.0,
    ("float32", 32, 5): 1.15,
    ("int8", 32, 1): 1.5,
    ("int8", 1, 5): 2.5,
    ("int8", 1, 1): 2.0,
}
MAX_MEMORY = 150 * MEGABYTE  # above the reference


def reference_of(group: dict[str, Any]) -> str | None:
    """The fastest reference at this setting."""
    found = group["engines"]
    there = [name for name in REFERENCES if found.get(name, {}).get("rounds")]
    return max(there, key=lambda name: median(found[name]["rounds"]), default=None)


def ratio(group: dict[str, Any], engine: str) -> float | None:
    """Median over the rounds of the speed as a ratio to the reference in the same round."""
    reference = reference_of(group)
    one = group["engines"].get(engine, {}).get("rounds")
    if not one or reference is None:
        return None
    other = group["engines"][reference]["rounds"]
    return median(a / b for a, b in zip(one, other, strict=True))


def megabytes(engine: dict[str, Any], which: str) -> str:
    return f"{engine[which] / MEGABYTE:.0f}" if which in engine else "—"


def last(groups: list[dict[str, Any]], engine: str) -> dict[str, Any]:
    """The record of an engine in the last group that has it; memory covers all groups so far."""
    return next(
        (g["engines"][engine] for g in reversed(groups) if g["engines"][engine].get("rounds")), {}
    )


def row_of(name: str, groups: list[dict[str, Any]], notes: list[str]) -> str:
    cells = []
    for group in groups:
        engine = group["engines"][name]
        if "unavailable" in engine:
            if engine["unavailable"] not in notes:
                notes.append(engine["unavailable"])
            cells += [f"[{notes.index(engine['unavailable']) + 1}]", "—"]
            continue
        relative = ratio(group, name)
        speed = median(engine["rounds"])
        cells += [f"{speed:.0f}", "—" if relative is None else f"{relative:.2f}"]
    memory = last(groups, name)
    cells += [megabytes(memory, "peak_bytes"), megabytes(memory, "working_bytes")]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(compute: str, groups: list[dict[str, Any]]) -> list[str]:
    heads = ["engine"]
    for group in groups:
        heads += [f"batch {group['batch']} beam {group['beam']}", "ratio"]
    heads += ["peak MB", "working MB"]
    notes: list[str] = []
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    lines += [row_of(name, groups, notes) for name in groups[0]["engines"]]
    if notes:
        lines.append("")
        lines += [f"[{i}] {note}  " for i, note in enumerate(notes, 1)]
    return [f"## {compute}", "", *lines, ""]


def target_lines(groups: list[dict[str, Any]]) -> list[str]:
    """The lines of the targets; omits those whose group was not measured."""
    lines = []
    for (compute, batch, beam), wanted in TARGETS.items():
        for group in groups:
            if (group["compute"], group["batch"], group["beam"]) != (compute, batch, beam):
                continue
            reached = ratio(group, OURS)
            shown = "not measured" if reached is None else f"{reached:.2f}"
            met = "" if reached is None else ("yes" if reached >= wanted else "no")
            lines.append(
                f"| {compute}, batch {batch}, beam {beam} | ≥ {wanted:.2f} | {shown} | {met} |"
            )
    for compute in dict.fromkeys(group["compute"] for group in groups):
        own = [group for group in groups if group["compute"] == compute]
        if not {OURS, REFERENCE} <= set(own[0]["engines"]):
            continue
        ours, reference = last(own, OURS), last(own, REFERENCE)
        if ours and reference:
            more = ours["peak_bytes"] - reference["peak_bytes"]
            met = "yes" if more <= MAX_MEMORY else "no"
            limit = MAX_MEMORY // MEGABYTE
            lines.append(
                f"| {compute}, peak memory above {REFERENCE}'s | ≤ {limit} MB | "
                f"{more / MEGABYTE:.0f} MB | {met} |"
            )
    if not lines:
        return []
    head = [f"## Targets: {OURS} as a ratio to {REFERENCE}", ""]
    return [*head, "| | wanted | reached | met |", "|---|---:|---:|---|", *lines, ""]


def markdown(results: dict[str, Any]) -> str:
    sizes, groups = results["sizes"], results["groups"]
    labels = sorted(
        {
            engine["label"]
            for group in groups
            for name, engine in group["engines"].items()
            if "label" in engine and not name.startswith("linnet")
        }
    )
    lines = [
        f"# Decoding speed, {sizes['name']} size",
        "",
        f"Written by `tests/bench/run`. {machine.sentence(results['machine'])}; beside "
        f"{'; '.join(labels) or 'no other engine'}. Random weights, width {sizes['width']}, "
        f"{sizes['vocabulary']} tokens in the vocabulary, sources of {sizes['source']} and targets "
        f"of {sizes['target']} tokens, {results['rounds']} rounds in turn, all engines on all of "
        "the cores named. Speeds are target tokens of the best hypotheses per second, median of "
        f"the rounds; `ratio` is that to {REFERENCE} with the same compute type, be it one worker "
        "with all threads or workers with a thread and a part of the batch each, whichever is "
        "faster at the setting: median of the rounds' ratios. `peak` counts loading; `working` is "
        "what is resident afterwards.",
        "",
    ]
    if sizes["name"] == "base":
        lines += target_lines(groups)
    for compute in dict.fromkeys(group["compute"] for group in groups):
        lines += table(compute, [group for group in groups if group["compute"] == compute])
    return "\n".join(lines).rstrip() + "\n"
