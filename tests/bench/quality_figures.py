"""The tables of figures of the quality of answers (figures.py)."""

from __future__ import annotations

import json
from collections.abc import Callable

import compute_types as by_type
from committed import RESULTS, on, result, table


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
        parts.append(table(heads, rows, on(results)))
    return "\n\n".join(parts)


def language_check() -> str:
    results = result("language-check")
    rows = []
    for language, found in results["total"].items():
        kind = "wrong" if language == results["reads"] else "right"
        counts = [f"{found['texts']:,}", f"{found['warned']:,} {kind} ones"]
        rows.append([f"{language}, for a model that reads {results['reads']}", *counts])
    heads = ["lines of the test sets", "lines", "warnings"]
    return table(heads, rows, on(results))


def prose() -> str:
    results = result("prose")
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
    return table(["texts", "number", "with a warning"], rows, on(results))


def projection() -> str:
    results = result("projection")
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
    return table(heads, rows, notes)


def summary_rules() -> str:
    results = result("summary-rules")
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
    return table(heads, rows, notes)


def sentences() -> str:
    results = result("sentences")
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
    return table(heads, rows, notes)


def detection() -> str:
    results = result("detection")
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
    note = f"{results['texts']:,} texts in {len(results['languages'])} languages."
    return table(heads, rows, f"{note} Linnet {results['version']}.")


def alignments() -> str:
    """Shares of right alignments of the step that chooses the token, per decoder layer."""
    results = result("words")
    found = [row for row in results["alignments"]["rows"] if not row["next_step"]]
    layers = sorted({row["layer"] for row in found})
    kinds = {"aligned words": "word pairs", "same words": "identical words"}
    share = {(row["layer"], row["kind"]): f"{row['share']:.1%}" for row in found}
    rows = [[f"{layer}", *(share[layer, kind] for kind in kinds)] for layer in layers]
    counts = [f"{name} ({results['alignments']['pairs'][kind]:,})" for kind, name in kinds.items()]
    return table(["decoder layer", *counts], rows, f"{results['bundle']}. {on(results)}")


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
    return table(heads, rows, f"{results['bundle']}, {count}. {on(results)}")


FIGURES: dict[str, Callable[[], str]] = {
    "alignments": alignments,
    "compute-types": compute_types,
    "detection": detection,
    "glossaries": glossaries,
    "language-check": language_check,
    "projection": projection,
    "prose": prose,
    "sentences": sentences,
    "summary-rules": summary_rules,
}
