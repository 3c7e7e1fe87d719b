"""Runs latencies.cu: what bounds a step of few rows on this GPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from decode import decoder_of
from session import Case, Setup


def measure(setup: Setup) -> list[dict[str, Any]]:
    assert setup.portable is not None
    command = [str(setup.portable / "bin/gpu_latencies")]
    done = subprocess.run(
        command, env=decoder_of(setup).environment(), text=True, capture_output=True, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        if setup.dry and "no GPU" in done.stderr:
            return [{"benchmark": "none", "error": "there is no GPU"}]
        raise RuntimeError(f"gpu_latencies ended with {done.returncode}: {done.stderr[-800:]}")
    return rows


def cases(setup: Setup, part: str) -> Iterator[Case]:
    assert setup.portable is not None
    if (setup.portable / "bin/gpu_latencies").exists():
        yield "latencies", lambda: measure(setup)
