"""Measured figures in the pages are those of the committed results."""

from __future__ import annotations

import re

import figures
import pytest

# Numbers with these units are measured, unless they are limits, defaults, or a paper's.
MEASURED = re.compile(
    r"\d[\d.,]* ?(tok/s|tokens/s|tokens a second|calls/s|calls a second|ms|µs|us|MB|GB|BLEU"
    r"|×(?! ?\w))(?![\w/])|\b\d+(\.\d+)? times as (fast|many)"
)
# Page -> parts of lines that may hold such numbers, and what they are.
ALLOWED = {
    "SECURITY.md": {
        "The goal is that an attacker": "the bound that the table of results is held to"
    },
    "tests/bench/README.md": {"calls with deadlines of": "a setting"},
}


def unmarked(page: str) -> str:
    """The page without its tables of figures and its code."""
    page = figures.MARKED.sub("", page)
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", page)


@pytest.mark.parametrize("name", figures.PAGES)
def test_tables_are_those_of_the_results(name: str):
    page = (figures.ROOT / name).read_text()
    assert page == figures.filled(page), "run tests/bench/figures.py"


@pytest.mark.parametrize("name", figures.PAGES)
def test_no_figure_stands_outside_of_the_tables(name: str):
    allowed = ALLOWED.get(name, {})
    found = [
        line
        for line in unmarked((figures.ROOT / name).read_text()).splitlines()
        if MEASURED.search(line) and not any(part in line for part in allowed)
    ]
    assert found == []


def test_figure_outside_of_a_table_is_found():
    table = "<!-- figures memory -->\n| 12 ms |\n<!-- end of figures -->\n"
    page = f"{table}`--wait 5 ms`\nIt takes 3 ms.\n"
    assert [m[0] for m in MEASURED.finditer(unmarked(page))] == ["3 ms"]


def test_results_come_from_a_commit():
    """A result must say which code it measured."""
    dirty = [
        str(path.relative_to(figures.ROOT))
        for path in sorted(figures.RESULTS.glob("*/*.*"))
        if "-dirty" in path.read_text()
    ]
    assert dirty == []
