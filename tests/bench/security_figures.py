"""The tables of figures of attacks, long runs and refusals (figures.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "security"))
import machine
import one_connection
import unauthenticated
from committed import on, on_context, result, table


def attack() -> str:
    results = result("attack")
    resident, polite = results["resident_mb"], results["polite"]
    rows = [
        ["resident memory, idle", f"{resident['idle']} MB"],
        ["resident memory, median under attack", f"{resident['median']} MB"],
        ["resident memory, highest", f"{resident['max']} MB"],
        ["limit of the memory", f"{results['limit_bytes'] / 1e6:.0f} MB"],
        ["calls of the normal client answered", f"{polite['answered']}"],
        ["its median latency", f"{polite['median_seconds']:.1f} s"],
    ]
    heads = [f"{results['seconds'] / 60:.0f} minutes", ""]
    return table(heads, rows, on(results))


def unauthenticated_beyond_goal() -> str:
    results = result("unauthenticated")
    rows, direct = [], []
    for row in results["rows"]:
        if row["server"] != "proxy":
            direct.append(row)
        if unauthenticated.beyond_goal(row):
            cost = [f"{row['kib']:.1f}", f"{row['milliseconds']:.1f}", f"{row['open']}"]
            name = f"{row['attack']}, {unauthenticated.KINDS[row['server']]}"
            rows.append([name, *cost, unauthenticated.commit_of(row, results)])
    memory = max(direct, key=lambda row: row["kib"])
    cpu = max(direct, key=lambda row: row["milliseconds"])
    connections = results["settings"]["connections"]
    heads = ["beyond the goal", "KiB", "ms of CPU", f"open of {connections}", "Linnet"]
    ours = [
        f"{row['attack']}, Linnet {unauthenticated.commit_of(row, results)}"
        for row in (memory, cpu)
    ]
    note = (
        f"Without a proxy the most is {memory['kib']:.1f} KiB ({ours[0]}) and "
        f"{cpu['milliseconds']:.1f} ms ({ours[1]})."
    )
    return table(heads, rows, f"{note} {machine.hardware(results['machine'])}.")


def soak() -> str:
    results = result("soak")
    growth, low, high = (f"{results[key]:+.1%}" for key in ("per_hour", "low", "high"))
    rows = [
        ["resident memory at the end", f"{results['resident_bytes'] / 1e6:.0f} MB"],
        ["its growth in an hour", f"{growth} ({low} to {high})"],
    ]
    heads = [f"{results['minutes']:.0f} minutes", ""]
    return table(heads, rows, on(results))


def calls_of_one_connection() -> str:
    results = result("one-connection")
    growth, slower = one_connection.changes(results)
    rows = [
        ["memory a call", f"{growth:.1f} bytes"],
        ["CPU time of a call, the last compared with the first", f"{slower:.2f} ×"],
    ]
    heads = [f"{one_connection.total_of(results):,} calls of two tokens on one connection", ""]
    return table(heads, rows, on(results))


def refused_connections() -> str:
    limits = {"BM_RefusalAtTheLimitOfAll": "all", "BM_RefusalAtTheLimitOfAnAddress": "its address"}
    results = result("connections")
    rows = []
    for it in results["benchmarks"]:
        name, _, count = it["name"].partition("/open:")
        rows.append([f"{int(count):,} open, limit of {limits[name]}", f"{it['real_time']:.0f} ns"])
    return table(["one more connection is refused", ""], rows, on_context(results))


def robustness() -> str:
    results = result("robustness")

    def row(what: str, run: dict[str, Any], *counts: str) -> list[str]:
        lasted = f", {run['seconds'] / 60:.0f} minutes" if "seconds" in run else ""
        return [what + lasted, ", ".join(f"{run[it]:,} {it}" for it in counts), run["version"]]

    rows = [row(f"fuzz target {name}", run, "inputs") for name, run in results["fuzz"].items()]
    rows += [
        row("connections of any bytes to a server", results["transport"], "inputs"),
        row("imports of damaged checkpoints", results["imports"], "models"),
        row("translations of any characters", results["unicode"], "texts"),
        row("deterministic simulation", results["simulation"], "calls", "restarts", "reloads"),
    ]
    heads = ["without a failure", "", "Linnet"]
    return table(heads, rows, f"{machine.hardware(results['machine'])}.")


FIGURES: dict[str, Callable[[], str]] = {
    "attack": attack,
    "calls-of-one-connection": calls_of_one_connection,
    "refused-connections": refused_connections,
    "robustness": robustness,
    "soak": soak,
    "unauthenticated-beyond-goal": unauthenticated_beyond_goal,
}
