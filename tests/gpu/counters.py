"""Measures the kernels of one decoder step with ncu's hardware counters."""

from __future__ import annotations

import csv
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from session import Case, Setup, with_package

METRICS = {
    "gpu__time_duration.sum": "us",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM %",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "SM %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %",
    "launch__registers_per_thread": "registers",
}
TO_US = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}


def command(setup: Setup, model: str, rows: int) -> list[str]:
    return [
        *("ncu", "--clock-control", "none", "--target-processes", "application-only"),
        *("--nvtx", "--nvtx-include", "step/", "--csv", "--page", "raw"),
        *("--metrics", ",".join(METRICS)),
        *(sys.executable, str(Path(__file__).with_name("step_profile.py")), "--once"),
        *(model, str(rows), str(setup.library.resolve())),
    ]


def parse(output: str) -> list[dict[str, Any]]:
    """Returns a row for each kernel in ncu's CSV, the mean of its launches. Line 2 has the
    units."""
    start = output.index('"ID"')
    units, *launches = list(csv.DictReader(output[start:].splitlines()))
    kernels: dict[str, list[dict[str, str]]] = {}
    for launch in launches:
        kernels.setdefault(launch["Kernel Name"], []).append(launch)
    rows = []
    for kernel, same in kernels.items():
        row: dict[str, Any] = {"kernel": kernel[:90], "launches": len(same)}
        for metric, name in METRICS.items():
            scale = TO_US[units[metric]] if name == "us" else 1.0
            values = [float(launch[metric].replace(",", "")) * scale for launch in same]
            row[name] = round(sum(values) / len(values), 1)
        rows.append(row)
    return sorted(rows, key=lambda row: -row["us"] * row["launches"])


def count(setup: Setup, model: str, rows: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        command(setup, model, rows), capture_output=True, text=True, env=with_package(), check=False
    )
    if done.returncode or '"ID"' not in done.stdout:
        raise RuntimeError(
            f"ncu ended with {done.returncode}: {(done.stderr or done.stdout)[-800:]}"
        )
    return [{"model": model, "rows": rows} | row for row in parse(done.stdout)]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    if setup.dry:
        yield "command", lambda: [{"command": " ".join(command(setup, "big", 160))}]
        return
    for rows in (160, 5):
        yield f"big, {rows} rows", functools.partial(count, setup, "big", rows)
