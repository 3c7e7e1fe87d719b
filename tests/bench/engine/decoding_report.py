"""The table of the decoding benchmark, and its targets beside the results."""

from __future__ import annotations

from statistics import median, quantiles
from typing import Any

import machine

# The reference is the fastest of these at a setting: it decodes one sentence faster with one thread
# than with two, and perhaps a batch with two workers.
REFERENCE = "ctranslate2"
REFERENCES = (REFERENCE, "ctranslate2 workers")
OURS = "linnet dynamic"
SAME_LAYERS = "linnet self_attention"  # linnet dynamic has an encoder layer more
MEBIBYTE = 1 << 20
# Decoding speed of OURS over the reference's with the same compute type in the same run, at base
# size, on two cores: (compute, batch, beam) -> at least, with AVX512-VNNI and with AMX. The median
# of the rounds must reach it, and their lower quartile nine tenths of it.
TARGETS = {
    ("int8", 32, 5): {"vnni": 2.5, "amx": 4.0},
    ("int8", 32, 1): {"vnni": 1.8, "amx": 2.5},
    ("int8", 1, 5): {"vnni": 3.0, "amx": 3.0},
    ("int8", 1, 1): {"vnni": 2.4, "amx": 2.4},
    ("float32", 32, 5): {"vnni": 1.5, "amx": 1.5},
    ("float32", 32, 1): {"vnni": 1.5, "amx": 1.5},
}
NAMES = {"vnni": "AVX512-VNNI", "amx": "AMX"}
QUARTILE_SHARE = 0.9
MAX_INT8_RESIDENT = 320 * MEBIBYTE  # after loading; in float32 the reference's


def reference_of(group: dict[str, Any]) -> str | None:
    """The fastest reference at this setting."""
    found = group["engines"]
    there = [name for name in REFERENCES if found.get(name, {}).get("rounds")]
    return max(there, key=lambda name: median(found[name]["rounds"]), default=None)


def ratios(group: dict[str, Any], engine: str) -> list[float]:
    """The speed as a ratio to the reference in the same round, of the rounds that have both."""
    reference = reference_of(group)
    one = group["engines"].get(engine, {}).get("rounds", [])
    if reference is None:
        return []
    return [a / b for a, b in zip(one, group["engines"][reference]["rounds"], strict=False)]


def ratio(group: dict[str, Any], engine: str) -> float | None:
    """The median of `ratios`."""
    return median(ratios(group, engine) or [0]) or None


def lower_quartile(values: list[float]) -> float:
    return quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]


def mebibytes(engine: dict[str, Any], which: str) -> str:
    return f"{engine[which] / MEBIBYTE:.0f}" if which in engine else "—"


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
    cells += [mebibytes(memory, "peak_bytes"), mebibytes(memory, "working_bytes")]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(compute: str, groups: list[dict[str, Any]]) -> list[str]:
    heads = ["engine"]
    for group in groups:
        heads += [f"batch {group['batch']} beam {group['beam']}", "ratio"]
    heads += ["peak MiB", "working MiB"]
    notes: list[str] = []
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    lines += [row_of(name, groups, notes) for name in groups[0]["engines"]]
    if notes:
        lines.append("")
        lines += [f"[{i}] {note}  " for i, note in enumerate(notes, 1)]
    return [f"## {compute}", "", *lines, ""]


def column_of(results: dict[str, Any]) -> str:
    """The targets of the results' machine: "amx", "vnni", or "" if it has neither."""
    features = results["machine"]["features"]
    flags = {"amx_int8": "amx", "avx512_vnni": "vnni"}
    return next((name for flag, name in flags.items() if flag in features), "")


