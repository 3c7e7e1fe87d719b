"""The protocol of the peers of the decoding benchmark: a process that measures on request.

A peer loads a model of a given size with random weights, says so in a line of JSON, and then
answers each line {"batch", "beam", "repeat"} of its standard input with {"seconds": […],
"target_tokens"}: the times of `repeat` runs after one that does not count. Random weights do not
translate, but they cost what trained ones cost, and every hypothesis runs to exactly --target
tokens, so that all engines make the same number of decoder steps.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable


class Unavailable(Exception):
    """The peer cannot run the setting; the message goes into the table."""


Run = Callable[[int, int], int]  # (batch, beam) -> target tokens of the best hypotheses


def arguments(description: str | None, workers: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = dict(layers=6, width=512, ffn=2048, heads=8, vocab=32000, source=30, target=30)
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--compute", default="float32", help="float32, bfloat16, float16 or int8")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    if workers:
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            metavar="N",
            help="workers that share the threads and a batch",
        )
    return parser.parse_args()


def answer(**values: object) -> None:
    print(json.dumps(values), flush=True)


def serve(name: str, load: Callable[[], Run]) -> None:
    """Loads, then measures until standard input ends."""
    try:
        run = load()
    except Unavailable as error:
        return answer(unavailable=str(error))
    answer(engine=name)
    for line in sys.stdin:
        asked = json.loads(line)
        run(asked["batch"], asked["beam"])
        seconds = []
        tokens = 0
        for _ in range(asked["repeat"]):
            start = time.perf_counter()
            tokens = run(asked["batch"], asked["beam"])
            seconds.append(time.perf_counter() - start)
        answer(seconds=seconds, target_tokens=tokens)
    return None
