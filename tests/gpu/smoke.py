"""Checks in seconds that linnet-decode answers on the GPU in each execution mode of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from decode import WAYS, bundles, decoder_of, texts_for
from session import Case, Setup

LIMIT = 60.0  # seconds per mode; the first one reads the libraries from the disk


def decode_once(setup: Setup, way: str) -> list[dict[str, Any]]:
    bundle, decoder = bundles()[0], decoder_of(setup)
    start = time.monotonic()
    (line,) = decoder.run(
        *("--bundle", str(bundle), "--device", setup.device, *WAYS[way]),
        lines=[{"text": texts_for(bundle)[1]}],
        timeout=LIMIT,
    )
    text = line["hypotheses"][0]["text"]
    if not text:
        raise RuntimeError(f"the answer is empty: {line}")
    seconds = round(time.monotonic() - start, 1)
    return [{"bundle": bundle.name, "way": way, "answer": text, "seconds": seconds}]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    for way in WAYS:
        yield way, lambda way=way: decode_once(setup, way)
