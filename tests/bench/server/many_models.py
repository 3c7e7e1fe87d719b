"""Measures a server of many models.

Each round starts a server on all cores with copies of one bundle. Closed loops with the same number
of calls together go to one of the models, to four of them, and to one again: four busy models
should make the tokens of one. A server of fifty loaded models that nobody calls should take no CPU
time. Writes DIR/MACHINE/many-models.json and many-models.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e"))
import machine
from resources import cpu_seconds
from started import add_server, metric, server

ROOT = Path(__file__).resolve().parents[3]
BUSY = 4
IDLE = 50
IDLE_SECONDS = 60
IN_FLIGHT = 32  # calls, of all models together


def copies(bundle: Path, number: int, folder: Path) -> Path:
    """A folder with that many models of one bundle."""
    for copy in range(number):
        to = folder / f"copy-{copy}"
        to.mkdir(parents=True)
        for file in bundle.iterdir():
            if file.name != "manifest.json":
                (to / file.name).symlink_to(file.resolve())
        manifest = json.loads((bundle / "manifest.json").read_text())
        manifest["name"] = to.name
        (to / "manifest.json").write_text(json.dumps(manifest))
    return folder


def target_tokens(page: str) -> float:
    return metric(page, "linnet_client_tokens_total", 'kind="target"')


def tokens_a_second(options: argparse.Namespace, port: str, page: str, models: int) -> float:
    command = [str(options.programs / "linnet-load"), "--server", f"127.0.0.1:{port}", "--json"]
    command += ["--to", options.target, "--from", options.source]
    command += ["--concurrency", str(IN_FLIGHT // models), "--duration", f"{options.seconds}s"]
    begin, before = time.monotonic(), target_tokens(page)
    loads = [
        subprocess.Popen(
            [*command, "--model", f"copy-{model}", "--seed", str(model)], stdout=subprocess.DEVNULL
        )
        for model in range(models)
    ]
    for load in loads:
        assert load.wait() == 0
    return (target_tokens(page) - before) / (time.monotonic() - begin)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    flags = ("--compute", options.compute)
    with server(options.programs, folder / "busy", *flags) as (_, port, page):
        tokens_a_second(options, port, page, 1)
        one = tokens_a_second(options, port, page, 1)
        four = tokens_a_second(options, port, page, BUSY)
        again = tokens_a_second(options, port, page, 1)
    with server(options.programs, folder / "idle", *flags) as (process, _, _):
        time.sleep(5)
        before = cpu_seconds(process)
        time.sleep(IDLE_SECONDS)
        idle = (cpu_seconds(process) - before) / IDLE_SECONDS
    return {
        "one_tokens_a_second": (one + again) / 2,
        "busy_share": four / ((one + again) / 2),
        "drift": again / one,
        "idle_cores": idle,
    }


def markdown(data: dict[str, Any]) -> str:
    rows = {
        "one_tokens_a_second": "target tokens a second, one busy model",
        "busy_share": f"{BUSY} busy models together, times that",
        "drift": "one busy model behind them, times the one before",
        "idle_cores": f"{IDLE} loaded models that nobody calls, cores",
    }
    lines = [
        "# Many models in one server",
        "",
        f"{machine.sentence(data['machine'])}. `tests/bench/server/many_models.py`: copies of "
        f"{data['bundle']} in {data['compute']}, {IN_FLIGHT} calls in flight; medians of "
        f"{data['rounds']} rounds, {data['seconds']} s for each load. Load average at the end "
        f"{data['load_average']:.1f}.",
        "",
        "| | |",
        "|---|---:|",
    ]
    for key, words in rows.items():
        form = ",.0f" if key == "one_tokens_a_second" else ".4f" if key == "idle_cores" else ".2f"
        lines.append(f"| {words} | {data['medians'][key]:{form}} |")
    return "\n".join([*lines, ""])


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add_server(parser)
    add("--compute", default="int8")
    add("--seconds", type=int, default=20, help="of each load")
    add("--rounds", type=int, default=3)
    return machine.parse(parser, words)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        copies(options.bundle, BUSY, Path(folder) / "busy")
        copies(options.bundle, IDLE, Path(folder) / "idle")
        for _ in range(options.rounds):
            rounds.append(measure(options, Path(folder)))
            print(json.dumps(rounds[-1]), flush=True)
    data = {
        "machine": machine.facts(),
        "bundle": machine.bundle_name(options.bundle),
        "compute": options.compute,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "load_average": os.getloadavg()[1],
        "medians": {key: statistics.median(each[key] for each in rounds) for key in rounds[0]},
    }
    machine.publish(options.out, "many-models", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
