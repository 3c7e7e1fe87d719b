"""The plot of README.md shows the committed results."""

from __future__ import annotations

import json
from typing import Any

import decoding_plot


def group(batch: int, beam: int, ours: float, one: float, workers: float) -> dict[str, Any]:
    rounds = {"linnet dynamic": ours, "ctranslate2": one, "ctranslate2 workers": workers}
    engines = {name: {"rounds": [speed]} for name, speed in rounds.items()}
    return {"compute": "int8", "batch": batch, "beam": beam, "engines": engines}


def test_committed_plot_is_drawn_from_the_results() -> None:
    results = json.loads(decoding_plot.RESULTS.read_text())
    assert decoding_plot.PLOT.read_text() == decoding_plot.draw(results), (
        "run tests/bench/decoding_plot.py"
    )


def test_bars_compare_with_the_faster_way_of_the_peer() -> None:
    results = {"groups": [group(1, 1, 9, 9, 9), group(1, 5, 400, 50, 100), group(32, 5, 800, 7, 3)]}
    assert decoding_plot.speeds(results) == [
        ("int8, batch 1", 400, 100),
        ("int8, batch 32", 800, 7),
    ]
    drawn = decoding_plot.draw(results)
    assert 'width="200"' in drawn  # half of the longest bar
    assert ">800</text>" in drawn
