"""Measures what texts that are hard to split or to tokenise cost a server, and other clients.

Each text is a fragment, repeated up to 1 MB, and is sent to an idle server: the cost is the
processor time of all threads but the engine's until the text is refused or read and the deadline
ends its translation. Prose, which the costs are compared with, is read to its end by a server that
takes all work. Fragments that begin with a tag are HTML. With --search the fragments that cost most
until they are refused are searched for by random changes.

Then the eight costliest of these texts are in flight all the time, each from a client of its own,
at normal priority; some of them are translated. Meanwhile another client translates a sentence at
interactive priority: its wait is the processor time that all threads of the server spend, also on
other cores, so that other work on the machine does not count, and the time on the clock. *More than
alone* is what a call waits beyond the median of calls without such texts. The eight clients are a
process of their own with a low priority, because they are not what is measured.
With --before the same is measured with the programs of an earlier version.

Writes DIR/MACHINE/hostile-texts.json and hostile-texts.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/e2e")]
import machine  # noqa: E402
import resources  # noqa: E402
from attackers import request  # noqa: E402

PROSE = "prose"
FRAGMENTS = [
    "Mr. ",
    "II. ",
    "x",
    "(",
    "Z. ",
    "A. B. ",
    "a.b. ",
    "Ж",
    "internationalisation ",
    "a\n",
    "{} ",
    "<b>",
    "<p>Z. ",
    "Z.{}",
]
SEEDS = [
    *FRAGMENTS,
    "1. ",
    "? ",
    "e.g. ",
    "。",
    "你",
    "😀",
    '"',
    ") ",
    "the ",
    ", ",
    "St. 3 ",
    "　",
]
IN_FLIGHT = 8
DEADLINE_SECONDS = 5  # enough to read a megabyte, and too little to translate it on one thread
TRIES = 20  # until the server has room for a text
ACCEPTED = ("OK", "DEADLINE_EXCEEDED")  # the latter while it is translated
TRANSLATE = "/linnet.v1.TextService/Translate"


def call(
    channel: grpc.Channel, token: str, text: str, priority: str = "normal", timeout: float = 120
) -> str:
    """Returns the name of the status."""
    headers = [("authorization", f"Bearer {token}"), ("x-priority", priority)]
    markup = {"mime_type": "text/html"} if text.startswith("<") else {}
    try:
        channel.unary_unary(TRANSLATE)(request(text, **markup), timeout=timeout, metadata=headers)
    except grpc.RpcError as error:
        reason = re.search(r"\b(more segments|tokens of work|memory|may take)\b", error.details())
        return f"{error.code().name}{f' ({reason[1]})' if reason else ''}"
    return "OK"


class Server:
    """A server with tokens; end it with `stop`."""

    def __init__(self, programs: Path, bundle: Path, folder: Path, *flags: str):
        tokens = folder / "tokens"
        names = ["victim", *(f"hostile{number}" for number in range(IN_FLIGHT))]
        self.tokens = {name: f"{name}-0123456789abcdef" for name in names}
        tokens.write_text("".join(f"{it} {name} inference\n" for name, it in self.tokens.items()))
        command = [str(programs / "linnet-server"), "--models", str(bundle), "--threads", "1"]
        command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
        command += ["--tokens", str(tokens), "--log-level", "error", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        match = re.match(r"ready grpc=(\S+)", self.process.stdout.readline())
        if match is None:
            raise SystemExit(f"error: the server ended with {self.process.wait()}")
        self.address = match[1]
        self.channel = grpc.insecure_channel(self.address)

    def call(self, client: str, text: str, priority: str = "normal", timeout: float = 120) -> str:
        """Returns the name of the status."""
        return call(self.channel, self.tokens[client], text, priority, timeout)

    def cpu_seconds(self) -> float:
        return resources.cpu_seconds(self.process.pid)

    def engine_cpu_seconds(self) -> float:
        engines = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "linnet-engine":
                engines += int((task / "schedstat").read_text().split()[0])
        return engines / 1e9

    def text_cpu_seconds(self) -> float:
        """That of all threads but the engine's."""
        return self.cpu_seconds() - self.engine_cpu_seconds()

    def stop(self) -> None:
        self.channel.close()
        self.process.terminate()
        self.process.wait(60)


