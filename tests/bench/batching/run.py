#!/usr/bin/env python3
"""Continuous batching beside static batching with a time-out and beside one request at a time.

Measures what the calls of an engine cost, simulates the three disciplines on an engine of these
costs (and on one of assumed costs, as a GPU may have them), then lets the real engine serve the
same requests. Writes results/MACHINE/batching.{json,md}. About five minutes.

  tests/bench/batching/run.py --bundle model/bundles/en-de
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench"))

import machine  # noqa: E402

Run = dict[str, Any]
LOADS = "10,20,30,40,50,60,70,80,90,100,110,120"
DISCIPLINES = ("continuous", "static", "one at a time")
# Assumed, not measured: calls and steps whose time hardly depends on their size.
ASSUMED = {"call": 2.5e-3, "token": 2e-6, "step": 1.5e-3, "row": 2e-6}
ASSUMED_SEQUENCES = 128


def line(x: list[float], y: list[float]) -> tuple[float, float]:
    """Start and slope of the line with the least squares of relative errors."""
    weights = 1 / np.array(y)
    columns = np.stack([np.ones(len(x)), np.array(x)], 1) * weights[:, None]
    start, slope = np.linalg.lstsq(columns, np.ones(len(y)), rcond=None)[0]
    return float(start), float(slope)


def fit_costs(points: dict[str, list[Run]]) -> dict[str, float]:
    encode, step = points["encode"], points["step"]
    call, token = line([p["tokens"] for p in encode], [p["seconds"] for p in encode])
    of_step, row = line([p["rows"] for p in step], [p["seconds"] for p in step])
    return {"call": call, "token": token, "step": of_step, "row": row}


def policy(costs: dict[str, float], sequences: int, beam: int) -> list[str]:
    """Flags of the policy, derived from the costs: a call in steps of a half-full engine."""
    step = costs["step"] + costs["row"] * sequences * beam / 2
    return [
        f"--call_steps={costs['call'] / step:.3f}",
        f"--call_tokens={round(costs['call'] / costs['token'])}",
    ]


def best(runs: list[Run], discipline: str) -> list[Run]:
    """The run with the lowest p99 at each load: static batching has its best timeout at each."""
    chosen: dict[float, Run] = {}
    for run in runs:
        if run["discipline"] == discipline:
            other = chosen.get(run["load"])
            if other is None or run["p99"] < other["p99"]:
                chosen[run["load"]] = run
    return [chosen[load] for load in sorted(chosen)]


def table(result: Run) -> list[str]:
    lines = [
        "| load | discipline | served/s | p50 ms | p99 ms | rows per step | sources per call "
        "| padding |",
        "|---|---|---|---|---|---|---|---|",
    ]
    chosen = {name: {r["load"]: r for r in best(result["runs"], name)} for name in DISCIPLINES}
    for load in sorted(chosen["continuous"]):
        for name in DISCIPLINES:
            r = chosen[name][load]
            note = f", timeout {r['timeout_steps']:g}" if name == "static" else ""
            lines.append(
                f"| {load:g} % | {name}{note} | {r['served_per_second']:.1f} "
                f"| {r['p50'] * 1e3:.0f} | {r['p99'] * 1e3:.0f} | {r['rows_per_step']:.0f} "
                f"| {r['sequences_per_call']:.1f} | {100 * r['padding']:.0f} % |"
            )
    return lines


def waits_table(result: Run) -> list[str]:
    lines = [
        "| max delay, steps | capacity, requests/s | sources per call |",
        "|---|---|---|",
    ]
    for wait, run in result.items():
        lines.append(f"| {wait} | {run['capacity']:.1f} | {run['sequences_per_call']:.1f} |")
    return lines


def report(results: dict[str, Any], beam: int, sequences: int) -> str:
    costs, assumed = results["costs"], results["assumed_costs"]
    simulated, real = results["simulated"], results["measured"]

    def say(c: dict[str, float]) -> str:
        return (
            f"an encoder call {c['call'] * 1e3:.2f} ms and {c['token'] * 1e6:.1f} us a token, "
            f"a step {c['step'] * 1e3:.2f} ms and {c['row'] * 1e6:.1f} us a row"
        )

    return "\n".join(
        [
            "# Continuous batching, static batching, one request at a time",
            "",
            f"{machine.sentence(results['machine'])}. Engine: {results['engine']}.",
            "Written by `tests/bench/batching/run.py`.",
            "",
            "Poisson arrivals (open loop); sources lognormal around 20 tokens, 3 to 120, targets "
            f"about as long; beam {beam}; at most {sequences} running sequences, which is also the "
            "batch size of static batching. Load is in percent of the throughput of continuous "
            "batching while requests always wait. Static batching is shown with the timeout (in "
            "steps of a full engine) that has the lowest p99 at that load; its rows, too, end with "
            "their targets. Beyond 100 % the latency grows with the length of the run.",
            "",
            "## Simulated, with the costs of the measured engine",
            "",
            f"Costs: {say(costs)}. {simulated['requests']} requests at each load, capacity "
            f"{simulated['capacity']:.1f} requests/s.",
            "",
            *table(simulated),
            "",
            "## The real engine",
            "",
            f"{min(r['requests'] for r in real['runs'])} to "
            f"{max(r['requests'] for r in real['runs'])} requests at a load, the same for each "
            f"discipline; capacity {real['capacity']:.1f} requests/s.",
            "",
            *table(real),
            "",
            "## Simulated, with assumed costs of a GPU",
            "",
            f"Assumed, not measured: {say(assumed)}; at most {ASSUMED_SEQUENCES} running "
            f"sequences. Capacity {results['assumed']['capacity']:.1f} requests/s.",
            "",
            *table(results["assumed"]),
            "",
            "## Effect of the encode delay",
            "",
            "Capacity by the max steps of delay before encoding, with the costs of the measured "
            "engine:",
            "",
            *waits_table(results["waits"]),
            "",
            "and with the assumed costs of a GPU:",
            "",
            *waits_table(results["assumed_waits"]),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/bench_batching")
    parser.add_argument("--bundle", type=Path, default=ROOT / "model/bundles/en-de")
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=32)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument(
        "--seconds",
        type=float,
        default=5,
        help="seconds of arrivals at each load, at least 400 requests (the real engine)",
    )
    parser.add_argument(
        "--loads", default="10,30,50,70,80,90,100,110,120", help="loads of the real engine, percent"
    )
    parser.add_argument("--timeouts", default="0,4", help="timeouts of static batching, steps")
    parser.add_argument(
        "--prefix", default="", help="command before each measurement, such as 'taskset -c 1'"
    )
    args = parser.parse_args()
    machine.require_commit(ROOT / "tests/bench/results")

    def bench(*flags: str, measured: bool = False) -> Any:
        command = [*(args.prefix.split() if measured else []), str(args.binary), *flags]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    size = [f"--sequences={args.sequences}", f"--beam={args.beam}"]
    real = [
        *size,
        f"--bundle={args.bundle}",
        f"--compute={args.compute}",
        f"--threads={args.threads}",
    ]
    points = bench(*real, "--measure_costs", measured=True)
    costs = fit_costs(points)
    known = policy(costs, args.sequences, args.beam)
    print("costs", costs, known, file=sys.stderr)

    def costs_flag(c: dict[str, float]) -> str:
        return "--costs=" + ",".join(f"{c[key]:.9g}" for key in ("call", "token", "step", "row"))

    simulated = [*size, *known, costs_flag(costs)]
    assumed = [
        f"--sequences={ASSUMED_SEQUENCES}",
        f"--beam={args.beam}",
        *policy(ASSUMED, ASSUMED_SEQUENCES, args.beam),
        costs_flag(ASSUMED),
    ]

    def capacities(flags: list[str]) -> dict[int, Run]:
        found = {}
        for wait in (0, 1, 2, 4, 8, 16):
            run = bench(*flags, f"--waits={wait}", "--loads=1000", "--timeouts=0")
            found[wait] = {
                "capacity": run["capacity"],
                "sequences_per_call": run["runs"][0]["sequences_per_call"],
            }
        return found

    results: dict[str, Any] = {
        "machine": machine.facts(),
        "points": points,
        "costs": costs,
        "assumed_costs": ASSUMED,
        "simulated": bench(*simulated, f"--loads={LOADS}"),
        "assumed": bench(*assumed, f"--loads={LOADS}"),
        "waits": capacities(simulated),
        "assumed_waits": capacities(assumed),
    }
    real += known
    measured = bench(*real, "--loads=", "--requests=1500", measured=True) | {"runs": []}
    results["engine"] = f"{args.bundle.name}, {measured['compute']}, {args.threads} thread(s)"
    for load in args.loads.split(","):
        rate = measured["capacity"] * float(load) / 100
        run = bench(
            *real,
            f"--capacity={measured['capacity']}",
            f"--loads={load}",
            f"--requests={max(400, round(args.seconds * rate))}",
            f"--timeouts={args.timeouts}",
            measured=True,
        )
        print(load, run["runs"], file=sys.stderr)
        measured["runs"] += [r | {"requests": run["requests"]} for r in run["runs"]]
    results["measured"] = measured

    path = ROOT / "tests/bench/results" / machine.slug(results["machine"]) / "batching.json"
    machine.write_result(path, results, report(results, args.beam, args.sequences))
    print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
