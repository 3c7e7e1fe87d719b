"""Writes the tables of measured figures into the pages, from the committed results.

    .venv/bin/python tests/bench/figures.py

A page holds a table between `<!-- figures NAME -->` and `<!-- end of figures -->`. figures_test.py
compares the tables with the results. Outside of them it refuses numbers with units of measurement,
except in the lines that it lists: limits, defaults, goals, examples.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from itertools import product
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

for folder in ("engine", "security", "server"):
    sys.path.insert(0, str(Path(__file__).resolve().parent / folder))
import beams  # noqa: E402
import capacity  # noqa: E402
import compute_types as by_type  # noqa: E402
import decoding_report  # noqa: E402
import families  # noqa: E402
import gpu_figures  # noqa: E402
import machine  # noqa: E402
import memory_floor as floor  # noqa: E402
import one_connection  # noqa: E402
import profile_step  # noqa: E402
import real_models  # noqa: E402
import server_overhead  # noqa: E402
import unauthenticated  # noqa: E402
from committed import RESULTS, ROOT, on, on_context, result, table  # noqa: E402

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
    return f"{table(heads, rows)}\n\nRatios are medians of the rounds. {on(results)}"


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
    return f"{table(heads, rows)}\n\n{of}. {on(results)}"


def profile_of_a_step() -> str:
    """The shares of both types side by side."""
    profiles = [result("profile-step"), result("profile-step-float32")]
    columns = [dict(profile_step.shares(one)) for one in profiles]
    rows = [[kind, *(column.get(kind, "–") for column in columns)] for kind in columns[0]]
    heads = ["share of the time", *(one["compute"] for one in profiles)]
    notes = [f"{one['compute']}: {profile_step.gemm_speed(one)} {on(one)}" for one in profiles]
    return "\n\n".join([table(heads, rows), *notes])


def inner_loop() -> str:
    results = result("inner-loop")
    rows = [[step, f"{seconds:.1f} s"] for step, seconds in results["cpu_seconds"].items()]
    return f"{table(['CPU time, preset dev', ''], rows)}\n\n{on(results)}"


def memory() -> str:
    results = result("decoding")
    rows = []
    for compute in ("float32", "int8"):
        groups = [group for group in results["groups"] if group["compute"] == compute]
        for name in (decoding_report.OURS, decoding_report.REFERENCE):
            found = decoding_report.last(groups, name)
            sizes = [decoding_report.mebibytes(found, f"{it}_bytes") for it in ("working", "peak")]
            rows.append([f"{compute}, {name}", *sizes])
    return f"{table(['MiB', 'working', 'peak'], rows)}\n\n{on(results)}"


def memory_floor() -> str:
    results = result("memory-floor")
    return f"{table(floor.HEADS, floor.rows_of(results))}\n\n{on(results)}"


def compute_types() -> str:
    """The results of all machines: not every processor has every type."""
    heads = ["compared with float32", "change", "answers worded differently"]
    parts = []
    for path in sorted(RESULTS.glob("*/compute-types.json")):
        results, rows = json.loads(path.read_text()), []
        for test in results["tests"]:
            for compute in by_type.types_of(test):
                found, base = test[compute], test["float32"]
                changes = [
                    f"{name} {value - base['measures'][name]:+.2f}"
                    for name, value in found["measures"].items()
                ]
                other = f"{found['other_answers'] / test['rows']:.0%}"
                what = f"{test['bundle']}, {test['domain']}, {compute}"
                rows.append([what, ", ".join(changes), other])
        parts.append(f"{table(heads, rows)}\n\n{on(results)}")
    return "\n\n".join(parts)


def whole_table(name: str, heads: list[str], rows: Callable[[Any], list[list[str]]]) -> str:
    """All rows of a result, with its machine."""
    results = result(name)
    return f"{table(heads, rows(results))}\n\n{on(results)}"


def imported_models() -> str:
    results = result("families")
    rows = families.rows_of(results)
    note = f"Random weights, {results['compute']}, {results['threads']} threads, beam 5."
    return f"{table(families.HEADS, rows)}\n\n{note} {on(results)}"


def attack() -> str:
    results = result("attack")
    resident, polite = results["resident_mb"], results["polite"]
    rows = [
        ["resident memory, idle", f"{resident['idle']} MB"],
        ["resident memory, median under attack", f"{resident['median']} MB"],
        ["resident memory, highest", f"{resident['max']} MB"],
        ["limit of the memory", f"{results['limit_bytes'] / 1e6:.0f} MB"],
        ["calls of the normal client answered", f"{polite['answered']}"],
        ["its median latency", f"{polite['median_seconds']:.1f} s"],
    ]
    heads = [f"{results['seconds'] / 60:.0f} minutes", ""]
    return f"{table(heads, rows)}\n\n{on(results)}"


def unauthenticated_beyond_goal() -> str:
    results = result("unauthenticated")
    rows, direct = [], []
    for row in results["rows"]:
        if row["server"] != "proxy":
            direct.append(row)
        if unauthenticated.beyond_goal(row):
            cost = [f"{row['kib']:.1f}", f"{row['milliseconds']:.1f}", f"{row['open']}"]
            name = f"{row['attack']}, {unauthenticated.KINDS[row['server']]}"
            rows.append([name, *cost, unauthenticated.commit_of(row, results)])
    memory = max(direct, key=lambda row: row["kib"])
    cpu = max(direct, key=lambda row: row["milliseconds"])
    connections = results["settings"]["connections"]
    heads = ["beyond the goal", "KiB", "ms of CPU", f"open of {connections}", "Linnet"]
    ours = [
        f"{row['attack']}, Linnet {unauthenticated.commit_of(row, results)}"
        for row in (memory, cpu)
    ]
    note = (
        f"Without a proxy the most is {memory['kib']:.1f} KiB ({ours[0]}) and "
        f"{cpu['milliseconds']:.1f} ms ({ours[1]})."
    )
    return f"{table(heads, rows)}\n\n{note} {machine.hardware(results['machine'])}."


def soak() -> str:
    results = result("soak")
    growth, low, high = (f"{results[key]:+.1%}" for key in ("per_hour", "low", "high"))
    rows = [
        ["resident memory at the end", f"{results['resident_bytes'] / 1e6:.0f} MB"],
        ["its growth in an hour", f"{growth} ({low} to {high})"],
    ]
    heads = [f"{results['minutes']:.0f} minutes", ""]
    return f"{table(heads, rows)}\n\n{on(results)}"


def calls_of_one_connection() -> str:
    results = result("one-connection")
    growth, slower = one_connection.changes(results)
    rows = [
        ["memory a call", f"{growth:.1f} bytes"],
        ["CPU time of a call, the last compared with the first", f"{slower:.2f} ×"],
    ]
    heads = [f"{one_connection.total_of(results):,} calls of two tokens on one connection", ""]
    return f"{table(heads, rows)}\n\n{on(results)}"


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
    return f"{table(heads, rows)}\n\n{plan['workers']:,} workers. {on(results)}"


def language_check() -> str:
    results = json.loads((RESULTS / "language-check.json").read_text())
    rows = []
    for language, found in results["total"].items():
        kind = "wrong" if language == results["reads"] else "right"
        counts = [f"{found['texts']:,}", f"{found['warned']:,} {kind} ones"]
        rows.append([f"{language}, for a model that reads {results['reads']}", *counts])
    heads = ["lines of the test sets", "lines", "warnings"]
    return f"{table(heads, rows)}\n\nLinnet {results['version']}."


def prose() -> str:
    results = json.loads((RESULTS / "prose.json").read_text())
    named = {
        "messages-test-en": "messages written as tests",
        "messages-en": "messages written for training",
        "points-en": "points written for training",
    }
    rows = [
        [named.get(name, f"files: {name}"), f"{found['texts']:,}", f"{found['warned']:,}"]
        for kind in ("prose", "other")
        for name, found in results[kind].items()
    ]
    notes = f"Linnet {results['version']}."
    return f"{table(['texts', 'number', 'with a warning'], rows)}\n\n{notes}"


def projection() -> str:
    results = json.loads((RESULTS / "projection.json").read_text())
    named = {
        "linnet": "Linnet",
        "bergamot": "the rule of Bergamot",
        "text_nodes": "each text node translated alone",
    }
    rows = [
        [name, *(f"{results[way][key]:.1f}" for key in ("precision", "recall", "f1"))]
        for way, name in named.items()
    ]
    heads = ["tags over words, %", "precision", "recall", "F1"]
    notes = f"{results['lines']:,} lines, {results['bundle']}, Linnet {results['version']}."
    return f"{table(heads, rows)}\n\n{notes}"


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
    return f"{table(heads, rows)}\n\n{notes} {results['bundle']}. {on(results)}"


def summary_rules() -> str:
    results = json.loads((RESULTS / "summary-rules.json").read_text())
    rows = [
        [style, str(it["texts"]), str(it["changed"])]
        + [
            " / ".join(f"{score:.1f}" for score in it[key].values())
            for key in ("without_rules", "with_rules")
        ]
        for style, it in results["styles"].items()
    ]
    heads = ["ROUGE-1 / 2 / L", "messages", "answers that differ", "without", "with the rules"]
    notes = f"en-summary {results['bundle']}, Linnet {results['version']}."
    return f"{table(heads, rows)}\n\n{notes}"


def sentences() -> str:
    results = json.loads((RESULTS / "sentences.json").read_text())
    names = ["icu", "moses", "pysbd", "linnet"]
    rows = []
    for language, found in results["languages"].items():
        scores = [found["f1"][name] for name in names]
        cells = ["" if score is None else f"{score:.1f}" for score in scores]
        rows.append([language, f"{found['boundaries']:,}", *cells])
    mean = results["means"]
    peers = [f"{mean[name]['peer']:.1f}" for name in names[:-1]]
    rows.append(["mean of the languages that it knows", "", *peers, f"{mean['icu']['linnet']:.1f}"])
    same = [f"{mean[name]['linnet']:.1f}" for name in names[:-1]]
    rows.append(["Linnet in the same languages", "", *same, f"{mean['icu']['linnet']:.1f}"])
    heads = ["F1 of boundaries, %", "boundaries", "ICU", "Moses", "pysbd", "Linnet"]
    peers_of = results["peers"]
    notes = f"Moses: {peers_of['moses']}, {peers_of['pysbd']}, Linnet {results['version']}."
    return f"{table(heads, rows)}\n\n{notes}"


def detection() -> str:
    results = json.loads((RESULTS / "detection.json").read_text())
    names = {
        "linnet": "Linnet",
        "cld2": "CLD2",
        "cld2-best-effort": "CLD2, best effort",
        "gcld3": "gcld3",
        "langid": "langid",
        "fasttext": "fastText lid.176.ftz",
        "lingua": "lingua",
    }
    rows = [
        [name, *(f"{share:.1f}" for share in results[key].values())]
        for key, name in names.items()
        if key in results
    ]
    sure = results["linnet_reliable"].values()
    rows.append(["Linnet: is sure", *(f"{each['reliable']:.1f}" for each in sure)])
    rows.append(["Linnet: right if sure", *(f"{each['right_if_reliable']:.1f}" for each in sure)])
    cases = [case.replace(" characters, ", "/") for case in results["linnet"]]
    heads = ["per cent of texts", *(case.replace(" languages", "") for case in cases)]
    return (
        f"{table(heads, rows)}\n\n{results['texts']:,} texts in {len(results['languages'])} "
        f"languages. Linnet {results['version']}."
    )


def fetched_model() -> str:
    results = result("real-models")
    rows = table(["one thread", *real_models.HEADS[1:]], real_models.rows_of(results))
    return f"{rows}\n\n{results['lines']} everyday lines. {on(results)}"


def differences() -> str:
    """The counts of docs/DIFFERENCES.md."""
    results = json.loads((RESULTS / "differences.json").read_text())
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
    return f"{table(['', 'Linnet', *peers], rows)}\n\n{on(results)}"


def step_while_many_wait() -> str:
    results = result("batcher")
    rows = []
    for it in results["benchmarks"]:
        waiting, clients = (int(word.rpartition(":")[2]) for word in it["name"].split("/")[1:3])
        name = f"{waiting:,} waiting, {clients} client{'s' if clients != 1 else ''}"
        rows.append([name, f"{it['examined']:.1f}", f"{it['real_time']:.1f} µs"])
    heads = ["a step of the batcher without its engine", "sequences examined", "time"]
    return f"{table(heads, rows)}\n\n{on_context(results)}"


def alignments() -> str:
    """Shares of right alignments of the step that chooses the token, per decoder layer."""
    results = result("words")
    found = [row for row in results["alignments"]["rows"] if not row["next_step"]]
    layers = sorted({row["layer"] for row in found})
    kinds = {"aligned words": "word pairs", "same words": "identical words"}
    share = {(row["layer"], row["kind"]): f"{row['share']:.1%}" for row in found}
    rows = [[f"{layer}", *(share[layer, kind] for kind in kinds)] for layer in layers]
    counts = [f"{name} ({results['alignments']['pairs'][kind]:,})" for kind, name in kinds.items()]
    return f"{table(['decoder layer', *counts], rows)}\n\n{results['bundle']}. {on(results)}"


def glossaries() -> str:
    results = result("words")
    rows = [
        [
            f"beam {row['beam']}, {row['terms']:,} terms, at most {row['max_terms']} in a sentence",
            *(f"{row[key]:.0%}" for key in ("met_without", "met")),
            *(f"{row[key]:.1f}" for key in ("bleu_without", "bleu")),
        ]
        for row in results["glossaries"]
    ]
    heads = ["", "in the answer without glossary", "with it", "BLEU without", "with it"]
    count = f"{results['sentences']:,} sentences"
    return f"{table(heads, rows)}\n\n{results['bundle']}, {count}. {on(results)}"


def refused_connections() -> str:
    limits = {"BM_RefusalAtTheLimitOfAll": "all", "BM_RefusalAtTheLimitOfAnAddress": "its address"}
    results = result("connections")
    rows = []
    for it in results["benchmarks"]:
        name, _, count = it["name"].partition("/open:")
        rows.append([f"{int(count):,} open, limit of {limits[name]}", f"{it['real_time']:.0f} ns"])
    return f"{table(['one more connection is refused', ''], rows)}\n\n{on_context(results)}"


def robustness() -> str:
    results = result("robustness")

    def row(what: str, run: dict[str, Any], *counts: str) -> list[str]:
        lasted = f", {run['seconds'] / 60:.0f} minutes" if "seconds" in run else ""
        return [what + lasted, ", ".join(f"{run[it]:,} {it}" for it in counts), run["version"]]

    rows = [row(f"fuzz target {name}", run, "inputs") for name, run in results["fuzz"].items()]
    rows += [
        row("connections of any bytes to a server", results["transport"], "inputs"),
        row("imports of damaged checkpoints", results["imports"], "models"),
        row("translations of any characters", results["unicode"], "texts"),
        row("deterministic simulation", results["simulation"], "calls", "restarts", "reloads"),
    ]
    heads = ["without a failure", "", "Linnet"]
    return f"{table(heads, rows)}\n\n{machine.hardware(results['machine'])}."


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
    return f"{table(heads, rows)}\n\n{on(results)}"


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
    return f"{table(heads, rows)}\n\n{notes}"


FIGURES: dict[str, Callable[[], str]] = {
    "alignments": alignments,
    "attack": attack,
    "beam-sizes": lambda: whole_table("beams", ["float32", *beams.COLUMNS], beams.table_rows),
    "calls-of-one-connection": calls_of_one_connection,
    "capacity-example": capacity_example,
    "capacity-one": lambda: capacity_table("one"),
    "capacity-search": lambda: capacity_table("search"),
    "capacity-two": lambda: capacity_table("two"),
    "compute-types": compute_types,
    "corpus-costs": corpus_costs,
    "decoding-beam-5": decoding_beam_5,
    "fetched-model": fetched_model,
    "first-start": first_start,
    "glossaries": glossaries,
    **gpu_figures.FIGURES,
    "imported-models": imported_models,
    "inner-loop": inner_loop,
    "differences": differences,
    "language-check": language_check,
    "detection": detection,
    "memory": memory,
    "memory-floor": memory_floor,
    "overhead": overhead,
    "profile-of-a-step": profile_of_a_step,
    "refused-connections": refused_connections,
    "robustness": robustness,
    "markup-cost": markup_cost,
    "projection": projection,
    "prose": prose,
    "sentences": sentences,
    "summary-rules": summary_rules,
    "soak": soak,
    "step-while-many-wait": step_while_many_wait,
    "unauthenticated-beyond-goal": unauthenticated_beyond_goal,
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
