"""Writes the tables of measured figures into the pages, from the committed results.

    .venv/bin/python tests/bench/figures.py

A page holds a table between `<!-- figures NAME -->` and `<!-- end of figures -->`. figures_test.py
compares the tables with the results. Outside of them it refuses numbers with units of measurement,
except in the lines that it lists: limits, defaults, goals, examples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import product
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

for folder in ("engine", "server"):
    sys.path.insert(0, str(Path(__file__).resolve().parent / folder))
import beams  # noqa: E402
import capacity  # noqa: E402
import decoding_report  # noqa: E402
import families  # noqa: E402
import gpu_figures  # noqa: E402
import memory_floor as floor  # noqa: E402
import profile_step  # noqa: E402
import quality_figures  # noqa: E402
import real_models  # noqa: E402
import security_figures  # noqa: E402
import server_overhead  # noqa: E402
from committed import ROOT, on, on_context, result, table  # noqa: E402

PAGES = (
    *("README.md", "SECURITY.md", "CONTRIBUTING.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md")),
    *("client/python/README.md", "tests/bench/README.md", "tests/bench/results/quality.md"),
)
MARKED = re.compile(r"(<!-- figures (\S+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def decoding_beam_5() -> str:
    results = result("decoding")
    rows = []
    for group in results["groups"]:
        ours, reference = decoding_report.OURS, decoding_report.reference_of(group)
        share = decoding_report.ratio(group, ours)
        if share is None or reference is None or group["beam"] != 5:
            continue
        speeds = [median(group["engines"][name]["rounds"]) for name in (ours, reference)]
        rows.append(
            [
                f"{group['compute']}, {group['batch']} at a time, beam {group['beam']}",
                *(f"{speed:.0f}" for speed in speeds),
                f"{share:.1f} ×",
            ]
        )
    heads = ["target tokens a second", "Linnet, engine alone", "CTranslate2", "ratio"]
    return table(heads, rows, f"Ratios are medians of the rounds. {on(results)}")


def overhead() -> str:
    """The throughput and latency through the server, compared with those of its engine."""
    results = result("server-overhead")
    places = {"apart": "on a core each", "all": "both on all cores"}
    cases = [*results["load"], *results["alone"]]
    beams = sorted({case["beam"] for case in cases})
    types = sorted({case["compute"] for case in cases})

    kinds: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
        "load": ("throughput at full load", lambda it: f"{server_overhead.share_of(it):.0%}"),
        "alone": (
            "latency of one short sentence",
            lambda it: f"{server_overhead.added_ms(it):+.1f} ms",
        ),
    }
    rows = []
    for (what, (name, cell)), cores, compute in product(kinds.items(), places, types):
        measured = [it for it in results[what] if (it["cores"], it["compute"]) == (cores, compute)]
        found = {it["beam"]: cell(it) for it in measured}
        of_type = f", {compute}" if len(types) > 1 else ""
        if found:
            cells = [found.get(beam, "–") for beam in beams]
            rows.append([f"{name}, {places[cores]}{of_type}", *cells])
    heads = ["server, compared with its engine alone", *(f"beam {beam}" for beam in beams)]
    of = ", ".join([results["bundle"], *(types if len(types) == 1 else [])])
    return table(heads, rows, f"{of}. {on(results)}")


def profile_of_a_step() -> str:
    """The shares of both types side by side."""
    profiles = [result("profile-step"), result("profile-step-float32")]
    columns = [dict(profile_step.shares(one)) for one in profiles]
    rows = [[kind, *(column.get(kind, "–") for column in columns)] for kind in columns[0]]
    heads = ["share of the time", *(one["compute"] for one in profiles)]
    notes = [f"{one['compute']}: {profile_step.gemm_speed(one)} {on(one)}" for one in profiles]
    return table(heads, rows, *notes)


def inner_loop() -> str:
    results = result("inner-loop")
    rows = [[step, f"{seconds:.1f} s"] for step, seconds in results["cpu_seconds"].items()]
    return table(["CPU time, preset dev", ""], rows, on(results))


def memory() -> str:
    results = result("decoding")
    rows = []
    for compute in ("float32", "int8"):
        groups = [group for group in results["groups"] if group["compute"] == compute]
        for name in (decoding_report.OURS, decoding_report.REFERENCE):
            found = decoding_report.last(groups, name)
            sizes = [decoding_report.mebibytes(found, f"{it}_bytes") for it in ("working", "peak")]
            rows.append([f"{compute}, {name}", *sizes])
    return table(["MiB", "working", "peak"], rows, on(results))


def whole_table(name: str, heads: list[str], rows: Callable[[Any], list[list[str]]]) -> str:
    """All rows of a result, with its machine."""
    results = result(name)
    return table(heads, rows(results), on(results))


def imported_models() -> str:
    results = result("families")
    rows = families.rows_of(results)
    note = f"Random weights, {results['compute']}, {results['threads']} threads, beam 5."
    return table(families.HEADS, rows, f"{note} {on(results)}")


def corpus_costs() -> str:
    """What the chunks of a job mean for many workers."""
    results = result("corpus-costs")
    plan = results["plan"]
    rows = [
        [
            f"{each['chunk_rows']:,}",
            f"{each['writes_a_second'] + each['reads_a_second']:,.0f}",
            f"{each['lost_by_a_kill_seconds']:.0f} s",
            f"{100 * each['last_chunk_share_of_job']:g} %",
        ]
        for each in plan["chunks"]
    ]
    heads = ["rows of a chunk", "store requests a second", "lost by a kill"]
    heads.append(f"last chunk of {plan['rows']:,} rows")
    return table(heads, rows, f"{plan['workers']:,} workers. {on(results)}")


def markup_cost() -> str:
    results = result("markup-cost")
    named = {
        "plain": "plain text",
        "blocks": "HTML without inline tags",
        "elements": "HTML, an inline element in each sentence",
        "alignments": "plain text with alignments",
    }
    over = {"plain": 1.0, **results["over_plain"]}
    rows = [
        [name, f"{results['cpu_ms_per_sentence'][way]:.1f} ms", f"{100 * (over[way] - 1):+.0f} %"]
        for way, name in named.items()
    ]
    heads = [f"beam {results['beam']}", "CPU per sentence", "over plain text"]
    notes = f"Medians of {results['rounds']} pairs of {results['sentences']} sentences."
    return table(heads, rows, f"{notes} {results['bundle']}. {on(results)}")


def fetched_model() -> str:
    results = result("real-models")
    heads = ["one thread", *real_models.HEADS[1:]]
    note = f"{results['lines']} everyday lines. {on(results)}"
    return table(heads, real_models.rows_of(results), note)


def differences() -> str:
    """The counts of docs/DIFFERENCES.md."""
    results = result("differences")
    versions, sources = results["versions"], results["sources"]
    ours, theirs = results["linnet"], results["ctranslate2"]
    hf, rust = results["transformers"], results["tokenizers"]
    total = f"of {sources}"
    rows = [
        [
            f"answers and scores with the same bits alone and in a batch, float32, {total}",
            str(ours["identical_float32"]),
            str(theirs["identical_float32"]),
            str(hf["identical_float32"]),
        ],
        [
            f"the same in int8, {total}",
            str(ours["identical_int8"]),
            str(theirs["identical_int8"]),
            "–",
        ],
        [
            f"the same with a shortlist, float32, {total}",
            str(ours["shortlist_identical"]),
            str(theirs["shortlist_identical"]),
            "–",
        ],
        [
            f"answers with a token that only other texts of the batch list, {total}",
            str(ours["shortlist_foreign"]),
            str(theirs["shortlist_foreign"]),
            "–",
        ],
        [
            f"texts that are read alike composed and decomposed, of {results['marked']}",
            str(ours["read_alike"]),
            "–",
            f"{rust['read_alike']} (tokenizers {versions['tokenizers']})",
        ],
        [
            f"typed names of control tokens read as such, of {hf['control_texts']}",
            str(ours["control_tokens_read"]),
            "–",
            str(hf["control_tokens_read"]),
        ],
    ]
    peers = [f"{name} {versions[name]}" for name in ("ctranslate2", "transformers")]
    return table(["", "Linnet", *peers], rows, on(results))


def step_while_many_wait() -> str:
    results = result("batcher")
    rows = []
    for it in results["benchmarks"]:
        waiting, clients = (int(word.rpartition(":")[2]) for word in it["name"].split("/")[1:3])
        name = f"{waiting:,} waiting, {clients} client{'s' if clients != 1 else ''}"
        rows.append([name, f"{it['examined']:.1f}", f"{it['real_time']:.1f} µs"])
    heads = ["a step of the batcher without its engine", "sequences examined", "time"]
    return table(heads, rows, on_context(results))


def first_start() -> str:
    results = result("first-start")
    rows = []
    for way, found in results["ways"].items():
        compiling = found["compile_seconds"]
        rows.append(
            [
                f"`{way}`",
                f"{found['seconds'] / 60:.1f} min",
                "–" if compiling is None else f"{compiling / 60:.1f} min",
            ]
        )
    heads = ["command", "time to the answer", "of it compiling"]
    return table(heads, rows, on(results))


def capacity_table(part: str) -> str:
    return capacity.TABLES[part](result("capacity"))


def capacity_example() -> str:
    """Counts the replicas that some loads need, by the formula of the page and the measurement."""
    tokens_of_a_call, share, cores = 44, 0.8, 64
    capacity_of_one = round(result("capacity")["one"]["capacity"]["target_tokens_per_second"])
    rows = []
    for calls in (2_000, 1_000_000):
        needed = calls * tokens_of_a_call
        replicas = ceil(needed / (capacity_of_one * share))
        cells = (calls, needed, replicas, ceil(replicas / cores))
        rows.append([f"{cell:,}" for cell in cells])
    heads = [
        f"calls/s of {tokens_of_a_call} target tokens each",
        "target tokens/s",
        "replicas of one core, without spares",
        f"machines of {cores} such cores",
    ]
    notes = f"One replica has {capacity_of_one:,} target tokens/s, at a share of {share}."
    return table(heads, rows, notes)


FIGURES: dict[str, Callable[[], str]] = {
    **gpu_figures.FIGURES,
    **quality_figures.FIGURES,
    **security_figures.FIGURES,
    "beam-sizes": lambda: whole_table("beams", ["float32", *beams.COLUMNS], beams.table_rows),
    "capacity-example": capacity_example,
    "capacity-one": lambda: capacity_table("one"),
    "capacity-search": lambda: capacity_table("search"),
    "capacity-two": lambda: capacity_table("two"),
    "corpus-costs": corpus_costs,
    "decoding-beam-5": decoding_beam_5,
    "fetched-model": fetched_model,
    "first-start": first_start,
    "imported-models": imported_models,
    "inner-loop": inner_loop,
    "differences": differences,
    "memory": memory,
    "memory-floor": lambda: whole_table("memory-floor", floor.HEADS, floor.rows_of),
    "overhead": overhead,
    "profile-of-a-step": profile_of_a_step,
    "markup-cost": markup_cost,
    "step-while-many-wait": step_while_many_wait,
}


def filled(page: str) -> str:
    """The page with the tables of the results."""

    def replace(match: re.Match[str]) -> str:
        return f"{match[1]}{FIGURES[match[2]]()}\n{match[3]}"

    return MARKED.sub(replace, page)


def main() -> int:
    for name in PAGES:
        page = ROOT / name
        page.write_text(filled(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
