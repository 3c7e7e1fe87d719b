"""Measures what HTML costs over plain text: CPU seconds of the server per sentence.

The same sentences are sent as plain text, as blocks without inline tags, with an inline element in
each, and as plain text with alignments, in an order that changes from round to round. The unit is
the CPU time of the server's process, so other programs on the machine disturb it less than the time
of day. Writes DIR/MACHINE/markup-cost.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from linnet import Client, DecodingOptions, TranslateRequest
from overload import Server, server
from sentences import sentences

SEED = 1
HTML = "text/html"


def with_element(sentence: str) -> str:
    """The sentence with its second word in an element."""
    first, second, *rest = sentence.split(" ")
    return " ".join([first, f"<b>{second}</b>", *rest])


# Of a way: how a sentence is written, its mime_type, and whether alignments are asked for.
WAYS: dict[str, tuple[Callable[[str], str], str, bool]] = {
    "plain": (str, "", False),
    "blocks": (lambda sentence: f"<p>{sentence}</p>", HTML, False),
    "elements": (with_element, HTML, False),
    "alignments": (str, "", True),
}


def cpu_seconds(running: Server) -> float:
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(options: Namespace, running: Server) -> list[dict[str, float]]:
    """The CPU milliseconds per sentence of each way, for each round after the first."""
    texts = sentences((options.rounds + 1) * options.sentences)
    order = random.Random(SEED)
    rounds = []
    with Client(f"127.0.0.1:{running.port}") as client:
        for start in range(0, len(texts), options.sentences):
            part = texts[start : start + options.sentences]
            used = {}
            for way in order.sample(list(WAYS), len(WAYS)):
                write, mime_type, alignments = WAYS[way]
                request = TranslateRequest(
                    contents=map(write, part),
                    source_language_code="en",
                    target_language_code="de",
                    mime_type=mime_type,
                    alignments=alignments,
                    use_cache=False,
                    options=DecodingOptions(beam_size=options.beam),
                )
                before = cpu_seconds(running)
                client.translate(request)
                used[way] = 1e3 * (cpu_seconds(running) - before) / len(part)
            rounds.append(used)
            print(*(f"{way} {used[way]:.2f} ms" for way in WAYS), sep=", ", file=sys.stderr)
    return rounds[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    machine.add_server(parser)
    parser.add_argument("--sentences", type=int, default=64, help="in a call")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--rows", type=int, default=256)
    options = machine.parse(parser)
    cores = sorted(os.sched_getaffinity(0))[:2]
    facts = machine.facts(cores)

    with server(options, cores) as running:
        rounds = measure(options, running)
    result = {
        "machine": facts,
        "bundle": machine.bundle_name(options.bundle),
        "beam": options.beam,
        "compute": options.compute,
        "sentences": options.sentences,
        "rounds": len(rounds),
        "cpu_ms_per_sentence": {way: median(used[way] for used in rounds) for way in WAYS},
        "over_plain": {
            way: median(used[way] / used["plain"] for used in rounds)
            for way in WAYS
            if way != "plain"
        },
    }
    print(json.dumps(result, indent=1))
    machine.write_result(options.out / machine.slug(facts) / "markup-cost.json", result)


if __name__ == "__main__":
    main()
