"""Writes the tables of research/RESULTS.md that come from results of research/bench.

    .venv/bin/python research/bench/figures.py

The tables of comparisons are those of linnet_research.comparison.compare_report.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/bench"))
import machine  # noqa: E402
import time_to_loss  # noqa: E402
import training_speed  # noqa: E402
import trainings  # noqa: E402

RESULTS = ROOT / "research/results"
PAGE = ROOT / "research/RESULTS.md"
MARKED = re.compile(r"(<!-- figures (\S+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def result(name: str) -> Any:
    (path,) = RESULTS.glob(f"*/{name}.json")
    return json.loads(path.read_text())


def table(heads: list[str], rows: list[list[str]], *notes: str) -> str:
    return "\n".join(machine.table(heads, rows)) + "\n\n" + " ".join(notes)


def on(results: dict[str, Any]) -> str:
    return f"{machine.sentence(results['machine'])}."


def speed_of_training() -> str:
    results = result("training-speed")
    return table(training_speed.HEADS, training_speed.rows_of(results), on(results))


def time_to_a_loss() -> str:
    results = result("time-to-loss")
    note = f"Width {results['width']}, one thread; losses in nats a token."
    return table(time_to_loss.HEADS, time_to_loss.rows_of(results), note, on(results))


def trainings_at_equal_time() -> str:
    results = result("trainings")
    return table(trainings.HEADS, trainings.rows_of(results), trainings.note(results))


FIGURES: dict[str, Callable[[], str]] = {
    "time-to-loss": time_to_a_loss,
    "training-speed": speed_of_training,
    "trainings": trainings_at_equal_time,
}


def filled(page: str) -> str:
    """Returns the page with the tables of the results."""
    return MARKED.sub(lambda match: f"{match[1]}{FIGURES[match[2]]()}\n{match[3]}", page)


def main() -> int:
    PAGE.write_text(filled(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
