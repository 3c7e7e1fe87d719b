"""Collects facts of the machine, the commit and torch for the report."""

from __future__ import annotations

import datetime
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import torch
from session import ROOT, Case, Setup


def first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout.splitlines() or [None])[0]


def commit_of(portable: Path | None) -> str:
    """Returns the commit of the portable folder, or without one that of the checkout."""
    if portable is not None and (portable / "commit").exists():
        return (portable / "commit").read_text().strip()
    return first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]) or "unknown"


def facts(setup: Setup) -> dict[str, object]:
    found: dict[str, object] = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit_of(setup.portable),
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)),
    }
    if setup.dry:
        return {"device": "dry run", **found}
    properties = torch.cuda.get_device_properties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return {
        "device": properties.name,
        "driver": first_line(query) or "unknown",
        "compute capability": f"{properties.major}.{properties.minor}",
        "memory GiB": round(properties.total_memory / 2**30, 1),
        "L2 MiB": round(properties.L2_cache_size / 2**20),
        "cuda": torch.version.cuda,
        **found,
    }


def cases(setup: Setup, part: str) -> Iterator[Case]:
    yield "machine", lambda: [facts(setup)]