def speed_lines(results: dict[str, Any]) -> list[str]:
    """The targets of speed; omits those whose group was not measured."""
    column, groups = column_of(results), results["groups"]
    lines = []
    for (compute, batch, beam), wanted in TARGETS.items():
        for group in groups:
            if (group["compute"], group["batch"], group["beam"]) != (compute, batch, beam):
                continue
            cells = [f"{compute}, batch {batch}, beam {beam}"]
            cells += [f"≥ {wanted[name]:.2f}" for name in NAMES]
            found = ratios(group, OURS)
            if found and column:
                middle, low = median(found), lower_quartile(found)
                met = middle >= wanted[column] and low >= QUARTILE_SHARE * wanted[column]
                cells += [f"{middle:.2f}", f"{low:.2f}", "yes" if met else "no"]
            else:
                cells += ["not measured", "", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def target_lines(results: dict[str, Any]) -> list[str]:
    """The lines of the targets; none if no target of speed was measured."""
    column, groups = column_of(results), results["groups"]
    lines = speed_lines(results)
    if not lines:
        return []
    head = ["| | with VNNI | with AMX | median | lower quartile | met |", "|---|" + "---:|" * 5]
    other = [NAMES[name] for name in NAMES if name != column]
    note = f"Not measured on this machine: the targets with {' and '.join(other)}."
    title = f"## Targets: {OURS} as a ratio to {REFERENCE}"
    return [title, "", *head, *lines, "", note, "", *memory_lines(groups), *bfloat16_lines(groups)]


def first(groups: list[dict[str, Any]], compute: str, engine: str) -> dict[str, Any]:
    """The record of an engine in the first group of a type: after the smallest setting."""
    own = (group["engines"].get(engine, {}) for group in groups if group["compute"] == compute)
    return next((found for found in own if found.get("rounds")), {})


def memory_lines(groups: list[dict[str, Any]]) -> list[str]:
    """The resident memory after loading, beside its target."""
    lines = []
    for compute, name, what in (
        ("int8", OURS, "resident MiB after loading"),
        ("float32", OURS, "resident MiB after loading"),
        ("float32", SAME_LAYERS, f"resident MiB with self-attention, the layers of {REFERENCE}"),
    ):
        ours, theirs = first(groups, compute, name), first(groups, compute, REFERENCE)
        if not ours or not theirs:
            continue
        limit = MAX_INT8_RESIDENT if compute == "int8" else theirs["working_bytes"]
        met = "yes" if ours["working_bytes"] <= limit else "no"
        cells = [mebibytes(ours, "working_bytes"), f"{limit / MEBIBYTE:.0f}", met]
        lines.append(f"| {compute}, {what} | {' | '.join(cells)} |")
    return (
        ["| memory | reached | at most | met |", "|---|---:|---:|---|", *lines, ""] if lines else []
    )


def bfloat16_lines(groups: list[dict[str, Any]]) -> list[str]:
    """The speed in bfloat16, which is to be float32's at least."""
    speeds = {
        (g["compute"], g["batch"], g["beam"]): median(g["engines"][OURS]["rounds"])
        for g in groups
        if g["engines"].get(OURS, {}).get("rounds")
    }
    lines = []
    for (compute, batch, beam), speed in speeds.items():
        if compute == "bfloat16" and ("float32", batch, beam) in speeds:
            share = speed / speeds["float32", batch, beam]
            met = "yes" if share >= 1 else "no"
            lines.append(f"| batch {batch}, beam {beam} | {share:.2f} | 1.00 | {met} |")
    head = ["| bfloat16 over float32 | reached | at least | met |", "|---|---:|---:|---|"]
    return [*head, *lines, ""] if lines else []


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
        f"of {sizes['target']} tokens, {results['rounds']} rounds in turn (engines other than "
        f"{OURS} and {REFERENCE} three), all on all of the cores named; rounds in which a fixed "
        f"loop changed its time by more than {results['max_drift']:.0%} do not count. Speeds are "
        "target tokens of the best hypotheses per second, median of "
        f"the rounds; `ratio` is that to {REFERENCE} with the same compute type, be it one worker "
        "with all threads or workers with a thread and a part of the batch each, whichever is "
        "faster at the setting: median of the rounds' ratios. `peak` counts loading; `working` is "
        "what is resident after the last setting, the targets' memory after the first.",
        "",
    ]
    if sizes["name"] == "base":
        lines += target_lines(results)
    for compute in dict.fromkeys(group["compute"] for group in groups):
        lines += table(compute, [group for group in groups if group["compute"] == compute])
    return "\n".join(lines).rstrip() + "\n"
