"""Reads committed results, for the tables of the pages (figures.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/bench/results"
MACHINE = "amd-epyc-2-cores-vnni"


def result(name: str) -> Any:
    """The result of MACHINE, of another one if it was not measured there, or of no machine."""
    file = f"{name}.json"
    found = [RESULTS / MACHINE / file, *sorted(RESULTS.glob(f"*/{file}")), RESULTS / file]
    return json.loads(next(path for path in found if path.exists()).read_text())


def table(heads: list[str], rows: list[list[str]], *notes: str) -> str:
    """A table with notes below it."""
    return "\n\n".join(["\n".join(machine.table(heads, rows)), *notes])


def on(results: dict[str, Any]) -> str:
    """The machine and the version of a result; the version alone if it has no times."""
    if "machine" not in results:
        return f"Linnet {results['version']}."
    return f"{machine.sentence(results['machine'])}."


def on_context(results: dict[str, Any]) -> str:
    """The same of a program of Google Benchmark."""
    context = results["context"]
    return f"{context['cpu']}, {context['num_cpus']} cores, Linnet {context['version']}."
