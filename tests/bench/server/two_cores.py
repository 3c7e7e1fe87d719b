"""The command lines of benchmarks that keep a server and its clients on two cores."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
from drift import Unsteady, add_max_drift

ROOT = Path(__file__).resolve().parents[3]


def parser(about: str | None, seconds: float, rounds: int) -> argparse.ArgumentParser:
    """The options that all have; `seconds` and `rounds` are defaults."""
    found = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = found.add_argument
    add("--bundle", type=Path, default=ROOT / "model/bundles/en-de", metavar="DIR")
    add("--source", default="en", metavar="LANGUAGE", help="of the bundle [en]")
    add("--target", default="de", metavar="LANGUAGE", help="of the bundle [de]")
    add("--seconds", type=float, default=seconds, metavar="N", help="of a round [%(default)s]")
    add("--rounds", type=int, default=rounds, metavar="N", help="[%(default)s]")
    add_max_drift(found)
    add("--programs", type=Path, default=ROOT / "build/release/bin", metavar="DIR",
        help="folder of the programs [build/release/bin]")  # fmt: skip
    return found


def parsed(options: argparse.ArgumentParser, words: list[str] | None) -> argparse.Namespace:
    """The options of a run that can begin."""
    found = machine.parse(options, words)
    if len(os.sched_getaffinity(0)) < 2:
        options.error("two cores are needed: one for the engine and one for everything else")
    return found


def facts(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What a result says of its run: the machine, the bundle, and the options with these names."""
    return {
        "machine": machine.facts(),
        "bundle": machine.bundle_name(options.bundle),
        **{name: getattr(options, name) for name in (*names, "max_drift")},
    }


def cpu_seconds(process: int) -> float:
    """The processor time of a process and of those that its main thread started."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own + sum(cpu_seconds(int(one)) for one in started)


def steady(measure: Callable[[], Any]) -> Any:
    """What `measure` returns. Exits if the machine's speed changed too often."""
    try:
        return measure()
    except Unsteady as error:
        raise SystemExit(f"error: {error}") from error
