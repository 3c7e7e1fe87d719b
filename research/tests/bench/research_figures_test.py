"""The tables of RESULTS.md and the reports are those of the committed results."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "research/bench/figures.py"
spec = importlib.util.spec_from_file_location("research_figures", SCRIPT)
assert spec is not None
assert spec.loader is not None
figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figures)

REPORTS = sorted(figures.RESULTS.glob("*/*.md"))


def test_tables_are_those_of_the_results():
    page = figures.PAGE.read_text()
    assert page == figures.filled(page), "run research/bench/figures.py"
    assert {match[2] for match in figures.MARKED.finditer(page)} == set(figures.FIGURES)


@pytest.mark.parametrize("report", REPORTS, ids=lambda it: f"{it.parent.name}/{it.name}")
def test_report_is_that_of_its_json(report: Path):
    module = importlib.import_module(report.stem.replace("-", "_"))
    text = report.with_suffix(".json").read_text()
    assert "-dirty" not in text, "a result must say which code it measured"
    written = module.markdown(json.loads(text))
    assert report.read_text() == written
    for script in re.findall(r"`(research/bench/[^`]+)`", written):
        assert (ROOT / script).is_file()


def test_findings_have_a_row_for_each_section_of_the_results():
    page = figures.PAGE.read_text()
    sections = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    named = re.findall(r"\]\(#([\w-]+)\) \|$", page, re.MULTILINE)
    assert named == [re.sub(r"[^\w -]", "", it).lower().replace(" ", "-") for it in sections]
