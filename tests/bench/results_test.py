"""The reports in results/ are those that their scripts write from the JSON beside them."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import committed
import figures  # noqa: F401  # adds the folders of the scripts to the path
import pytest

REPORTS = sorted(committed.RESULTS.glob("*/*.md"))
MODULES = {
    "decoding": "decoding_report",
    "gpu": "report",
}  # the others are named after their result


def module_of(name: str) -> str:
    """The script of a result: decoding-big and profile-step-batch-1 have that of the default."""
    name = re.sub(r"-(answers|big|earlier|float32|batch-\d+)$", "", name)
    return MODULES.get(name, name.replace("-", "_"))


@pytest.mark.parametrize("report", REPORTS, ids=lambda it: f"{it.parent.name}/{it.name}")
def test_report_is_that_of_its_json(report: Path):
    module = importlib.import_module(module_of(report.stem))
    written = module.markdown(json.loads(report.with_suffix(".json").read_text()))
    assert report.read_text() == written
    for script in re.findall(r"`(tests/bench/[^`]+)`", written):
        assert (committed.ROOT / script).is_file()


def test_objectives_that_contradict_each_other_are_refused():
    def run(objective_ms: int, rate: float, p99: float):
        late = {"p50": 1.0, "p99": p99}
        return {"objective_ms": objective_ms, "calls_per_second": rate, "latency_ms": late}

    capacity = importlib.import_module("capacity")
    capacity.check_objectives([run(100, 31, 99), run(200, 67, 180), run(500, 90, 450)])
    with pytest.raises(ValueError, match=r"67\.0 calls/s had a p99 of 98 ms.* for 100 ms"):
        capacity.check_objectives([run(100, 31, 99), run(200, 67, 98)])


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("decoding-big", "decoding_report"),
        ("profile-step-batch-1", "profile_step"),
        ("profile-step-float32", "profile_step"),
        ("memory-floor", "memory_floor"),
        ("gpu-earlier", "report"),
        ("gpu-answers", "report"),
    ],
)
def test_variant_of_a_result_has_the_same_script(name: str, module: str):
    assert module_of(name) == module