def text_of(fragment: str, size: int) -> str:
    """A megabyte of the fragment, or of prose."""
    if fragment == PROSE:
        fragment = (ROOT / "tests/data/news.txt").read_text() + "\n"
    return fragment * (size // len(fragment.encode()) + 1)


def cost(server: Server, fragment: str, size: int, rounds: int) -> dict[str, Any]:
    """The processor time that the text takes beside the engine, per MB."""
    text, costs, status = text_of(fragment, size), [], ""
    for _ in range(rounds):
        for _ in range(TRIES):
            before = server.text_cpu_seconds()
            status = server.call("hostile0", text, timeout=DEADLINE_SECONDS)
            if not status.startswith("RESOURCE_EXHAUSTED"):
                break
            time.sleep(0.1)  # an earlier text is being given up, and holds its memory
        costs.append((server.text_cpu_seconds() - before) / (len(text.encode()) / 1e6))
    # Behind a text that is translated the next one may be refused before it is read.
    read = costs[:1] if "may take" in status else costs
    return {"cpu_s_per_mb": min(read), "status": status}


def cost_of_prose(programs: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The processor time that a megabyte of prose takes if all of it is read."""
    with tempfile.TemporaryDirectory() as folder:
        everything = ("--max-admitted-tokens", "2000000000")
        server = Server(programs, options.bundle, Path(folder), *everything)
        try:
            measured = cost(server, PROSE, options.bytes, 1)
        finally:
            server.stop()
    if measured["status"] not in (*ACCEPTED, "DEADLINE_EXCEEDED (may take)"):
        raise SystemExit(f"error: prose ended with {measured['status']}")
    return measured


def waits(server: Server, calls: int) -> dict[str, list[float]]:
    """Processor and clock seconds of each call of the victim."""
    taken: dict[str, list[float]] = {"cpu_s": [], "seconds": []}
    for _ in range(calls):
        begin, cpu = time.perf_counter(), server.cpu_seconds()
        status = server.call("victim", "A dog runs.", "interactive")
        if status != "OK":
            raise SystemExit(f"error: the other client's call ended with {status}")
        taken["cpu_s"].append(server.cpu_seconds() - cpu)
        taken["seconds"].append(time.perf_counter() - begin)
    return taken


def attack(address: str, texts: dict[str, str]) -> None:
    """Sends the text of each token again and again until this process is ended."""
    os.nice(10)

    def repeat(token: str, text: str) -> None:
        channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        while True:
            call(channel, token, text)

    threads = [threading.Thread(target=repeat, args=each) for each in texts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def beside(server: Server, fragments: list[str], size: int, calls: int) -> dict[str, list[float]]:
    """The victim's waits while eight hostile texts are in flight all the time."""
    texts = {
        server.tokens[f"hostile{number}"]: text_of(fragments[number % len(fragments)], size)
        for number in range(IN_FLIGHT)
    }
    attackers = multiprocessing.get_context("spawn").Process(
        target=attack, args=(server.address, texts)
    )
    attackers.start()
    time.sleep(3)  # it starts
    try:
        return waits(server, calls)
    finally:
        attackers.kill()
        attackers.join()


def search(
    server: Server, seconds: float, size: int, rounds: int, seed: int
) -> list[tuple[float, str]]:
    """The refused fragments that cost most, by hill climbing from SEEDS."""
    rng = random.Random(seed)
    found: list[tuple[float, str]] = []
    waiting = list(SEEDS)
    end = time.monotonic() + seconds
    while waiting or time.monotonic() < end:
        if waiting:
            changed = waiting.pop()
        else:
            first, second = (rng.choice(found[:8])[1], rng.choice([*SEEDS, found[0][1]]))
            cut = rng.randrange(len(first) + 1)
            changed = rng.choice([first + second, first[:cut] + second + first[cut:], first[:cut]])
        if not changed or len(changed) > 64 or any(changed == known for _, known in found):
            continue
        measured = cost(server, changed, size, 1)
        if measured["status"] not in ACCEPTED:
            found = sorted([*found, (measured["cpu_s_per_mb"], changed)], reverse=True)[:50]
    # Other work makes a text look costly that is measured once.
    again = [(cost(server, text, size, rounds)["cpu_s_per_mb"], text) for _, text in found[:8]]
    return sorted(again, reverse=True)


def measure(programs: Path, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(programs, options.bundle, Path(folder))
        try:
            alone = waits(server, options.calls)
            texts = {PROSE: cost_of_prose(programs, options)}
            texts |= {it: cost(server, it, options.bytes, options.rounds) for it in FRAGMENTS}
            worst = []
            if options.search:
                worst = search(server, options.search, options.bytes, options.rounds, options.seed)
            costs = [*worst, *((texts[it]["cpu_s_per_mb"], it) for it in FRAGMENTS)]
            hostile = [fragment for _, fragment in sorted(costs, reverse=True)[:IN_FLIGHT]]
            attacked = beside(server, hostile, options.bytes, options.calls)
        finally:
            server.stop()
    return {"alone": alone, "beside": attacked, "texts": texts, "worst": worst}


def more_than_alone(run: dict[str, Any], unit: str) -> list[float]:
    """What each call waits beyond the median of those without hostile texts."""
    alone = statistics.median(run["alone"][unit])
    return [value - alone for value in run["beside"][unit]]


def markdown(results: dict[str, Any]) -> str:
    runs = {name: results[name] for name in ("before", "after") if results[name] is not None}
    lines = [
        "# Texts that are hard to split or to tokenise",
        "",
        "Written by `tests/bench/security/hostile_texts.py`. "
        f"{machine.sentence(results['machine'])}; a fragment is repeated up to "
        f"{results['bytes'] / 1e6:g} MB. *After* is this version"
        + (f", *before* is {results['before_version']}." if "before" in runs else "."),
        "",
        "| text | " + " | ".join(f"CPU s/MB {name} | of prose | status" for name in runs) + " |",
        "|---|" + "---:|---:|---|" * len(runs),
    ]
    for text in next(iter(runs.values()))["texts"]:
        row = [f"`{text!r}`" if text != PROSE else text]
        for run in runs.values():
            each = run["texts"][text]
            ratio = each["cpu_s_per_mb"] / run["texts"][PROSE]["cpu_s_per_mb"]
            row += [f"{each['cpu_s_per_mb']:.3f}", f"{ratio:.2f}", each["status"]]
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "| interactive call of another client, ms | "
        + " | ".join(f"median {name} | max {name}" for name in runs)
        + " |",
        "|---|" + "---:|---:|" * len(runs),
    ]
    units = {"cpu_s": "processor time of the server", "seconds": "on the clock"}
    rows = {
        f"{title}, {name}": [run[key][unit] for run in runs.values()]
        for key, title in (("alone", "alone"), ("beside", "beside eight such texts"))
        for unit, name in units.items()
    }
    rows |= {
        f"**more than alone**, {name}": [more_than_alone(run, unit) for run in runs.values()]
        for unit, name in units.items()
    }
    for title, waits_of_runs in rows.items():
        cells = [
            f"{value * 1e3:.0f}"
            for taken in waits_of_runs
            for value in (statistics.median(taken), max(taken))
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for name, run in runs.items():
        if run["worst"]:
            found = ", ".join(f"`{text!r}` {value:.3f}" for value, text in run["worst"])
            lines += ["", f"The costliest that a search found {name}, in CPU s/MB: {found}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of a text")
    parser.add_argument("--calls", type=int, default=20, help="of the other client")
    parser.add_argument("--rounds", type=int, default=3, help="of each text; the least counts")
    parser.add_argument("--search", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, help="of the search")
    machine.add_server(parser)
    parser.add_argument("--before", type=Path, help="folder of the programs of an earlier version")
    parser.add_argument("--before-version", default="an earlier version")
    options = machine.parse(parser)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    results = {
        "machine": facts,
        "bundle": machine.bundle_name(options.bundle),
        "bytes": options.bytes,
        "before_version": options.before_version,
        "before": measure(options.before, options) if options.before else None,
        "after": measure(options.programs, options),
    }
    path = options.out / machine.slug(facts) / "hostile-texts.json"
    machine.write_result(path, results, markdown(results))


if __name__ == "__main__":
    main()
