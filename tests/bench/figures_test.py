"""Measured figures in the pages are those of the committed results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import committed
import figures
import pytest
import security_figures

# Numbers with these units are measured, unless they are limits, defaults, goals, or a paper's.
MEASURED = re.compile(
    r"\d[\d.,]* ?(tok/s|tokens/s|tokens a second|calls/s|calls a second|ms|µs|us|milliseconds"
    r"|s|seconds|minutes|hours|nats|chrF|ROUGE"
    r"|[KMG]i?B|bytes|%|BLEU|×(?! ?\w))(?![\w/])|\b\d{1,3}(,\d{3})+\b"
    # The same in words. `half` and `a third` alone are seldom measured.
    r"|\b(a few|some|several) (percent|seconds|minutes|hours)\b|\babout a (mega|giga)byte\b"
    r"|\b(\d+(\.\d+)? times|several times|twice|half) as (fast|large|long|many|much|slow)"
    r"|\bby (half|a third|a quarter|a tenth)\b|\b(half|a third|a quarter) of the \w+"
    r"|\bfar (faster|larger|longer|slower|smaller)\b"
)
# Pages of defaults and limits, which other tests compare with the program.
OF_THE_PROGRAM = ("ERRORS", "LIMITS", "METRICS", "RECIPE_OPTIONS", "SETTINGS")
# Page -> parts of lines that may hold such numbers, and what they are.
ALLOWED = {
    "README.md": {"installs more (5 GB)": "a size"},
    "SECURITY.md": {
        "(twice as much with memory": "a bound",
        "within 5 milliseconds": "a bound",
        "The goal is that an attacker": "the goal",
        "with a timeout of 1.5 seconds": "a setting",
        "20 ms of CPU each": "what the tests assert",
        "and 32 KiB each beyond": "a bound",
        "by more than 2 % an hour": "the goal",
    },
    "client/python/README.md": {"max bytes of an answer": "a default"},
    "docs/ADMINISTRATION.md": {
        "without a deadline gets 300 seconds": "a limit",
        "takes 4 bytes": "what a result takes, by its types",
        "reserves 128 KiB": "a limit",
        "much work as about 4 KiB of prose": "the size of a slice",
        "then after 1, 2, 4 and 8 seconds": "delays",
    },
    "docs/API.md": {"Without one a call gets": "a default and a limit"},
    "docs/CAPACITY.md": {
        "99 % of all calls": "an objective",
        "at a scrape each 15 s": "a setting",
    },
    "docs/COMMAND_LINE.md": {
        "nothing was answered for 10 minutes": "limits",
        "Calls of arguments have 60 seconds": "a limit",
    },
    "docs/DEPLOYMENT.md": {"calls have at most 30 seconds": "a default"},
    "docs/GPU.md": {"a record of 32 bytes": "a type"},
    "docs/HTTP.md": {
        "256 files and 1 GiB": "limits",
        "more than 8190 bytes": "a limit of aiohttp",
        "A request over 4 MB": "gRPC's limit",
    },
    "docs/LOAD.md": {"90 % of all calls": "an objective"},
    "docs/MODELS.md": {
        "(6,000 and 8,000 tokens)": "sizes of vocabularies",
    },
    "docs/REPLICAS.md": {
        "health check (0.3 s)": "settings of the balancers",
        "99.9 % of calls do not fail": "objectives",
        "summaries end within 2 seconds": "the same",
    },
    "docs/RUNBOOKS.md": {
        "more than 95 %": "a limit",
        "ore than 5 %": "the limits of alerts",
        "more than 1.44 % in an hour": "the same",
        "0.6 % in six hours": "the same",
        "in the last 30 minutes (ticket)": "the same",
        "More than 72 % of Translate": "the same",
        "The objective, 5 %": "an objective",
    },
    "docs/SERVING_MODELS.md": {
        "after about 1000 bytes": "a limit",
        "takes 4 bytes for": "what a result takes, by its types",
    },
    "docs/SUMMARIES.md": {"in the first 64 KiB": "a limit"},
    "docs/THREATS.md": {
        "16 KiB, from the first frame on": "a limit",
        "or with a distant one | 300 seconds": "a limit",
        "of which 20 seconds at most": "a limit",
        "32 KiB of unparsed header": "a bound",
        "one for each 2 KiB": "a bound",
        "16 KiB each of": "a bound",
        "except for 32 KiB of each": "a bound",
        "16 KiB and four times its headers": "a bound",
    },
    "docs/TRANSLATION.md": {
        "8 KiB": "a limit",
        "256 entries of 256 bytes": "limits",
        "`1,234.56`": "an example",
    },
    "tests/bench/README.md": {
        "calls with deadlines of": "settings",
        "sequences wait |": "a setting",
        "are open |": "a setting",
        "twice as many calls in flight": "a setting",
    },
}


def unmarked(page: str) -> str:
    """The page without its tables of figures, those of linnet-compare, and its code."""
    page = figures.MARKED.sub("", page)
    page = re.sub(r"<!-- (\S+-(?:cpu|cuda)) -->.*?<!-- end of \1 -->", "", page, flags=re.DOTALL)
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", page)


@pytest.mark.parametrize("name", figures.PAGES)
def test_tables_are_those_of_the_results(name: str):
    page = (committed.ROOT / name).read_text()
    assert page == figures.filled(page), "run tests/bench/figures.py"


@pytest.mark.parametrize(
    "name", [name for name in figures.PAGES if Path(name).stem not in OF_THE_PROGRAM]
)
def test_no_figure_stands_outside_of_the_tables(name: str):
    allowed = ALLOWED.get(name, {})
    found = [
        line
        for line in unmarked((committed.ROOT / name).read_text()).splitlines()
        if MEASURED.search(line) and not any(part in line for part in allowed)
    ]
    assert found == []


def test_every_allowed_line_is_on_its_page():
    for name, allowed in ALLOWED.items():
        page = (committed.ROOT / name).read_text()
        assert [part for part in allowed if part not in page] == [], name


def test_every_table_is_on_a_page():
    planned = {"first-start"}  # tests/deploy/first_start.py takes an hour; not measured yet
    pages = "".join((committed.ROOT / name).read_text() for name in figures.PAGES)
    assert {match[2] for match in figures.MARKED.finditer(pages)} | planned == set(figures.FIGURES)


def test_figure_outside_of_a_table_is_found():
    table = "<!-- figures memory -->\n| 12 ms |\n<!-- end of figures -->\n"
    page = f"{table}`--wait 5 ms`\nIt takes 3 ms, 40 KiB and 0.8 % of 9,483 lines.\n"
    found = [m[0] for m in MEASURED.finditer(unmarked(page))]
    assert found == ["3 ms", "40 KiB", "0.8 %", "9,483"]


@pytest.mark.parametrize(
    "claim",
    [
        "It takes 2 hours, 40 % of that 12 s.",
        "It was trained for a few hours.",
        "It is a few percent of the step.",
        "LibTorch is half of the image.",
        "The image is about a gigabyte.",
        "The other one is several times as large.",
        "Speed varies by a third.",
        "Drawing takes far longer than applying.",
        "That is 0.3 nats or 1.2 chrF.",
    ],
)
def test_figure_in_words_is_found(claim: str):
    assert MEASURED.search(claim)


def test_count_and_limit_in_words_are_no_figures():
    page = "A third language, half of what is free, twice a second, in several models, at twice."
    assert not MEASURED.search(page)


def test_maximum_has_the_commit_of_its_row(monkeypatch: pytest.MonkeyPatch):
    def row(attack: str, kib: float, milliseconds: float, **more: str) -> dict[str, Any]:
        costs = {"kib": kib, "milliseconds": milliseconds, "open": 0}
        return {"attack": attack, "server": "open", **costs, **more}

    results = {
        "machine": {"cpu": "X", "cores": 2, "features": ["avx2"], "version": "new"},
        "settings": {"connections": 500},
        "rows": [row("resets", 3.0, 1.0, linnet="old"), row("floods", 1.0, 2.0)],
    }
    monkeypatch.setattr(security_figures, "result", lambda name: results)
    (line,) = [
        it for it in security_figures.unauthenticated_beyond_goal().splitlines() if "most" in it
    ]
    assert line == (
        "Without a proxy the most is 3.0 KiB (resets, Linnet old) and 2.0 ms (floods, Linnet new). "
        "X, 2 cores (avx2)."
    )


def test_each_long_run_has_its_commit(monkeypatch: pytest.MonkeyPatch):
    one, other = {"seconds": 601, "version": "new"}, {"seconds": 1200, "version": "old"}
    results: dict[str, Any] = {
        "machine": {"cpu": "X", "cores": 2, "features": ["avx2"]},
        "fuzz": {"request": {"inputs": 1000, **one}},
        "transport": {"inputs": 5, **one},
        "imports": {"models": 14_000, **other},
        "unicode": {"texts": 7, **one},
        "simulation": {"calls": 4000, "restarts": 2, "reloads": 1, "version": "new"},
    }
    monkeypatch.setattr(security_figures, "result", lambda name: results)
    lines = security_figures.robustness().splitlines()
    assert lines[2] == "| fuzz target request, 10 minutes | 1,000 inputs | new |"
    assert "| imports of damaged checkpoints, 20 minutes | 14,000 models | old |" in lines
    last = "| deterministic simulation | 4,000 calls, 2 restarts, 1 reloads | new |"
    assert lines[6:] == [last, "", "X, 2 cores (avx2)."]
    del results["imports"]
    with pytest.raises(KeyError):
        security_figures.robustness()


def test_overhead_has_rows_of_each_type(monkeypatch: pytest.MonkeyPatch):
    def case(compute: str, cores: str, beam: int, server: float) -> dict[str, Any]:
        key = {"compute": compute, "cores": cores, "beam": beam}
        return {**key, "offline": [10.0], "server": [server]}

    results = {
        "machine": {"cpu": "X", "cores": 2, "features": ["avx2"], "version": "new"},
        "bundle": "m",
        "load": [case("float32", "apart", 1, 9.0), case("float32", "apart", 5, 8.0)],
        "alone": [case("float32", "all", 1, 11.0)],
    }
    monkeypatch.setattr(figures, "result", lambda name: results)
    assert figures.overhead().splitlines()[2:] == [
        "| throughput at full load, on a core each | 90% | 80% |",
        "| latency of one short sentence, both on all cores | +1.0 ms | – |",
        "",
        "m, float32. X, 2 cores (avx2), Linnet new.",
    ]
    results["load"].append(case("int8", "apart", 5, 7.0))
    assert figures.overhead().splitlines()[2:5] == [
        "| throughput at full load, on a core each, float32 | 90% | 80% |",
        "| throughput at full load, on a core each, int8 | – | 70% |",
        "| latency of one short sentence, both on all cores, float32 | +1.0 ms | – |",
    ]


def test_example_of_capacity_is_of_the_measured_replica(monkeypatch: pytest.MonkeyPatch):
    results = {"one": {"capacity": {"target_tokens_per_second": 1000.4}}}
    monkeypatch.setattr(figures, "result", lambda name: results)
    lines = figures.capacity_example().splitlines()
    assert lines[2:4] == [
        "| 2,000 | 88,000 | 110 | 2 |",
        "| 1,000,000 | 44,000,000 | 55,000 | 860 |",
    ]
    assert lines[-1] == "One replica has 1,000 target tokens/s, at a share of 0.8."


def test_results_come_from_a_commit():
    """A result must say which code it measured."""
    dirty = [
        str(path.relative_to(committed.ROOT))
        for path in sorted(committed.RESULTS.glob("*/*.*"))
        if "-dirty" in path.read_text()
    ]
    assert dirty == []
